import {
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
  uuid4,
  workflowInfo,
} from '@temporalio/workflow'
import { adviceOn } from '../src/domain/advice.ts'
import { isRetryPolicy } from '../src/domain/retry.ts'
import {
  documentWorkflowId,
  nameOf,
  queries,
  searchAttributes,
  signals,
  type Activities,
  type DeliveryInput,
  type DeliveryState,
  type DeliveryStatus,
  type RetryRequest,
  type Round,
} from './messages.ts'

// what an operator types in the UI may be anything, or nothing
const retrySignal = defineSignal<[unknown?]>(signals.retry)
const settledSignal = defineSignal<[DeliveryState]>(signals.settled)
const statusQuery = defineQuery<DeliveryState>(queries.status)

const { recordCancellation } = proxyActivities<Activities>({ startToCloseTimeout: '30s' })

// the activity ends an attempt itself when its time is up; the server waits a little longer, for the record to be written
const recordingSlackMs = 60_000

/**
 * One document to one destination: attempt, back off, and after the last attempt wait to be asked for another round.
 * An attempt's outcome is a value; what the activity throws (our database is away, a worker died) is retried by the server
 * and costs the delivery nothing.
 */
export async function delivery(input: DeliveryInput): Promise<DeliveryState> {
  const { carried } = input
  const state: DeliveryState = carried?.state ?? { destinationId: input.destination.id, status: 'pending' }
  let round = carried?.round ?? roundUnder(input.policy)
  let request = carried?.request
  const answered = new Set(carried?.answered)
  const startAnew = () =>
    continueAsNew<typeof delivery>({ ...input, carried: { round, state, answered: [...answered], ...(request && { request }) } })

  setHandler(statusQuery, () => state)
  setHandler(retrySignal, (asked) => {
    const { requestId = uuid4(), policy: fresh } = (asked ?? {}) as RetryRequest
    if (answered.has(requestId)) return
    answered.add(requestId)
    // Kept in any case: the API says "failed" as soon as the attempt is recorded, so the request may come before the attempt's end does.
    request = { requestId, policy: isRetryPolicy(fresh) ? fresh : input.policy }
  })

  try {
    for (let goesOn = carried !== undefined; ; goesOn = false) {
      // where a retry has started this run, it is here already; one that came in mid-round waits for its end
      if (request !== undefined && !goesOn) {
        round = roundUnder(request.policy)
        request = undefined
        show(input, state, { status: 'retrying', details: 'asked to retry by hand' })
        await tellDocument(input, state)
      }
      await deliverOrGiveUp(input, round, state, startAnew)
      if (state.status !== 'failed') break
      await tellDocument(input, state)

      await condition(() => request !== undefined, input.retryWindowMs, { summary: 'waiting for a retry by hand' })
      if (request === undefined) throw ApplicationFailure.nonRetryable(`${state.error}. ${round.advice}`, 'DeliveryFailed')
    }
    // a document whose child this is hears of it by its end
    if (!workflowInfo().parent) await tellDocument(input, state)
    return state
  } catch (thrown) {
    if (isCancellation(thrown)) {
      await CancellationScope.nonCancellable(async () => {
        await recordCancellation({ documentId: input.documentId, destinationId: input.destination.id })
        show(input, state, { status: 'cancelled', details: 'the delivery was cancelled, or its destination deleted' })
      })
    }
    throw thrown
  }
}

const roundUnder = (policy: Round['policy']): Round => ({ policy, failures: 0, waits: 0 })

/**
 * One round of attempts, under one retry budget. Leaves the outcome in `state`; the database knows it already.
 * @param startAnew continues with the round as it is in a run with an empty history
 */
async function deliverOrGiveUp(input: DeliveryInput, round: Round, state: DeliveryState, startAnew: () => Promise<never>): Promise<void> {
  const { destination, documentId, attemptTimeoutMs } = input
  const { policy } = round
  const { attemptDelivery } = proxyActivities<Activities>({
    startToCloseTimeout: attemptTimeoutMs + recordingSlackMs,
    heartbeatTimeout: input.heartbeatTimeoutMs,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    summary: `to ${destination.name}`,
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  })
  for (;;) {
    if (workflowInfo().continueAsNewSuggested) await startAnew()
    const { failures, waits } = round
    const askedAt = Date.now()
    const remainingMs = policy.ttlMs - (askedAt - (round.firstTryAt ?? askedAt))
    const outcome = await attemptDelivery({
      documentId,
      destinationId: destination.id,
      policy,
      failures,
      remainingMs,
      attemptTimeoutMs,
      ...(waits > 0 && { waits }),
    })
    if (outcome.status === 'waiting') {
      round.waits += 1
      const busy = `waiting for its turn at ${destination.name}, which has as many deliveries at work as it may. There is nothing to do`
      show(input, state, { status: state.status, error: state.error, details: busy })
      await sleep(outcome.inMs, { summary: `waiting for its turn at ${destination.name}` })
      continue
    }
    round.waits = 0
    round.firstTryAt ??= askedAt
    if (outcome.status === 'delivered') {
      // the straight path sets no search attribute: "completed" says it already
      if (state.status !== 'pending') show(input, state, { status: 'delivered' })
      state.status = 'delivered'
      return
    }
    if (outcome.status === 'cancelled') return show(input, state, { status: 'cancelled', details: 'its destination was deleted' })
    const { error } = outcome
    const isFirstFailure = state.status === 'pending'
    if (outcome.status === 'failed') {
      round.advice = adviceOn(outcome.code, destination.name)
      return show(input, state, { status: 'failed', error, details: `${error}. ${round.advice}` })
    }
    round.failures = outcome.failures
    const next = `attempt ${round.failures + 1} of ${policy.maxRetries + 1}`
    show(input, state, { status: 'retrying', error, details: `${error}. It tries again by itself: ${next}` })
    if (isFirstFailure) await tellDocument(input, state)
    await sleep(outcome.inMs, { summary: next })
  }
}

/** What operators see in the UI: a filterable status, and in words what happened and what to do. */
function show(
  input: DeliveryInput,
  state: DeliveryState,
  { status, error, details }: { status: DeliveryStatus; error?: string | undefined; details?: string },
): void {
  const changed = status !== state.status
  state.status = status
  state.error = error
  // the summary does not come along into a run that continues another
  const name = input.carried ? `${nameOf(input)} to ${input.destination.name}: ` : ''
  setCurrentDetails(`${name}**${status}**${details ? `: ${details}` : ''}`)
  if (changed && input.searchAttributes) upsertSearchAttributes([{ key: searchAttributes.status, value: status }])
}

async function tellDocument(input: DeliveryInput, state: DeliveryState): Promise<void> {
  // gone already where a retry started this run after everything had closed
  const workflowId = documentWorkflowId(input.documentId, input.revision)
  try {
    await getExternalWorkflowHandle(workflowId).signal(settledSignal, state)
  } catch (thrown) {
    if (isCancellation(thrown)) throw thrown
    log.info('the document workflow has closed', { workflowId })
  }
}
