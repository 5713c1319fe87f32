import {
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  uuid4,
  workflowInfo,
  type ActivityOptions,
} from '@temporalio/workflow'
import {
  applyOutcome,
  attemptBudget,
  newRun,
  nextAttempt,
  requestRetry,
  startRound,
  wakeUp,
  type DeliveryRun,
} from '../src/domain/delivery-run.ts'
import { documentWorkflowId } from './ids.ts'
import {
  deliveryChangedSignal,
  deliveryStatusQuery,
  manualRetryTimer,
  releaseSignal,
  retrySignal,
  wakeSignal,
  type DeliveryActivities,
  type DeliveryInput,
  type DeliveryState,
} from './messages.ts'
import { documentName, searchAttributes } from './options.ts'

const { recordCancellation } = proxyActivities<DeliveryActivities>({ startToCloseTimeout: '30s' })

// The activity ends an attempt by itself when its time is up. Temporal waits this much longer, so that the attempt can be recorded.
const recordingTimeMs = 60_000

/**
 * Delivers one document to one destination: attempts and backs off until the delivery succeeds or its retry budget is used up, and
 * then waits for a manual retry. Temporal retries the activity only for failures of the relay itself, which cost no retry budget.
 */
export async function delivery(input: DeliveryInput): Promise<DeliveryState> {
  const { documentId, destination, policy, attemptTimeoutMs, traceparent } = input
  let run = input.run ?? newRun()
  setHandler(deliveryStatusQuery, () => stateOf(input, run))
  setHandler(retrySignal, (payload) => {
    run = requestRetry(run, payload, { requestId: uuid4(), policy })
  })
  setHandler(releaseSignal, (released) => {
    run = { ...run, released }
  })
  setHandler(wakeSignal, (startedAt) => {
    run = wakeUp(run, startedAt)
  })
  const options: ActivityOptions = {
    startToCloseTimeout: attemptTimeoutMs + recordingTimeMs,
    heartbeatTimeout: input.heartbeatTimeoutMs,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    summary: `to ${destination.name}`,
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '15s' },
  }
  const { attemptDelivery } = proxyActivities<DeliveryActivities>(options)
  /** Takes the next state, shows it to operators, and reports it to the workflow of the document. */
  const advance = async (next: DeliveryRun, details: string) => {
    const previous = run
    run = next
    show(input, previous, run, details)
    if (run.status !== previous.status && ['retrying', 'failed', 'held'].includes(run.status)) await notifyDocument(input, run)
  }

  try {
    for (;;) {
      if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof delivery>({ ...input, run })
      if (!run.round) await advance(startRound(run, policy), run.requested ? 'manual retry requested' : 'released')

      const { wake, delayMs } = run
      const dueAt = Date.now() + (delayMs ?? 0)
      run = { ...run, wake: undefined, delayMs: undefined }
      const attempt = {
        documentId,
        destinationId: destination.id,
        attemptTimeoutMs,
        ...attemptBudget(run, dueAt),
        ...(wake !== undefined && { wake }),
        ...(traceparent !== undefined && { traceparent }),
      }
      const outcome =
        delayMs === undefined
          ? await attemptDelivery(attempt)
          : await attemptDelivery.executeWithOptions({ ...options, summary: `${nextAttempt(run)} to ${destination.name}` }, [
              { ...attempt, delayMs },
            ])
      const next = applyOutcome(run, outcome, dueAt)

      if (outcome.status === 'waiting') {
        await advance(next, waitingFor(destination.name, outcome.circuit))
        const summary = `waiting for ${outcome.circuit ? 'the circuit of' : 'a slot at'} ${destination.name}`
        // A wake that came during the attempt may be younger than its outcome.
        if (run.wake === undefined) await condition(() => run.wake !== undefined, outcome.delayMs, { summary })
      } else if (outcome.status === 'retrying') {
        await advance(next, `${outcome.error}. Retries automatically: ${nextAttempt(next)}.`)
        // The server waits, which takes 6 events. A timer of the workflow would take 11.
        run = { ...run, delayMs: outcome.delayMs }
      } else if (outcome.status === 'failed') {
        await advance(next, failureOf(next))
        await condition(() => run.requested !== undefined, input.retryWindowMs, { summary: manualRetryTimer })
        if (run.requested === undefined) throw ApplicationFailure.nonRetryable(failureOf(run), 'DeliveryFailed')
      } else if (outcome.status === 'held') {
        await advance(next, 'the connection is inactive. Activate it to continue.')
        // A held delivery has no workflow: the release starts it again. A release that came during the attempt has signalled this run.
        if (!run.released && !run.requested) return stateOf(input, run)
      } else {
        await advance(next, outcome.status === 'cancelled' ? 'the destination was deleted' : '')
        break
      }
    }
    // A parent learns the result of its child from Temporal.
    if (!workflowInfo().parent) await notifyDocument(input, run)
    return stateOf(input, run)
  } catch (thrown) {
    if (isCancellation(thrown)) {
      await CancellationScope.nonCancellable(async () => {
        const { acceptedRequests } = run
        await recordCancellation({ documentId, destinationId: destination.id })
        // A retry may be requested as soon as the end is recorded, and its signal reaches this run until it has closed.
        const isRequested = run.acceptedRequests.length > acceptedRequests.length
        if (isRequested) await continueAsNew<typeof delivery>({ ...input, run: { ...run, round: undefined, delayMs: undefined } })
        show(input, run, { ...run, status: 'cancelled' }, 'the delivery was cancelled, or its destination was deleted')
      })
    }
    throw thrown
  }
}

const stateOf = ({ destination }: DeliveryInput, { status, error }: DeliveryRun): DeliveryState => ({
  destinationId: destination.id,
  status,
  ...(error !== undefined && { error }),
})

const waitingFor = (name: string, circuit: 'open' | 'half_open' | undefined) =>
  circuit
    ? `waiting: the circuit of ${name} is ${circuit === 'open' ? 'open' : 'half open'}, because its last attempts failed. ` +
      `One delivery at a time tries it. No action is needed, unless ${name} has to be repaired.`
    : `waiting for a slot: ${name} is at its limit of deliveries. No action is needed.`

const failureOf = ({ error, remedy }: DeliveryRun) => (remedy === undefined ? `${error}.` : `${error}. ${remedy}`)

/** Shows the state to operators: as details in the UI, and as search attributes once the delivery has left the straight path. */
const show = (input: DeliveryInput, previous: DeliveryRun, run: DeliveryRun, details: string): void => {
  // On the straight path, "completed" says everything, and each upsert would cost an event.
  if (run.status === 'pending' && !(run.round && run.round.waits > 0)) return
  if (previous.status === 'pending' && run.status === 'delivered') return
  // Temporal does not copy the static summary into a run that continues as new.
  const prefix = input.run ? `${documentName(input)} to ${input.destination.name}: ` : ''
  setCurrentDetails(`${prefix}**${run.status}**${details ? `: ${details}` : ''}`)

  const changed = previous.status !== run.status || previous.errorCode !== run.errorCode
  if (!changed || !workflowInfo().typedSearchAttributes.get(searchAttributes.workspace)) return
  upsertSearchAttributes([
    { key: searchAttributes.status, value: run.status },
    { key: searchAttributes.errorCode, value: run.errorCode ?? null },
    ...(run.businessObject === undefined ? [] : [{ key: searchAttributes.businessObject, value: run.businessObject }]),
  ])
}

const notifyDocument = async (input: DeliveryInput, run: DeliveryRun): Promise<void> => {
  const workflowId = documentWorkflowId(input, input.revision)
  try {
    await getExternalWorkflowHandle(workflowId).signal(deliveryChangedSignal, stateOf(input, run))
  } catch (thrown) {
    if (isCancellation(thrown)) throw thrown
    // The document workflow may already be closed: a retry can start a delivery on its own.
    log.info('the document workflow has closed', { workflowId })
  }
}
