import type { Knex } from 'knex'
import { auditEventNames, eventsMatching, type AuditEvent, type AuditSubjectType, type EventFilter } from '../domain/audit-events.ts'
import { idPrefixAt } from '../ids.ts'
import type { AuditActor } from './audit.ts'
import { readRows } from './cursor.ts'
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

/** Part of the log, newest first. */
type Stretch = { before?: string | undefined; rows: number }

const matching = (db: Knex, workspaceId: string, { subjectId, userId, dateFrom, dateTo }: AuditFilter, before?: string) => {
  const query = db('audit_logs').where({ workspace_id: workspaceId })
  if (subjectId !== undefined) query.where({ subject_id: subjectId })
  if (userId !== undefined) query.where({ user_id: userId })
  // an entry is made in the millisecond that its id begins with
  if (dateFrom) query.where('id', '>=', idPrefixAt(dateFrom))
  if (dateTo) query.where('id', '<', idPrefixAt(new Date(dateTo.getTime() + 1)))
  if (before !== undefined) query.where('id', '<', before)
  return query
}

/**
 * The entries that meet the conditions, as something to select from. An index holds the entries of one event in their order, and not
 * those of several: where there may be several, each is read by itself, and PostgreSQL merges them as they come. Of one subject there
 * are few entries, whatever the event.
 */
const entries = (db: Knex, workspaceId: string, filter: AuditFilter, { before, rows }: Stretch): Knex.QueryBuilder => {
  const events = eventsMatching(filter)
  if (filter.subjectId !== undefined || events?.length === 0) {
    const query = matching(db, workspaceId, filter, before)
    return events ? query.whereIn('event', events) : query
  }
  if (!events && filter.userId === undefined) return matching(db, workspaceId, filter, before)
  const ofEach = (events ?? auditEventNames).map((event) =>
    matching(db, workspaceId, filter, before).where({ event }).select('*').orderBy('id', 'desc').limit(rows),
  )
  return db.queryBuilder().from(db.queryBuilder().unionAll(ofEach, true).as('audit_logs'))
}

export const createAuditLogs = (db: Database) => ({
  /** Newest first. */
  list: (workspaceId: string, { before, perPage, ...filter }: AuditFilter & CursorRequest): Promise<CursorPage<AuditLog>> =>
    pageBefore(entries(db, workspaceId, filter, { before, rows: perPage + 1 }), columns, { before, perPage }),

  /** Newest first, as they are taken. */
  read: (
    workspaceId: string,
    { before, ...filter }: AuditFilter & { before?: string | undefined },
    rows: number,
  ): AsyncGenerator<AuditLog> =>
    readRows(db, entries(db, workspaceId, filter, { before, rows }).select(columns).orderBy('id', 'desc').limit(rows)),
})
