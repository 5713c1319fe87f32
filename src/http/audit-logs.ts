import { z } from 'zod'
import type { Config } from '../config.ts'
import { createAuditLogs, type AuditLog } from '../db/audit-logs.ts'
import type { Database } from '../db/database.ts'
import { AppError } from '../errors.ts'
import { auditEventNames, auditSubjectTypes } from '../domain/audit-events.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { cursorPageOf, cursorQuery, dateFrom, dateTo, openObject, resource, resourceOf, timestamp, toCursorPage } from './schemas.ts'

const auditLog = resource(
  'audit_log',
  z.object({
    event: z.enum(auditEventNames),
    subject_type: z.enum(auditSubjectTypes),
    subject_id: z.string(),
    description: z.string(),
    metadata: openObject,
    user_id: z.string().nullable(),
    actor_type: z.enum(['user', 'api_key', 'system']),
    created_at: timestamp,
  }),
)

const query = cursorQuery.extend({
  event: z.enum(auditEventNames).optional().describe('The exact name of an event'),
  event_prefix: z.string().optional().describe('The beginning of its name, like `cert.`'),
  subject_type: z.enum(auditSubjectTypes).optional().describe('What kind of thing was changed'),
  subject_id: z.string().optional().describe('The id of what was changed'),
  user_id: z.string().optional().describe('The member who did it'),
  date_from: dateFrom,
  date_to: dateTo,
})

const present = resourceOf('audit_log')

const csvColumns = ['created_at', 'event', 'subject_type', 'subject_id', 'description', 'user_id', 'actor_type', 'metadata'] as const

const cellsOf = (entry: AuditLog): string[] => [
  entry.createdAt.toISOString(),
  entry.event,
  entry.subjectType,
  entry.subjectId,
  entry.description,
  entry.userId ?? '',
  entry.actorType,
  JSON.stringify(entry.metadata),
]

export interface AuditLogDeps {
  db: Database
  config: Pick<Config, 'RELAY_EXPORT_MAX_ROWS' | 'RELAY_EXPORT_TIMEOUT_MS' | 'RELAY_MAX_CONCURRENT_EXPORTS'>
}

const busyRetryAfterSeconds = 30

/** Lets only so many tables be read at a time. @throws AppError 503 to the one too many */
const createExportLimit = (maxConcurrent: () => number) => {
  let running = 0
  return async function* (entries: () => AsyncIterable<AuditLog>): AsyncGenerator<string[]> {
    if (running >= maxConcurrent()) {
      throw new AppError('unavailable', 'Other exports are running. Please try again shortly.', {
        retryAfterSeconds: busyRetryAfterSeconds,
      })
    }
    running += 1
    try {
      for await (const entry of entries()) yield cellsOf(entry)
    } finally {
      running -= 1
    }
  }
}

export const auditLogEndpoints = ({ db, config }: AuditLogDeps): Endpoint[] => {
  const auditLogs = createAuditLogs(db)
  const limited = createExportLimit(() => config.RELAY_MAX_CONCURRENT_EXPORTS)
  return [
    endpoint({
      method: 'GET',
      path: '/audit-logs',
      level: 'viewer',
      summary: 'What was changed in the workspace and by whom, newest first',
      query,
      response: cursorPageOf(auditLog),
      status: 200,
      handle: async (input, { workspaceId }) => toCursorPage(await auditLogs.list(workspaceId, input.query), input.query, present),
    }),

    endpoint({
      method: 'GET',
      path: '/audit-logs.csv',
      level: 'viewer',
      summary: 'The same as a table in CSV, newest first; per_page has no effect here',
      query,
      response: 'csv',
      status: 200,
      handle: async (input, { workspaceId }) => ({
        fileName: 'audit-logs.csv',
        columns: csvColumns,
        rows: () => limited(() => auditLogs.read(workspaceId, input.query, config.RELAY_EXPORT_MAX_ROWS)),
        timeoutMs: config.RELAY_EXPORT_TIMEOUT_MS,
      }),
    }),
  ]
}
