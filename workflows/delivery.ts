import {
  ActivityFailure,
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
} from '@temporalio/workflow'
import { markdownText } from '../src/base/text.ts'
import {
  applyOutcome,
  newRun,
  noteCancellation,
  noteFailure,
  requestRetry,
  startRound,
  type AttemptOutcome,
  type DeliveryRun,
} from '../src/domain/delivery-run.ts'
import { controlActivities } from './control.ts'
import { documentWorkflowId } from './ids.ts'
import {
  attemptFailedSignal,
  attemptRetry,
  deliveryChangedSignal,
  deliveryStatusQuery,
  manualRetryTimer,
  releaseSignal,
  retrySignal,
  wakeSignal,
  type AttemptInput,
  type DeliveryActivities,
  type DeliveryInput,
  type DeliveryState,
} from './messages.ts'
import { businessObjectAttribute, documentName, searchAttributes } from './options.ts'
import { unknownOutcome } from './unknown-outcome.ts'

// The activity ends an attempt by itself when its time is up. Temporal waits this much longer, so that the attempt can be recorded, which
// takes up to two minutes if the database is away.
const recordingTimeMs = 180_000

/**
 * Delivers one document to one destination, and waits for a manual retry if that fails, unless many deliveries do. The attempts of a round
 * are one activity, which Temporal repeats until the delivery has arrived or its retry budget is used up.
 */
export async function delivery(input: DeliveryInput): Promise<DeliveryState> {
  const { documentId, destination, policy, attemptTimeoutMs, traceparent } = input
  let run = input.run ?? newRun()
  let hasWaited = false
  setHandler(deliveryStatusQuery, () => stateOf(input, run), {
    description: 'The status of the delivery, its attempts and its last error.',
  })
  setHandler(
    retrySignal,
    (payload) => {
      run = requestRetry(run, payload, { requestId: uuid4(), policy })
    },
    { description: 'Send it without input to try a failed delivery again.' },
  )
  setHandler(
    releaseSignal,
    (released) => {
      run = { ...run, released }
    },
    { description: 'The relay sends it when the connection that holds the delivery is activated. Do not send it.' },
  )
  setHandler(
    wakeSignal,
    () => {
      run = { ...run, isCalled: true }
    },
    { description: 'Send it without input to let a delivery that waits for a slot ask for one now.' },
  )
  setHandler(
    attemptFailedSignal,
    (failure) => {
      const previous = run
      run = noteFailure(run, failure)
      show(input, previous, run, `${run.error}. Temporal repeats the attempt: see the pending activity.`)
    },
    { description: 'The first attempt of a round reports its error with it. Do not send it.' },
  )
  /** Takes the next state, shows it to operators, and reports it to the workflow of the document. */
  const advance = async (next: DeliveryRun, details = '') => {
    const previous = run
    run = next
    show(input, previous, run, details)
    if (run.status !== previous.status && ['retrying', 'failed', 'held'].includes(run.status)) await notifyDocument(input, run)
  }

  try {
    for (;;) {
      if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof delivery>({ ...input, run })
      if (!run.round) await advance(startRound(run, uuid4(), policy), run.requested ? 'manual retry requested' : '')

      const { isCalled, round } = run
      run = { ...run, isCalled: false }
      const attempt: AttemptInput = {
        documentId,
        destinationId: destination.id,
        workspace: input.workspace,
        attemptTimeoutMs,
        policy: round!.policy,
        round: round!.id,
        ...(isCalled && { isCalled }),
        ...(input.revision !== undefined && { revision: input.revision }),
        ...(traceparent !== undefined && { traceparent }),
      }
      const outcome = await makeAttempts(input, attempt, hasWaited)
      const next = applyOutcome(run, outcome)

      if (outcome.status === 'waiting') {
        hasWaited = true
        await advance(next, waitingFor(destination.name, outcome.circuit))
        // A wake that came during the attempt may be younger than its outcome.
        await untilCalled(() => run.isCalled === true, outcome.askAgainMs)
      } else if (outcome.status === 'failed') {
        await advance(next, failureOf(next))
        if (outcome.keepsOpen !== false) {
          await condition(() => run.requested !== undefined, input.retryWindowMs, { summary: manualRetryTimer })
        }
        // A retry of a closed workflow starts it again under the same id.
        if (run.requested === undefined) throw ApplicationFailure.nonRetryable(failureOf(run), 'DeliveryFailed')
      } else if (outcome.status === 'held') {
        await advance(next, heldFor[outcome.reason ?? 'inactive'])
        // A held delivery has no workflow: the release starts it again. A release that came during the attempt has signalled this run.
        if (!run.released && !run.requested) return stateOf(input, run)
      } else if (outcome.status === 'delivered' || outcome.status === 'cancelled') {
        await advance(next, outcome.status === 'cancelled' ? 'what the delivery needs was deleted' : undefined)
        break
      } else {
        throw unknownOutcome(outcome)
      }
    }
    // A parent learns the result of its child from Temporal.
    if (!workflowInfo().parent) await notifyDocument(input, run)
    return stateOf(input, run)
  } catch (thrown) {
    if (isCancellation(thrown)) {
      await CancellationScope.nonCancellable(async () => {
        const { acceptedRequests } = run
        const status = await controlActivities<DeliveryActivities>({ startToCloseTimeout: '30s' }).recordCancellation({
          documentId,
          destinationId: destination.id,
        })
        const ended = noteCancellation(run, status)
        await notifyDocument(input, ended)
        // A retry may be requested as soon as the end is recorded, and its signal reaches this run until it has closed.
        const isRequested = run.acceptedRequests.length > acceptedRequests.length
        if (isRequested) await continueAsNew<typeof delivery>({ ...input, run: { ...run, round: undefined } })
        show(input, run, ended, status === 'failed' ? failureOf(ended) : 'what the delivery needs was deleted')
      })
    }
    throw thrown
  }
}

const heldFor = {
  inactive: 'the connection is inactive. Activate it to continue.',
  awaitsData: 'the filter of the connection needs business data that is not known yet. The delivery goes on when it is found.',
  doesNotMatch: 'the filter of the connection passes the document over. No action is needed.',
}

const untilCalled = async (isCalled: () => boolean, timeoutMs: number | undefined): Promise<void> => {
  if (timeoutMs === undefined) await condition(isCalled)
  else await condition(isCalled, timeoutMs, { summary: 'until the delivery asks again' })
}

/** Outcome of the attempts of a round. */
type Ended = Exclude<AttemptOutcome, { status: 'retrying' }>

/**
 * Makes the attempts of a round. If Temporal repeats them no longer, the delivery waits for the next one, which decides what follows.
 * @param hasWaited true if the delivery has been refused before. An eager activity runs in the worker that has the workflow in its memory: a
 * worker without a free place would refuse it again and again, while others have some
 */
const makeAttempts = async (input: DeliveryInput, attempt: AttemptInput, hasWaited: boolean): Promise<Ended> => {
  const { attemptDelivery } = proxyActivities<DeliveryActivities>({
    startToCloseTimeout: attempt.attemptTimeoutMs + recordingTimeMs,
    // The budget of the round ends earlier, unless its first attempt has waited for a worker.
    scheduleToCloseTimeout: attempt.policy.ttlMs + attempt.attemptTimeoutMs + recordingTimeMs,
    heartbeatTimeout: input.heartbeatTimeoutMs,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    summary: `to ${markdownText(input.destination.name)}`,
    allowEagerDispatch: !hasWaited,
    retry: attemptRetry,
  })
  try {
    return (await attemptDelivery(attempt)) as Ended
  } catch (thrown) {
    if (!(thrown instanceof ActivityFailure) || isCancellation(thrown)) throw thrown
    const { cause, retryState } = thrown
    const outcome = cause instanceof ApplicationFailure ? (cause.details?.[0] as Partial<AttemptOutcome> | null | undefined) : undefined
    if (isFailed(outcome)) return outcome
    if (outcome?.status !== undefined && outcome.status !== 'retrying') throw unknownOutcome(outcome)
    if (retryState !== 'TIMEOUT') throw thrown
    return { status: 'waiting', askAgainMs: outcome?.status === 'retrying' ? (outcome.delayMs ?? 0) : 0 }
  }
}

const isFailed = (outcome: Partial<AttemptOutcome> | null | undefined): outcome is Extract<AttemptOutcome, { status: 'failed' }> =>
  outcome?.status === 'failed'

const stateOf = ({ destination }: DeliveryInput, { status, error }: DeliveryRun): DeliveryState => ({
  destinationId: destination.id,
  status,
  ...(error !== undefined && { error }),
})

const waitingFor = (name: string, circuit: 'open' | 'half_open' | undefined) =>
  circuit
    ? `waiting: the circuit of ${name} is ${circuit === 'open' ? 'open' : 'half open'}, because its last attempts failed. ` +
      `One delivery at a time tries it. No action is needed, unless ${name} has to be repaired.`
    : `waiting in line for a slot of ${name} or a place in a worker. No action is needed.`

const failureOf = ({ error, remedy }: DeliveryRun) => (remedy === undefined ? `${error}.` : `${error}. ${remedy}`)

/** Shows the state to operators: as details in the UI, and as search attributes once the delivery has left the straight path. */
const show = (input: DeliveryInput, previous: DeliveryRun, run: DeliveryRun, details: string): void => {
  // On the straight path, "completed" says everything, and each upsert would cost an event.
  if (run.status === 'pending' && !details) return
  if (previous.status === 'pending' && run.status === 'delivered') return
  // Temporal does not copy the static summary into a run that continues as new.
  const prefix = input.run ? `${documentName(input)} to ${markdownText(input.destination.name)}: ` : ''
  setCurrentDetails(`${prefix}**${run.status}**${details ? `: ${markdownText(details)}` : ''}`)

  const changed = previous.status !== run.status || previous.errorCode !== run.errorCode
  if (!changed || !workflowInfo().typedSearchAttributes.get(searchAttributes.workspace)) return
  upsertSearchAttributes([
    { key: searchAttributes.status, value: run.status },
    { key: searchAttributes.errorCode, value: run.errorCode ?? null },
    ...businessObjectAttribute(run.businessObject),
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
