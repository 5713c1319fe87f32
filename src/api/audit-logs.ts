import { z } from 'zod'
import { createConcurrencyLimit } from '../base/concurrency-limit.ts'
import { auditConditions, auditLogFields, type AuditLog, type AuditLogs } from '../db/audit-logs.ts'
import { separatorNames } from '../http/attachments.ts'
import { idleTimeoutMs } from '../http/server.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { cursorPageOf, cursorQuery, followQuery, isOneWay, toCursorPage } from './pagination.ts'
import { resource, resourceOf } from './schemas.ts'

const auditLog = resource('AuditLog', 'audit_log', auditLogFields)

const spreadsheet = z
  .enum(separatorNames)
  .meta({ id: 'SpreadsheetSeparator' })
  .optional()
  .describe(
    'For a spreadsheet such as Excel, with a byte-order mark: cells are separated by a comma, or by a semicolon, which Excel expects where the ' +
      'decimal sign is a comma, as in German. Without it, the CSV has commas and no byte-order mark.',
  )

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

interface AuditLogDeps {
  auditLogs: AuditLogs
  exportLimits?: Partial<typeof exportLimits>
}

const exportLimits = {
  /** A narrower range of dates exports the remaining rows. */
  maxRows: 100_000,
  /** Includes the time that the client needs to read it. */
  timeoutMs: 600_000,
  /** What a client must read in each `waitMs` spent waiting for it. */
  minBytes: 64 * 1_024,
  waitMs: idleTimeoutMs,
  /** Limit for all workspaces together. An export whose client does not read holds 200 rows, and no connection to the database. */
  maxConcurrent: 20,
  maxConcurrentPerWorkspace: 1,
}

const busyRetryAfterSeconds = 30

/** Reads the rows of an export. @param begin throws an AppError if too many exports are running */
async function* readWithin(begin: () => () => void, entries: () => AsyncIterable<AuditLog>): AsyncGenerator<string[]> {
  const end = begin()
  try {
    for await (const entry of entries()) yield cellsOf(entry)
  } finally {
    end()
  }
}

export const auditLogEndpoints = ({ auditLogs, exportLimits: changed }: AuditLogDeps): Endpoint[] => {
  const limits = { ...exportLimits, ...changed }
  const exports = createConcurrencyLimit(() => ({ total: limits.maxConcurrent, perWorkspace: limits.maxConcurrentPerWorkspace }))
  return [
    endpoint({
      method: 'GET',
      path: '/audit-logs',
      level: 'viewer',
      summary: 'List audit log entries',
      description: 'Returns who changed what in the workspace, newest first, or oldest first with `after`.',
      query: followQuery.extend(auditConditions).refine(...isOneWay),
      response: cursorPageOf(auditLog),
      handle: async (input, { workspaceId }) => toCursorPage(await auditLogs.list(workspaceId, input.query), input.query, present),
    }),

    endpoint({
      method: 'GET',
      path: '/audit-logs.csv',
      operation: 'exportAuditLogs',
      level: 'viewer',
      summary: 'Export audit log entries as CSV',
      description:
        'Accepts the filters of the list and returns the newest entries first. `per_page` has no effect. A cell that a spreadsheet could take for a formula begins with an apostrophe.',
      query: cursorQuery.extend(auditConditions).extend({ spreadsheet }),
      response: 'csv',
      handle: async (input, { workspaceId, actor }) => ({
        fileName: 'audit-logs.csv',
        columns: csvColumns,
        spreadsheet: input.query.spreadsheet,
        rows: () =>
          readWithin(
            () =>
              exports.enter({
                workspaceId,
                caller: `${actor.type} ${actor.id}`,
                what: 'running exports',
                retryAfterSeconds: busyRetryAfterSeconds,
              }),
            () => auditLogs.read(workspaceId, input.query, limits.maxRows),
          ),
        timeoutMs: limits.timeoutMs,
        slowest: { bytes: limits.minBytes, waitMs: limits.waitMs },
      }),
    }),
  ]
}
