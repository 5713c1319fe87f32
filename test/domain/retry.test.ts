import { retryAfterMs } from '../../src/connectors/shared/retry-after.ts'
import { attemptTimes, decideRetry, type RetryPolicy } from '../../src/domain/retry.ts'

const minute = 60_000
const policy: RetryPolicy = { maxRetries: 10, ttlMs: 1440 * minute, initialIntervalMs: 10_000, maxIntervalMs: 60 * minute }
const plenty = 1440 * minute

describe('decideRetry', () => {
  test.each([
    [1, 10_000],
    [2, 20_000],
    [3, 40_000],
    [9, 2_560_000],
    [10, 3_600_000],
  ])('after failure %i, waits %i ms: doubled each time, up to the maximum interval', (failures, delayMs) => {
    expect(decideRetry(policy, { failures, remainingMs: plenty }, 0)).toEqual({ retry: true, delayMs })
  })

  test('stops after the first attempt and maxRetries retries', () => {
    expect(decideRetry(policy, { failures: 11, remainingMs: plenty }, 0)).toEqual({ retry: false, exhausted: 'count' })
    expect(decideRetry({ ...policy, maxRetries: 0 }, { failures: 1, remainingMs: plenty }, 0)).toEqual({ retry: false, exhausted: 'count' })
  })

  test('stops if the next attempt would start after the time to live', () => {
    expect(decideRetry(policy, { failures: 1, remainingMs: 9_999 }, 0)).toEqual({ retry: false, exhausted: 'time' })
    expect(decideRetry(policy, { failures: 1, remainingMs: 10_000 }, 0)).toEqual({ retry: true, delayMs: 10_000 })
  })

  test('adds at most a tenth as jitter', () => {
    expect(decideRetry(policy, { failures: 1, remainingMs: plenty }, 1)).toEqual({ retry: true, delayMs: 11_000 })
  })

  test('waits for the maximum interval if a target asks for a time of 400 digits', () => {
    const asked = retryAfterMs('9'.repeat(400), new Date())!
    expect(decideRetry(policy, { failures: 1, remainingMs: plenty, retryAfterMs: asked }, 0)).toEqual({ retry: true, delayMs: 60 * minute })
  })

  test('waits as long as Retry-After if it is longer, up to the maximum interval', () => {
    expect(decideRetry(policy, { failures: 1, remainingMs: plenty, retryAfterMs: minute }, 0)).toEqual({ retry: true, delayMs: minute })
    expect(decideRetry(policy, { failures: 3, remainingMs: plenty, retryAfterMs: 1 }, 0)).toEqual({ retry: true, delayMs: 40_000 })
    expect(decideRetry(policy, { failures: 1, remainingMs: plenty, retryAfterMs: 999 * 60 * minute }, 0)).toEqual({
      retry: true,
      delayMs: 60 * minute,
    })
  })
})

test('the times of all attempts follow from the policy', () => {
  const short = { maxRetries: 4, ttlMs: 3_600_000, initialIntervalMs: 10_000, maxIntervalMs: 40_000 }
  expect(attemptTimes(short)).toEqual([0, 10_000, 30_000, 70_000, 110_000])
  expect(attemptTimes({ ...short, ttlMs: 60_000 })).toEqual([0, 10_000, 30_000])
  expect(attemptTimes({ ...short, maxRetries: 0 })).toEqual([0])
})
