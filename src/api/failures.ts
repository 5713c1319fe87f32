import { z } from 'zod'
import { timestamp } from '../domain/date-range.ts'
import { resourceId } from '../http/filters.ts'
import { failureStatuses, type Failures } from '../observe/failures.ts'
import { connectorTypeName } from '../workspace/inputs.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { resource, resourceOf } from './schemas.ts'

const minAgeMaxSeconds = 365 * 86_400

const status = z.enum(failureStatuses).meta({ id: 'FailureStatus' })

const failureGroup = resource(
  'FailureGroup',
  'failure_group',
  z.object({
    destination_id: z.string(),
    destination_name: z.string(),
    destination_deleted: z.boolean().describe('Deliveries to a deleted destination cannot be retried.'),
    connector_type: connectorTypeName,
    status,
    error_code: z.string().nullable().describe('The code of the last error. Null if the error is not one of an attempt.'),
    last_message: z.string().nullable().describe('The message of the delivery that got its status last, or null if it has none.'),
    documents: z.int().describe('Documents with such a delivery. A document with several failed deliveries is in several groups.'),
    oldest_at: timestamp.describe('When the first of these deliveries got its status.'),
    newest_at: timestamp.describe('When the last of these deliveries got its status.'),
  }),
)

const present = resourceOf('failure_group')

export const failureEndpoints = ({ failures }: { failures: Failures }): Endpoint[] => [
  endpoint({
    method: 'GET',
    path: '/failures',
    level: 'viewer',
    summary: 'List failures by destination and error',
    description:
      'Groups the deliveries that need attention by destination and error code, the largest group first. Deliveries of acknowledged ' +
      'documents are left out. `POST /documents/retry` with `destination_id` and `error_code` retries a group, and `GET /documents` with ' +
      '`destination_id`, `delivery_status` and `error_code` lists its documents.',
    query: pageQuery.extend({
      status: status
        .default('failed')
        .describe('Only deliveries with this status. Cancelled deliveries are those of failed documents: their destinations were deleted.'),
      destination_id: resourceId.optional().describe('Only deliveries to this destination.'),
      min_age_seconds: z.coerce
        .number()
        .int()
        .min(0)
        .max(minAgeMaxSeconds)
        .optional()
        .describe('Only deliveries that have had their status for at least this number of seconds.'),
    }),
    response: pageOfMany(failureGroup),
    handle: async ({ query }, { workspaceId }) => toPage(await failures.list(workspaceId, query), query, present),
  }),
]
