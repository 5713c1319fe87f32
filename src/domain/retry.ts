/** Retry settings of a workspace, pinned when a document is received or manually retried. */
export interface RetryPolicy {
  /** Attempts after the first one; 0 disables retries. */
  maxRetries: number
  /** Every attempt starts within this time after the first one. */
  ttlMs: number
  initialIntervalMs: number
  maxIntervalMs: number
}

const policyKeys = ['maxRetries', 'ttlMs', 'initialIntervalMs', 'maxIntervalMs'] satisfies (keyof RetryPolicy)[]

/** Validates the policy of a signal, which an operator may have typed by hand. */
export const isRetryPolicy = (value: unknown): value is RetryPolicy =>
  typeof value === 'object' && value !== null && policyKeys.every((key) => Number.isFinite((value as Partial<RetryPolicy>)[key]))

interface RetryState {
  /** Failed attempts of this round, including the current one. */
  failures: number
  /** Rest of the time to live. */
  remainingMs: number
  /** Delay requested by the target, for example by Retry-After. */
  retryAfterMs?: number | undefined
}

export type RetryDecision = { retry: true; delayMs: number } | { retry: false; exhausted: 'count' | 'time' }

// Jitter spreads attempts that failed together. It is only added: a target that asks for a minute gets at least a minute.
const jitterShare = 0.1

/**
 * Decides whether and when to retry. The delay doubles up to its maximum. A target's Retry-After is obeyed up to the same maximum.
 * @param random from 0 to 1
 */
export const decideRetry = (policy: RetryPolicy, state: RetryState, random: number): RetryDecision => {
  if (state.failures > policy.maxRetries) return { retry: false, exhausted: 'count' }
  const backOffMs = Math.min(policy.initialIntervalMs * 2 ** (state.failures - 1), policy.maxIntervalMs)
  const requestedMs = Math.min(state.retryAfterMs ?? 0, policy.maxIntervalMs)
  const delayMs = Math.round(Math.max(backOffMs, requestedMs) * (1 + jitterShare * random))
  return delayMs > state.remainingMs ? { retry: false, exhausted: 'time' } : { retry: true, delayMs }
}

/** Returns when the attempts of a delivery that always fails start, in milliseconds after the first one, without jitter. */
export const attemptTimes = (policy: RetryPolicy): number[] => {
  const times = [0]
  for (;;) {
    const elapsedMs = times.at(-1)!
    const decision = decideRetry(policy, { failures: times.length, remainingMs: policy.ttlMs - elapsedMs }, 0)
    if (!decision.retry) return times
    times.push(elapsedMs + decision.delayMs)
  }
}
