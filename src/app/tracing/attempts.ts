import { AsyncLocalStorage } from 'node:async_hooks'
import type { AttemptInput, DeliveryActivities } from '../../../workflows/messages.ts'
import { timeOfId } from '../../base/ids.ts'
import type { RecordAttempt } from '../../delivery/record-attempt.ts'
import { errorTypeOf, type Span, type Tracing } from './tracing.ts'

interface RunningAttempt {
  input: AttemptInput
  span: Span
  startedAt: Date
  isRecorded: boolean
}

type Recorded = Awaited<ReturnType<RecordAttempt>>
type AttemptEnd = Parameters<RecordAttempt>[2]
type Job = Parameters<RecordAttempt>[1]

const spanName = 'delivery.attempt'

/** Records a span for each attempt, in the trace of the document. A run of the activity that waits for a slot has none. */
export const createAttemptSpans = (tracing: Tracing) => {
  const running = new AsyncLocalStorage<RunningAttempt>()

  /** Returns the same activities with a span around each attempt. */
  const around = <Activities extends Pick<DeliveryActivities, 'attemptDelivery'>>(activities: Activities): Activities => ({
    ...activities,
    attemptDelivery: async (input: AttemptInput) => {
      const startedAt = new Date()
      const span = tracing.start(spanName, { kind: 'consumer', parent: input.traceparent, startedAt, attributes: deliveryOf(input) })
      const attempt: RunningAttempt = { input, span, startedAt, isRecorded: false }
      try {
        return await span.run(() => running.run(attempt, () => activities.attemptDelivery(input)))
      } catch (thrown) {
        // A failure of the relay itself. A recorded attempt that was broken off has its own code.
        if (!attempt.isRecorded) span.fail(errorTypeOf(thrown))
        attempt.isRecorded = true
        throw thrown
      } finally {
        if (attempt.isRecorded) span.end()
      }
    },
  })

  /** Returns the same function, which describes what it has recorded in the span of the attempt. */
  const reporting =
    (recordAttempt: RecordAttempt): RecordAttempt =>
    async (delivery, job, attempt) => {
      const current = running.getStore()
      if (!current) return recordAttempt(delivery, job, attempt)
      const startedAt = timeOfId(attempt.id)
      // The attempt of a worker that was lost. It has exported no span.
      const isLost = startedAt < current.startedAt
      const span = isLost
        ? tracing.start(spanName, { kind: 'consumer', parent: current.input.traceparent, startedAt, attributes: deliveryOf(current.input) })
        : current.span
      const recorded = await span.run(() => recordAttempt(delivery, job, attempt))
      describe(span, job, attempt, recorded)
      if (isLost) span.end()
      else current.isRecorded = true
      return recorded
    }

  return { around, reporting }
}

const deliveryOf = ({ documentId, destinationId }: AttemptInput) => ({
  'relay.document_id': documentId,
  'relay.destination_id': destinationId,
})

const describe = (span: Span, job: Job, { id, outcome, bytesSent, error }: AttemptEnd, { attempts, status }: Recorded): void => {
  span.set({
    'relay.workspace': job.workspace,
    'relay.repo_id': job.repoId,
    'relay.doc_id': job.docId,
    'relay.comp_id': job.compId,
    'relay.request_id': job.requestId,
    'relay.connector': job.destination.connector,
    'relay.attempt_id': id,
    'relay.attempt': attempts,
    'relay.outcome': outcome,
    'relay.status': status,
    'relay.sent_bytes': bytesSent,
  })
  if (error) span.fail(error.code, error.message)
}
