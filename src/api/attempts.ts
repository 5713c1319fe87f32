import { z } from 'zod'
import { attemptOutcomes, type AttemptLog } from '../delivery/attempt-log.ts'
import { timestamp } from '../domain/date-range.ts'
import { openObject } from '../workspace/inputs.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, resource, resourceOf } from './schemas.ts'

const attempt = resource(
  'DeliveryAttempt',
  'delivery_attempt',
  z.object({
    destination_id: z.string(),
    destination_name: z.string(),
    number: z.int(),
    started_at: timestamp,
    duration_ms: z.int(),
    outcome: z.enum(attemptOutcomes).meta({ id: 'AttemptOutcome' }),
    error: z.object({ code: z.string(), message: z.string() }).meta({ id: 'AttemptError' }).nullable(),
    answer: openObject.nullable(),
    bytes_sent: z.int().nullable(),
  }),
)

export const attemptEndpoints = ({ attemptLog }: { attemptLog: AttemptLog }): Endpoint[] => {
  return [
    endpoint({
      method: 'GET',
      path: '/documents/:id/attempts',
      level: 'viewer',
      summary: 'List the delivery attempts of a document',
      description: 'Returns every attempt, oldest first, with its duration, its outcome and the response of the target.',
      params: idParams,
      query: pageQuery,
      response: pageOfMany(attempt),
      handle: async ({ params, query }, { workspaceId }) => {
        return toPage(await attemptLog.list(workspaceId, params.id, query), query, resourceOf('delivery_attempt'))
      },
    }),
  ]
}
