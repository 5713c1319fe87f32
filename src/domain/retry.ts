/** A workspace's retry settings as pinned when a document was received. */
export interface RetryPolicy {
  /** Tries after the first one; 0 means none. */
  maxRetries: number
  /** Every try begins within this time of the first one. */
  ttlMs: number
  initialIntervalMs: number
  maxIntervalMs: number
}

const policyKeys = ['maxRetries', 'ttlMs', 'initialIntervalMs', 'maxIntervalMs'] satisfies (keyof RetryPolicy)[]

/** Of a message that anybody may have typed. */
export const isRetryPolicy = (value: unknown): value is RetryPolicy =>
  typeof value === 'object' && value !== null && policyKeys.every((key) => Number.isFinite((value as Partial<RetryPolicy>)[key]))

export interface RetryState {
  /** Failed tries of this round so far, the present one included. */
  failures: number
  /** What is left of the time to live. */
  remainingMs: number
  /** What the target asked for, if it did. */
  retryAfterMs?: number | undefined
}

export type NextTry = { again: true; inMs: number } | { again: false; exhausted: 'count' | 'time' }

// Spreads tries that failed together. Only ever added: a target that asked for a minute gets at least the minute.
const jitterShare = 0.1

/**
 * When to try again: the interval doubles up to its maximum, a target's Retry-After is obeyed up to that same maximum.
 * @param random from 0 to 1
 */
export const nextTry = (policy: RetryPolicy, state: RetryState, random: number): NextTry => {
  if (state.failures > policy.maxRetries) return { again: false, exhausted: 'count' }
  const backOffMs = Math.min(policy.initialIntervalMs * 2 ** (state.failures - 1), policy.maxIntervalMs)
  const askedMs = Math.min(state.retryAfterMs ?? 0, policy.maxIntervalMs)
  const inMs = Math.round(Math.max(backOffMs, askedMs) * (1 + jitterShare * random))
  return inMs > state.remainingMs ? { again: false, exhausted: 'time' } : { again: true, inMs }
}
