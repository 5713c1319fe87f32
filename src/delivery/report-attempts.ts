import { Histogram, type Metric } from 'prom-client'
import { timeOfId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { counterOf } from '../base/metrics.ts'
import { errorClassOf } from '../connectors/error-codes.ts'
import { connectorTypes } from '../connectors/index.ts'
import { snakeCased } from '../domain/casing.ts'
import type { RecordAttempt } from './record-attempt.ts'

const seconds = (milliseconds: number) => milliseconds / 1_000

/**
 * Logs and measures every attempt after it has been recorded.
 * @param workflowId returns the id of the workflow that the running activity belongs to
 */
export const createAttemptReports = (log: Log, workflowId: () => string | undefined) => {
  const attempts = counterOf(
    'relay_attempts_total',
    'Recorded attempts by connector, outcome and error class (empty for an attempt that succeeded)',
    ['connector', 'outcome', 'error_class'],
  )
  const deliveries = counterOf(
    'relay_deliveries_total',
    'Deliveries that an attempt has ended, by connector and outcome: `delivered` or `failed`',
    ['connector', 'outcome'],
    connectorTypes.flatMap((connector) => ['delivered', 'failed'].map((outcome) => ({ connector, outcome }))),
  )
  const bytes = counterOf('relay_sent_bytes_total', 'Bytes that attempts have sent, by connector', ['connector'])
  const attemptDurations = new Histogram({
    name: 'relay_attempt_duration_seconds',
    help: 'Duration of an attempt, by connector and outcome',
    labelNames: ['connector', 'outcome'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800],
    registers: [],
  })
  const deliveryDurations = new Histogram({
    name: 'relay_delivery_duration_seconds',
    help: 'Time from the receipt of a document to its arrival at a destination, by connector',
    labelNames: ['connector'],
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600, 86_400],
    registers: [],
  })

  /** Returns the same function, which reports what it has recorded. */
  const reporting =
    (recordAttempt: RecordAttempt): RecordAttempt =>
    async (delivery, job, attempt) => {
      const recorded = await recordAttempt(delivery, job, attempt)
      const { documentId, destinationId } = delivery
      const { requestId, workspace, repoId, docId, compId } = job
      const { connector } = job.destination
      const { outcome, durationMs, error } = attempt
      const errorClass = error && errorClassOf(error.code)
      attempts.inc({ connector, outcome, error_class: errorClass ?? '' })
      bytes.inc({ connector }, attempt.bytesSent)
      attemptDurations.observe({ connector, outcome }, seconds(durationMs))
      if (recorded.status === 'delivered' || recorded.status === 'failed') deliveries.inc({ connector, outcome: recorded.status })
      if (recorded.status === 'delivered')
        deliveryDurations.observe({ connector }, seconds(Math.max(0, Date.now() - job.receivedAt.getTime())))

      log[errorClass === 'relay' ? 'warn' : 'info'](
        {
          event: 'delivery.attempted',
          ...snakeCased({ requestId, workspace, documentId, destinationId }),
          destination: job.destination.name,
          connector,
          workflow_id: workflowId(),
          ...snakeCased({ repoId, docId, compId }),
          attempt_id: attempt.id,
          attempt: recorded.attempts,
          outcome,
          code: error?.code,
          error_class: errorClass,
          reason: error?.message,
          status: recorded.status,
          ended_by: recorded.status === 'failed' ? attempt.endedBy : undefined,
          next_attempt_in_ms: recorded.status === 'retrying' ? attempt.retryDelayMs : undefined,
          started_at: timeOfId(attempt.id),
          duration_ms: durationMs,
          size_bytes: job.content.sizeBytes,
          sent_bytes: attempt.bytesSent,
        },
        'delivery attempted',
      )
      return recorded
    }

  return { reporting, metrics: [attempts, deliveries, bytes, attemptDurations, deliveryDurations] as Metric[] }
}
