import type { Knex } from 'knex'
import { eventsMatching, type AuditEvent, type AuditSubjectType, type EventFilter } from '../domain/audit-events.ts'
import { idPrefixAt } from '../ids.ts'
import type { AuditActor } from './audit.ts'
import type { Database } from './database.ts'
import { pageBefore, type CursorPage, type CursorRequest } from './page.ts'

export interface AuditLog {
  id: string
  event: AuditEvent
  subjectType: AuditSubjectType
  subjectId: string
  description: string
  metadata: Record<string, unknown>
  userId: string | null
  actorType: AuditActor['type']
  createdAt: Date
}

export interface AuditFilter extends EventFilter {
  subjectId?: string | undefined
  userId?: string | undefined
  /** Both inclusive. */
  dateFrom?: Date | undefined
  dateTo?: Date | undefined
}

const columns = [
  'id',
  'event',
  'subject_type as subjectType',
  'subject_id as subjectId',
  'description',
  'metadata',
  'user_id as userId',
  'actor_type as actorType',
  'created_at as createdAt',
]

/** The entries that meet the conditions, in no order yet. */
const matching = (db: Database, workspaceId: string, filter: AuditFilter): Knex.QueryBuilder => {
  const { subjectId, userId, dateFrom, dateTo } = filter
  const query = db('audit_logs').where({ workspace_id: workspaceId })
  if (subjectId !== undefined) query.where({ subject_id: subjectId })
  if (userId !== undefined) query.where({ user_id: userId })
  // an entry is made in the millisecond that its id begins with
  if (dateFrom) query.where('id', '>=', idPrefixAt(dateFrom))
  if (dateTo) query.where('id', '<', idPrefixAt(new Date(dateTo.getTime() + 1)))
  const events = eventsMatching(filter)
  if (events) query.whereIn('event', events)
  return query
}

export const createAuditLogs = (db: Database) => ({
  /** Newest first. */
  list: (workspaceId: string, { before, perPage, ...filter }: AuditFilter & CursorRequest): Promise<CursorPage<AuditLog>> =>
    pageBefore(matching(db, workspaceId, filter), columns, { before, perPage }),
})
