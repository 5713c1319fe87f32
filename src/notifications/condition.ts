import type { Config } from '../config/config.ts'
import type { Database, Transaction } from '../db/database.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { failingFrom } from '../domain/circuit.ts'
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
  /** Consecutive failed attempts from which a destination is failing. */
  destinationFailures: failingFrom,
  /** Days before the end of its validity at which a certificate is announced as expiring. */
  certificateDays: 30,
  /** Hours for which an inactive connection may hold deliveries before it is announced. */
  holdingHours: 24,
}

export type ConditionLimits = typeof conditionLimits

/** Whose incidents of a kind are announced. */
export interface Watched {
  /** The workspaces with an active notification for the event. All of them, if the workspace of the operator has one. */
  workspaceIds: readonly string[]
  /** The workspace whose notifications announce what happens in all. Null if there is none. */
  operatorWorkspaceId: string | null
}

export type FindConditions = (trx: Transaction, config: ConditionConfig & ConditionLimits & Watched, now: Date) => Promise<Condition[]>

/** Returns the workspace of the operator, if RELAY_OPERATOR_WORKSPACE names one that exists. */
export const findOperatorWorkspace = async (
  db: Database,
  { RELAY_OPERATOR_WORKSPACE: name }: Pick<Config, 'RELAY_OPERATOR_WORKSPACE'>,
): Promise<string | null> => {
  if (name === undefined) return null
  const [user_slug, workspace_slug] = name.split('/')
  const found: { id: string } | undefined = await db('workspaces').where({ user_slug, workspace_slug }).first('id')
  return found?.id ?? null
}

/** Returns whose incidents are announced, by event. */
export const findWatched = async (db: Database, operatorWorkspaceId: string | null): Promise<Map<IncidentEvent, Watched>> => {
  const { rows } = await db.raw<{ rows: { event: IncidentEvent; workspaceIds: string[] }[] }>(
    `
    select event, array_agg(distinct workspace_id) as "workspaceIds"
    from notifications, unnest(events) as event
    where is_active
    group by event
    `,
  )
  const isOfAll = ({ workspaceIds }: { workspaceIds: string[] }) =>
    operatorWorkspaceId !== null && workspaceIds.includes(operatorWorkspaceId)
  const all = rows.some(isOfAll) ? await db('workspaces').pluck<string[]>('id') : []
  return new Map(rows.map((row) => [row.event, { workspaceIds: isOfAll(row) ? all : row.workspaceIds, operatorWorkspaceId }]))
}
