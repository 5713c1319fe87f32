import { nextTry, type RetryPolicy } from '../../src/domain/retry.ts'

const minute = 60_000
const policy: RetryPolicy = { maxRetries: 10, ttlMs: 1440 * minute, initialIntervalMs: 10_000, maxIntervalMs: 60 * minute }
const plenty = 1440 * minute

describe('when a failed try is tried again', () => {
  it.each([
    [1, 10_000],
    [2, 20_000],
    [3, 40_000],
    [9, 2_560_000],
    [10, 3_600_000],
  ])('waits after failure %i for %i ms: doubled each time, up to the maximum', (failures, inMs) => {
    expect(nextTry(policy, { failures, remainingMs: plenty }, 0)).toEqual({ again: true, inMs })
  })

  it('gives up once every retry is used: the first try and maxRetries more', () => {
    expect(nextTry(policy, { failures: 11, remainingMs: plenty }, 0)).toEqual({ again: false, exhausted: 'count' })
    expect(nextTry({ ...policy, maxRetries: 0 }, { failures: 1, remainingMs: plenty }, 0)).toEqual({ again: false, exhausted: 'count' })
  })

  it('gives up where the next try would begin after the time to live', () => {
    expect(nextTry(policy, { failures: 1, remainingMs: 9_999 }, 0)).toEqual({ again: false, exhausted: 'time' })
    expect(nextTry(policy, { failures: 1, remainingMs: 10_000 }, 0)).toEqual({ again: true, inMs: 10_000 })
  })

  it('only ever adds jitter, a tenth at most', () => {
    expect(nextTry(policy, { failures: 1, remainingMs: plenty }, 1)).toEqual({ again: true, inMs: 11_000 })
  })

  it('obeys a longer Retry-After, and never beyond the longest interval', () => {
    expect(nextTry(policy, { failures: 1, remainingMs: plenty, retryAfterMs: minute }, 0)).toEqual({ again: true, inMs: minute })
    expect(nextTry(policy, { failures: 3, remainingMs: plenty, retryAfterMs: 1 }, 0)).toEqual({ again: true, inMs: 40_000 })
    expect(nextTry(policy, { failures: 1, remainingMs: plenty, retryAfterMs: 999 * 60 * minute }, 0)).toEqual({
      again: true,
      inMs: 60 * minute,
    })
  })
})
