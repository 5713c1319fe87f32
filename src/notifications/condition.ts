import type { Config } from '../config/config.ts'
import type { Transaction } from '../db/database.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { noticeData, type IncidentEvent } from '../domain/notices.ts'

/** The part of a notice that describes its incident, without the times. */
export const detailsSchema = noticeData.pick({
  destination: true,
  repository: true,
  connection: true,
  enrichment: true,
  subscription: true,
  last_request_at: true,
  certificate: true,
  credentials_expire_at: true,
  error: true,
  document: true,
  remedy: true,
})
export type IncidentDetails = CamelCasedOutput<typeof detailsSchema>

/** Something that an open incident exists for as long as it holds. */
export interface Condition {
  workspaceId: string
  /** Unique among the conditions of the same event in the workspace. */
  subject: string
  count: number
  /** When the condition began to hold, if that is known. */
  since: Date | null
  details: IncidentDetails
}

export type ConditionConfig = Pick<Config, 'RELAY_BASE_URL' | 'TEMPORAL_UI_URL' | 'temporal'>

export const conditionLimits = {
  /** Failed deliveries or discarded documents up to which an incident counts them. */
  maxCount: 1_000,
  /** Consecutive failed attempts from which a destination is failing, even if its circuit is closed. */
  destinationFailures: 5,
  /** Days before the end of its validity at which a certificate is announced as expiring. */
  certificateDays: 30,
  /** Hours for which an inactive connection may hold deliveries before it is announced. */
  holdingHours: 24,
  /** Latest requests of a source system that were all refused before that is announced. */
  refusedRequests: 5,
}

export type ConditionLimits = typeof conditionLimits

export type FindConditions = (trx: Transaction, config: ConditionConfig & ConditionLimits, now: Date) => Promise<Condition[]>

/** The workspaces with an active notification for the event. */
export const watching = (event: IncidentEvent) => `
  select workspace_id
  from notifications
  where is_active
    and '${event}' = any (events)
`
