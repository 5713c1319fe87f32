import type { DeliveryStatus } from './delivery-states.ts'
import { isRetryPolicy, type RetryPolicy } from './retry.ts'

// The state of a delivery workflow, and its steps as pure functions. workflows/delivery.ts performs the effects.

/** Result of one attempt, as the activity reports it. A failure of the target is a result and not an exception. */
export type AttemptOutcome =
  | { status: 'delivered' }
  /** The delivery was cancelled, or its document or destination was deleted. */
  | { status: 'cancelled' }
  /** The connection was switched off. Nothing was attempted, and nothing counts. */
  | { status: 'held' }
  /** Every slot of the destination is taken, or its circuit is not closed. Nothing was attempted, and nothing counts. */
  | { status: 'waiting'; delayMs: number; circuit?: 'open' | 'half_open' }
  | { status: 'retrying'; delayMs: number; failures: number; error: string; errorCode?: string; businessObject?: string }
  /** `remedy`: what an operator should do, as a sentence. */
  | { status: 'failed'; error: string; errorCode?: string; remedy?: string; businessObject?: string }

/** Attempts under one retry budget. A manual retry starts a new round. */
interface RetryRound {
  policy: RetryPolicy
  failures: number
  /** Start of the first attempt, in milliseconds by the workflow's clock. */
  firstAttemptAt?: number
  /** Consecutive times that the delivery waited for a slot. */
  waits: number
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
  /** Start of a wake that has arrived since the last attempt was asked for, in milliseconds. It ends the wait for a slot. */
  wake?: number | undefined
  /** Time that the next attempt waits for, in milliseconds. */
  delayMs?: number | undefined
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

/** Accepts a wake. @param startedAt payload of the signal; an operator may have typed anything, or nothing */
export const wakeUp = (run: DeliveryRun, startedAt: unknown): DeliveryRun => ({
  ...run,
  wake: typeof startedAt === 'number' ? startedAt : 0,
})

/** Starts a round: a requested manual retry, or the first round of the delivery or of its release. */
export const startRound = ({ requested, released, ...run }: DeliveryRun, policy: RetryPolicy): DeliveryRun => {
  const round = { policy: requested ?? released ?? policy, failures: 0, waits: 0 }
  return requested || run.status === 'held' ? { ...run, ...noError, status: 'retrying', round } : { ...run, round }
}

/** Returns the part of an attempt's input that the round determines. @param now when the attempt is due, in milliseconds */
export const attemptBudget = ({ round }: DeliveryRun, now: number) => {
  const { policy, failures, firstAttemptAt = now, waits } = round!
  return { policy, failures, waits, remainingMs: policy.ttlMs - (now - firstAttemptAt) }
}

/** Applies the outcome of an attempt. @param startedAt when the attempt was due, in milliseconds by the workflow's clock */
export const applyOutcome = (run: DeliveryRun, outcome: AttemptOutcome, startedAt: number): DeliveryRun => {
  const round = run.round!
  if (outcome.status === 'waiting') return { ...run, round: { ...round, waits: round.waits + 1 } }
  const ended = { ...run, ...noError, round: undefined }
  if (outcome.status === 'delivered' || outcome.status === 'cancelled' || outcome.status === 'held')
    return { ...ended, status: outcome.status }
  if (outcome.status === 'failed') return { ...ended, ...outcome }
  const { delayMs: _delayMs, failures, ...failure } = outcome
  return { ...ended, ...failure, round: { ...round, failures, waits: 0, firstAttemptAt: round.firstAttemptAt ?? startedAt } }
}

const noError = { error: undefined, errorCode: undefined, remedy: undefined }

/** Returns `attempt 3 of 11`, for the next attempt of the round in progress. */
export const nextAttempt = ({ round }: DeliveryRun): string => `attempt ${round!.failures + 1} of ${round!.policy.maxRetries + 1}`
