import {
  ApplicationFailure,
  CancellationScope,
  condition,
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
import { isRetryPolicy, type RetryPolicy } from '../src/domain/retry.ts'
import {
  documentWorkflowId,
  queries,
  searchAttributes,
  signals,
  type Activities,
  type DeliveryInput,
  type DeliveryState,
  type DeliveryStatus,
  type RetryRequest,
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
  const state: DeliveryState = { destinationId: input.destination.id, status: 'pending' }
  let policy = input.policy
  let request: Required<RetryRequest> | undefined
  const seen = new Set<string>()

  setHandler(statusQuery, () => state)
  setHandler(retrySignal, (asked) => {
    const { requestId = uuid4(), policy: fresh } = (asked ?? {}) as RetryRequest
    if (seen.has(requestId)) return
    seen.add(requestId)
    // Kept in any case: the API says "failed" as soon as the attempt is recorded, so the request may come before the attempt's end does.
    request = { requestId, policy: isRetryPolicy(fresh) ? fresh : input.policy }
  })

  try {
    for (;;) {
      // where a retry has started this run, it is here already
      if (request !== undefined) {
        policy = request.policy
        request = undefined
        show(input, state, 'retrying')
        await tellDocument(input, state)
      }
      await deliverOrGiveUp(input, policy, state)
      if (state.status !== 'failed') break
      await tellDocument(input, state)

      await condition(() => request !== undefined, input.retryWindowMs, { summary: 'waiting for a retry by hand' })
      if (request === undefined) throw ApplicationFailure.nonRetryable(state.error, 'DeliveryFailed')
    }
    // a document whose child this is hears of it by its end
    if (!workflowInfo().parent) await tellDocument(input, state)
    return state
  } catch (thrown) {
    if (isCancellation(thrown)) {
      await CancellationScope.nonCancellable(async () => {
        await recordCancellation({ documentId: input.documentId, destinationId: input.destination.id })
        show(input, state, 'cancelled')
      })
    }
    throw thrown
  }
}

/** One round of attempts, under one retry budget. Leaves the outcome in `state`; the database knows it already. */
async function deliverOrGiveUp(input: DeliveryInput, policy: RetryPolicy, state: DeliveryState): Promise<void> {
  const { attemptDelivery } = proxyActivities<Activities>({
    startToCloseTimeout: input.attemptTimeoutMs + recordingSlackMs,
    heartbeatTimeout: input.heartbeatTimeoutMs,
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
    summary: `to ${input.destination.name}`,
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  })
  const firstTryAt = Date.now()
  for (let failures = 0; ;) {
    const outcome = await attemptDelivery({
      documentId: input.documentId,
      destinationId: input.destination.id,
      policy,
      failures,
      remainingMs: policy.ttlMs - (Date.now() - firstTryAt),
      attemptTimeoutMs: input.attemptTimeoutMs,
    })
    if (outcome.status === 'delivered') {
      // the straight path sets no search attribute: "completed" says it already
      if (state.status !== 'pending') show(input, state, 'delivered')
      state.status = 'delivered'
      return
    }
    const isFirstFailure = state.status === 'pending'
    show(input, state, outcome.status, outcome.error)
    if (outcome.status !== 'retrying') return
    if (isFirstFailure) await tellDocument(input, state)
    failures = outcome.failures
    await sleep(outcome.inMs, { summary: `attempt ${failures + 1} of ${policy.maxRetries + 1}` })
  }
}

/** What operators see in the UI: a filterable status, and the reason in words. */
function show(input: DeliveryInput, state: DeliveryState, status: DeliveryStatus, error?: string): void {
  const changed = status !== state.status
  state.status = status
  state.error = error
  setCurrentDetails(error ? `**${status}**: ${error}` : `**${status}**`)
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
