import type { Knex } from 'knex'
import { z } from 'zod'
import { idPrefixAt } from '../base/ids.ts'
import { auditEventNames, auditSubjectTypes, eventsMatching } from '../domain/audit-events.ts'
import { columnsAs, type CamelCasedOutput } from '../domain/casing.ts'
import { dateFrom, dateTo, timestamp } from '../domain/date-range.ts'
import type { Database } from './database.ts'
import { directionOf, limitToCursor, pageByCursor, type CursorPage, type CursorRequest } from './page.ts'

const eventName = z.enum(auditEventNames).meta({ id: 'AuditEvent' })
const subjectType = z.enum(auditSubjectTypes).meta({ id: 'AuditSubjectType' })

export const auditLogFields = z.object({
  event: eventName,
  subject_type: subjectType,
  subject_id: z.string(),
  description: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  user_id: z.string().nullable(),
  actor_type: z.enum(['user', 'api_key', 'system']).meta({ id: 'ActorType' }),
  created_at: timestamp,
})

export const auditConditions = {
  event: eventName.optional().describe('Only entries with this event name.'),
  event_prefix: z.string().optional().describe('Only entries whose event name starts with this text, for example `cert.`.'),
  subject_type: subjectType.optional().describe('Only entries about this type of resource.'),
  subject_id: z.string().optional().describe('Only entries about the resource with this id.'),
  user_id: z.string().optional().describe('Only entries caused by this member.'),
  actor: z.string().optional().describe('Only entries caused by the API key or the person with this name; A to Z in upper or lower case.'),
  date_from: dateFrom,
  date_to: dateTo,
}

export type AuditLog = CamelCasedOutput<typeof auditLogFields> & { id: string }
type AuditFilter = CamelCasedOutput<z.ZodObject<typeof auditConditions>>

const columns = columnsAs('id, event, subject_type, subject_id, description, metadata, user_id, actor_type, created_at')

// What an export holds in memory while its client does not read. An entry has less than 1 KiB as a rule.
const partRows = 200

/** A range of the log, newest first, or oldest first after an id. */
type Range = Omit<CursorRequest, 'perPage'> & { rows: number }

const actorName = "lower(coalesce(metadata->>'person_name', metadata->>'key_name'))"

const matching = (db: Knex, workspaceId: string, filter: AuditFilter, range: Range) => {
  const query = db('audit_logs').where({ workspace_id: workspaceId })
  if (filter.subjectId !== undefined) query.where({ subject_id: filter.subjectId })
  if (filter.userId !== undefined) query.where({ user_id: filter.userId })
  if (filter.actor !== undefined) query.whereNot({ actor_type: 'system' }).whereRaw(`${actorName} = lower(?)`, [filter.actor])
  // The id of an entry begins with the millisecond of its creation.
  if (filter.dateFrom) query.where('id', '>=', idPrefixAt(filter.dateFrom))
  if (filter.dateTo) query.where('id', '<', idPrefixAt(new Date(filter.dateTo.getTime() + 1)))
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
  if (!events && filter.userId === undefined && filter.actor === undefined) return matching(db, workspaceId, filter, range)
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
