import { createTtlCache } from '../base/ttl-cache.ts'

const minuteMs = 60_000
// A bucket that is dropped because there are too many is full again.
const maxWorkspaces = 10_000

/**
 * Limits the requests per minute of each workspace by token buckets: a burst may use up the requests of a whole minute. A bucket is
 * filled with time, of which each request costs its share of a minute. The buckets are kept in the memory of this process, because a
 * count in the database would cost a write per request.
 * @param now clock in milliseconds that no change of the time of day affects
 */
export const createRateLimit = (now: () => number = () => performance.now()) => {
  const buckets = createTtlCache<{ creditMs: number; filledAtMs: number }>({ maxEntries: maxWorkspaces, now })
  return {
    /** Counts a request. @returns seconds until the next request is allowed, 0 if this one is */
    take: (workspaceId: string, perMinute: number): number => {
      if (perMinute === Infinity) return 0
      const costMs = minuteMs / perMinute
      const bucket = buckets.get(workspaceId) ?? { creditMs: minuteMs, filledAtMs: now() }
      const creditMs = Math.min(bucket.creditMs + now() - bucket.filledAtMs, minuteMs)
      const isAllowed = creditMs >= costMs
      buckets.set(workspaceId, { creditMs: isAllowed ? creditMs - costMs : creditMs, filledAtMs: now() })
      return isAllowed ? 0 : Math.max(1, Math.ceil((costMs - creditMs) / 1_000))
    },
  }
}

export type RateLimit = ReturnType<typeof createRateLimit>
