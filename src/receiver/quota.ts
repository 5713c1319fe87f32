import type { ReceivingRepository } from '../archive/receiving-repository.ts'
import type { Config } from '../config/config.ts'
import type { WorkspaceSettings } from '../domain/settings.ts'
import type { RateLimit } from './rate-limit.ts'
import { Refusal } from './refusal.ts'

export type QuotaConfig = Pick<Config, 'RELAY_WORKSPACE_MAX_BYTES' | 'RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE'>

// Retention, which frees bytes, runs once an hour.
const quotaRetryAfterSeconds = 3_600

/** Combines the limit of a workspace with that of the installation, of which 0 means none. */
const lowest = (workspaceLimit: number | null, installationLimit: number) =>
  Math.min(workspaceLimit ?? Infinity, installationLimit || Infinity)

/** How many bytes a workspace may store. */
export interface Quota {
  maxBytes: number
  storedBytes: number
}

export const quotaOf = ({ workspace }: ReceivingRepository, config: QuotaConfig): Quota => ({
  maxBytes: lowest(workspace.settings.receiverMaxBytes, config.RELAY_WORKSPACE_MAX_BYTES),
  storedBytes: workspace.storedBytes,
})

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

/** @throws `Refusal` if the workspace has sent too many requests */
export const checkRate = (
  { id, settings }: { id: string; settings: WorkspaceSettings },
  rateLimit: RateLimit,
  config: QuotaConfig,
): void => {
  const perMinute = lowest(settings.receiverMaxRequestsPerMinute, config.RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE)
  const retryAfterSeconds = rateLimit.take(id, perMinute)
  if (retryAfterSeconds === 0) return
  throw new Refusal('rate_limited', `this workspace may send ${perMinute} requests per minute`, { retryAfterSeconds })
}
