import type { Knex } from 'knex'
import { idPrefixAt } from '../base/ids.ts'
import { auditEventNames, eventsMatching, type AuditEvent, type AuditSubjectType, type EventFilter } from '../domain/audit-events.ts'
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
  /** Both ends are inclusive. */
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

/** A range of the log, newest first. */
type Range = { before?: string | undefined; rows: number }

const matching = (db: Knex, workspaceId: string, { subjectId, userId, dateFrom, dateTo }: AuditFilter, before?: string) => {
  const query = db('audit_logs').where({ workspace_id: workspaceId })
  if (subjectId !== undefined) query.where({ subject_id: subjectId })
  if (userId !== undefined) query.where({ user_id: userId })
  // The id of an entry begins with the millisecond of its creation.
  if (dateFrom) query.where('id', '>=', idPrefixAt(dateFrom))
  if (dateTo) query.where('id', '<', idPrefixAt(new Date(dateTo.getTime() + 1)))
  if (before !== undefined) query.where('id', '<', before)
  return query
}

/**
 * Returns a query for the entries that meet the conditions. An index holds the entries of one event in order, but not those of several
 * events. For several events, each event is therefore read by itself, and PostgreSQL merges the rows. One subject has few entries,
 * whatever the event.
 */
const entries = (db: Knex, workspaceId: string, filter: AuditFilter, { before, rows }: Range): Knex.QueryBuilder => {
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
  /** Lists entries, newest first. */
  list: (workspaceId: string, { before, perPage, ...filter }: AuditFilter & CursorRequest): Promise<CursorPage<AuditLog>> =>
    pageBefore(entries(db, workspaceId, filter, { before, rows: perPage + 1 }), columns, { before, perPage }),

  /** Streams entries, newest first. */
  read: (
    workspaceId: string,
    { before, ...filter }: AuditFilter & { before?: string | undefined },
    rows: number,
  ): AsyncGenerator<AuditLog> =>
    readRows(db, entries(db, workspaceId, filter, { before, rows }).select(columns).orderBy('id', 'desc').limit(rows)),
})

export type AuditLogs = ReturnType<typeof createAuditLogs>

const fetchRows = 500

/**
 * Streams the rows of a query from one snapshot, through an SQL cursor. The statement timeout applies to each fetch, not to the whole
 * stream. A connection is held until the stream ends or is abandoned.
 */
async function* readRows<Row>(db: Database, query: Knex.QueryBuilder): AsyncGenerator<Row> {
  const trx = await db.transaction()
  try {
    await trx.raw('declare rows_to_read no scroll cursor for ?', [query])
    for (;;) {
      const { rows } = await trx.raw<{ rows: Row[] }>(`fetch ${fetchRows} from rows_to_read`)
      yield* rows
      if (rows.length < fetchRows) return
    }
  } finally {
    // Closes the cursor. A lost connection has none to close.
    await trx.rollback().catch(() => {})
  }
}
