import { lowestLimit, type Quota } from '../archive/quota.ts'
import { createTtlCache } from '../base/ttl-cache.ts'
import type { Config } from '../config/config.ts'
import type { WorkspaceSettings } from '../domain/settings.ts'
import { Refusal } from './refusal.ts'

// Retention, which frees bytes, runs once an hour.
const quotaRetryAfterSeconds = 3_600

/**
 * Checks the bytes of a request against the quota. Requests that run at the same time do not see each other, so together they may exceed
 * the quota by their own size.
 * @throws `Refusal` if they do not fit
 */
export const checkQuota = (addedBytes: number, { maxBytes, storedBytes }: Quota): void => {
  if (addedBytes === 0 || storedBytes + addedBytes <= maxBytes) return
  throw new Refusal('quota_exceeded', `the workspace stores ${storedBytes} bytes and may store ${maxBytes}`, {
    retryAfterSeconds: quotaRetryAfterSeconds,
  })
}

// Of the requests per minute, for commands that anybody may send: a source system sends a few of them per day.
const openShare = 0.1

/**
 * @param isOpen true if anybody may send the command, in every repository. Such commands have a bucket of their own, so that they cannot
 * use up the requests of the source system
 * @throws `Refusal` if the workspace has sent too many requests
 */
export const checkRate = (
  { id, settings }: { id: string; settings: WorkspaceSettings },
  isOpen: boolean,
  rateLimit: RateLimit,
  config: Pick<Config, 'RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE'>,
): void => {
  const ofAll = lowestLimit(settings.receiverMaxRequestsPerMinute, config.RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE)
  const perMinute = isOpen ? Math.ceil(ofAll * openShare) : ofAll
  const retryAfterSeconds = rateLimit.take(isOpen ? `${id}/open` : id, perMinute)
  if (retryAfterSeconds === 0) return
  const commands = isOpen ? ' of serverInfo, getCert and putCert' : ''
  throw new Refusal('rate_limited', `this workspace may send ${perMinute} requests${commands} per minute`, { retryAfterSeconds })
}

const minuteMs = 60_000
// A bucket that is dropped because there are too many is full again.
const maxBuckets = 10_000

/**
 * Limits the requests per minute by token buckets: a burst may use up the requests of a whole minute. A bucket is
 * filled with time, of which each request costs its share of a minute. The buckets are kept in the memory of this process, because a
 * count in the database would cost a write per request.
 * @param now clock in milliseconds that no change of the time of day affects
 */
export const createRateLimit = (now: () => number = () => performance.now()) => {
  const buckets = createTtlCache<{ creditMs: number; filledAtMs: number }>({ maxEntries: maxBuckets, now })
  return {
    /** Counts a request. @returns seconds until the next request is allowed, 0 if this one is */
    take: (key: string, perMinute: number): number => {
      if (perMinute === Infinity) return 0
      const costMs = minuteMs / perMinute
      const bucket = buckets.get(key) ?? { creditMs: minuteMs, filledAtMs: now() }
      const creditMs = Math.min(bucket.creditMs + now() - bucket.filledAtMs, minuteMs)
      const isAllowed = creditMs >= costMs
      buckets.set(key, { creditMs: isAllowed ? creditMs - costMs : creditMs, filledAtMs: now() })
      return isAllowed ? 0 : Math.max(1, Math.ceil((costMs - creditMs) / 1_000))
    },
  }
}

export type RateLimit = ReturnType<typeof createRateLimit>
