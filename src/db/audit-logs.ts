import type { Knex } from 'knex'
import { idPrefixAt } from '../base/ids.ts'
import { auditEventNames, eventsMatching, type AuditEvent, type AuditSubjectType, type EventFilter } from '../domain/audit-events.ts'
import { columnsAs } from '../domain/casing.ts'
import type { AuditActor } from './audit.ts'
import type { Database } from './database.ts'
import { directionOf, limitToCursor, pageByCursor, type CursorPage, type CursorRequest } from './page.ts'

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
  /** Both ends are inclusive. */
  dateFrom?: Date | undefined
  dateTo?: Date | undefined
}

const columns = columnsAs('id, event, subject_type, subject_id, description, metadata, user_id, actor_type, created_at')

// What an export holds in memory while its client does not read. An entry has less than 1 KiB as a rule.
const partRows = 200

/** A range of the log, newest first, or oldest first after an id. */
type Range = Omit<CursorRequest, 'perPage'> & { rows: number }

const matching = (db: Knex, workspaceId: string, { subjectId, userId, dateFrom, dateTo }: AuditFilter, range: Range) => {
  const query = db('audit_logs').where({ workspace_id: workspaceId })
  if (subjectId !== undefined) query.where({ subject_id: subjectId })
  if (userId !== undefined) query.where({ user_id: userId })
  // The id of an entry begins with the millisecond of its creation.
  if (dateFrom) query.where('id', '>=', idPrefixAt(dateFrom))
  if (dateTo) query.where('id', '<', idPrefixAt(new Date(dateTo.getTime() + 1)))
  return limitToCursor(query, range)
}

/**
 * Returns a query for the entries that meet the conditions. An index holds the entries of one event in order, but not those of several
 * events. For several events, each event is therefore read by itself, and PostgreSQL merges the rows. One subject has few entries,
 * whatever the event.
 */
const entries = (db: Knex, workspaceId: string, filter: AuditFilter, range: Range): Knex.QueryBuilder => {
  const events = eventsMatching(filter)
  if (filter.subjectId !== undefined || events?.length === 0) {
    const query = matching(db, workspaceId, filter, range)
    return events ? query.whereIn('event', events) : query
  }
  if (!events && filter.userId === undefined) return matching(db, workspaceId, filter, range)
  const ofEach = (events ?? auditEventNames).map((event) =>
    matching(db, workspaceId, filter, range).where({ event }).select('*').orderBy('id', directionOf(range)).limit(range.rows),
  )
  return db.queryBuilder().from(db.queryBuilder().unionAll(ofEach, true).as('audit_logs'))
}

export const createAuditLogs = (db: Database) => ({
  /** Lists entries, newest first, or oldest first after an id. */
  list: (workspaceId: string, { before, after, perPage, ...filter }: AuditFilter & CursorRequest): Promise<CursorPage<AuditLog>> =>
    pageByCursor(entries(db, workspaceId, filter, { before, after, rows: perPage + 1 }), columns, { before, after, perPage }),

  /**
   * Streams entries, newest first. Reads them in parts, and holds neither a connection nor a snapshot between two of them: the reader may
   * be slow. Entries that are written during the reading are newer than the first part.
   */
  async *read(
    workspaceId: string,
    { before, ...filter }: AuditFilter & { before?: string | undefined },
    rows: number,
  ): AsyncGenerator<AuditLog> {
    let last = before
    for (let left = rows; left > 0; left -= partRows) {
      const range = { before: last, rows: Math.min(partRows, left) }
      const part: AuditLog[] = await entries(db, workspaceId, filter, range).select(columns).orderBy('id', 'desc').limit(range.rows)
      yield* part
      if (part.length < range.rows) return
      last = part.at(-1)!.id
    }
  },
})

export type AuditLogs = ReturnType<typeof createAuditLogs>
