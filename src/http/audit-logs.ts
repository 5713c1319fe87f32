import { z } from 'zod'
import { createAuditLogs } from '../db/audit-logs.ts'
import type { Database } from '../db/database.ts'
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
  event: z.enum(auditEventNames).optional(),
  event_prefix: z.string().optional(),
  subject_type: z.enum(auditSubjectTypes).optional(),
  subject_id: z.string().optional(),
  user_id: z.string().optional(),
  date_from: dateFrom,
  date_to: dateTo,
})

const present = resourceOf('audit_log')

export const auditLogEndpoints = ({ db }: { db: Database }): Endpoint[] => {
  const auditLogs = createAuditLogs(db)
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
  ]
}
