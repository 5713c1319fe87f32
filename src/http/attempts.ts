import { z } from 'zod'
import { createAttempts } from '../db/attempts.ts'
import type { Database } from '../db/database.ts'
import { attemptOutcomes } from '../db/deliveries.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { notFound } from './faults.ts'
import { idParams, openObject, pageOfMany, pageQuery, resource, resourceOf, timestamp, toPage } from './schemas.ts'

const attempt = resource(
  'delivery_attempt',
  z.object({
    destination_id: z.string(),
    destination_name: z.string(),
    number: z.int(),
    started_at: timestamp,
    duration_ms: z.int(),
    outcome: z.enum(attemptOutcomes),
    error: z.object({ code: z.string(), message: z.string() }).nullable(),
    answer: openObject.nullable(),
    bytes_sent: z.int().nullable(),
  }),
)

export const attemptEndpoints = ({ db }: { db: Database }): Endpoint[] => {
  const attempts = createAttempts(db)
  return [
    endpoint({
      method: 'GET',
      path: '/documents/:id/attempts',
      level: 'viewer',
      summary: 'Every delivery attempt of a document, oldest first: how long it took, what came of it, and what the target answered',
      params: idParams,
      query: pageQuery,
      response: pageOfMany(attempt),
      status: 200,
      handle: async ({ params, query }, { workspaceId }) => {
        const found = await attempts.list(workspaceId, params.id, query)
        if (!found) throw notFound()
        return toPage(found, query, resourceOf('delivery_attempt'))
      },
    }),
  ]
}
