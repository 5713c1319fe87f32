import { endErrors, type DeliveryStatus } from './delivery-states.ts'
import { isRetryPolicy, type RetryPolicy } from './retry.ts'

// The state of a delivery workflow, and its steps as pure functions. workflows/delivery.ts performs the effects.

/** Result of one attempt, as the activity reports it. A failure of the target is a result and not an exception. */
export type AttemptOutcome =
  | { status: 'delivered' }
  /** The document or its destination was deleted. */
  | { status: 'cancelled' }
  /**
   * The connection was switched off; or its filter needs business data that is not known yet, or that does not fit. Nothing was attempted, and
   * nothing counts.
   */
  | { status: 'held'; reason?: 'awaitsData' | 'doesNotMatch' }
  /**
   * Every slot of the destination is taken, or its circuit is not closed. Nothing was attempted, and nothing counts. The delivery waits
   * in line until it is woken, or at most for this time.
   */
  | { status: 'waiting'; askAgainMs?: number; circuit?: 'open' | 'half_open' }
  /** `failures`: failed attempts of the round. Temporal makes the next attempt after the delay. */
  | { status: 'retrying'; delayMs: number; failures: number; error: string; errorCode?: string; businessObject?: string }
  /** `remedy`: what an operator should do, as a sentence. `keepsOpen`: false if the workflow does not wait for a manual retry. */
  | { status: 'failed'; error: string; errorCode?: string; remedy?: string; businessObject?: string; keepsOpen?: false }

/** What Temporal tells about an attempt that failed and is repeated. */
export type FailedAttempt = Pick<Extract<AttemptOutcome, { status: 'retrying' }>, 'error' | 'errorCode' | 'businessObject'>

/**
 * Attempts under one retry budget. A manual retry starts a new round. How much of the budget is used up stands in the row of the delivery,
 * with the id of the round.
 */
interface RetryRound {
  id: string
  policy: RetryPolicy
}

/** State of a delivery workflow. It is plain data, so that a workflow can continue as new with it. */
export interface DeliveryRun {
  status: DeliveryStatus
  error?: string | undefined
  errorCode?: string | undefined
  remedy?: string | undefined
  businessObject?: string | undefined
  /** The round in progress; none before the first attempt, and none after a failure. */
  round?: RetryRound | undefined
  /** Retry settings of a manual retry that has not started yet. It starts when the round in progress has ended. */
  requested?: RetryPolicy
  /** Retry settings of a release that has not taken effect: the delivery is attempted again if it turns out to be held. */
  released?: RetryPolicy | undefined
  /** True if the delivery was woken since the last attempt was asked for, or if a manual retry has just begun. It ends the wait in line. */
  isCalled?: boolean
  /** Ids of the retry requests that were accepted. */
  acceptedRequests: string[]
}

export const newRun = (): DeliveryRun => ({ status: 'pending', acceptedRequests: [] })

/**
 * Accepts a request for a manual retry, once per request id. The request is kept even if the delivery has not failed yet: the API
 * reports `failed` as soon as an attempt is recorded, so a request may arrive before the activity has returned.
 * @param payload of the signal; an operator may have typed anything, or nothing
 */
export const requestRetry = (run: DeliveryRun, payload: unknown, defaults: { requestId: string; policy: RetryPolicy }): DeliveryRun => {
  const { requestId, policy } = (typeof payload === 'object' && payload !== null ? payload : {}) as Record<string, unknown>
  const id = typeof requestId === 'string' ? requestId : defaults.requestId
  if (run.acceptedRequests.includes(id)) return run
  return { ...run, requested: isRetryPolicy(policy) ? policy : defaults.policy, acceptedRequests: [...run.acceptedRequests, id] }
}

/** Starts a round: a requested manual retry, or the first round of the delivery or of its release. @param id distinct for each round */
export const startRound = ({ requested, released, ...run }: DeliveryRun, id: string, policy: RetryPolicy): DeliveryRun => {
  const next = { ...run, isCalled: requested !== undefined, round: { id, policy: requested ?? released ?? policy } }
  return requested || run.status === 'held' ? { ...next, ...noError, status: 'retrying' } : next
}

/** Notes that an attempt of the round in progress has failed and is repeated. */
export const noteFailure = (run: DeliveryRun, failure: FailedAttempt): DeliveryRun => ({
  ...run,
  ...noError,
  ...failure,
  status: 'retrying',
})

/** Applies the outcome with which the attempts of a round, or a part of them, have ended. */
export const applyOutcome = (run: DeliveryRun, outcome: Exclude<AttemptOutcome, { status: 'retrying' }>): DeliveryRun => {
  if (outcome.status === 'waiting') return run
  const ended = { ...run, ...noError, round: undefined }
  if (outcome.status !== 'failed') return { ...ended, status: outcome.status }
  const { keepsOpen: _, ...failure } = outcome
  return { ...ended, ...failure }
}

/** Notes that the workflow was cancelled. @param status what the database has since then: the delivery may have ended before */
export const noteCancellation = (run: DeliveryRun, status: DeliveryStatus): DeliveryRun => ({
  ...run,
  ...(status !== run.status && noError),
  ...(status !== run.status && status === 'failed' && { error: endErrors.workflow_cancelled }),
  round: undefined,
  status,
})

const noError = { error: undefined, errorCode: undefined, remedy: undefined }
