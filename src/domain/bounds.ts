// Bounds of values that people set. The command line reads them without loading the relay, so this module imports nothing.

/** Tiers of a workspace. The compliance tier keeps the audit log indefinitely. */
export const tiers = ['standard', 'compliance'] as const

export type Tier = (typeof tiers)[number]

interface Bounds {
  min: number
  max?: number
}

const daySeconds = 86_400
// The specification keeps audit log entries for 365 days. A shorter retention would erase the trail of its own change.
export const auditDaysMin = 365

/** Bounds of the workspace settings. The maxima of the capture retention are those of the contract, section 8.2. */
export const settingsBounds = {
  max_retries: { min: 0, max: 100 },
  retry_ttl_seconds: { min: 1, max: 30 * daySeconds },
  retry_initial_interval_seconds: { min: 1, max: daySeconds },
  retry_max_interval_seconds: { min: 1, max: daySeconds },
  captured_requests_days: { min: 1, max: 90 },
  captured_bodies_days: { min: 1, max: 30 },
  audit_days: { min: auditDaysMin, max: 3_650 },
  events_days: { min: 0, max: 90 },
  content_days: { min: 1, max: 36_500 },
  receiver_max_bytes: { min: 0 },
  receiver_max_requests_per_minute: { min: 1 },
} satisfies Record<string, Bounds>

/** Bounds of the time for which the relay keeps a content that its home has, in days. */
export const homeAfterDaysBounds = { min: 0, max: 3_650 }

/** Bounds of the silence after which a notification announces a source, in hours. */
export const silenceHoursBounds = { min: 1, max: 30 * 24 }

/** Bounds of the quiet time of a notification, in seconds. */
export const quietSecondsBounds = { min: 0, max: 7 * daySeconds }

/** Bounds of the time for which deliveries wait for an enrichment, in seconds. */
export const waitSecondsBounds = { min: 0, max: 3_600 }

/** Bounds of the time for which an enrichment is repeated after that, in days. */
export const lateDaysBounds = { min: 0, max: 30 }
