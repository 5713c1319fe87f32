import { z } from 'zod'
import { resourceId } from '../http/filters.ts'
import { failureFields, type Failures } from '../observe/failures.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { resource, resourceOf } from './schemas.ts'

const minAgeMaxSeconds = 365 * 86_400

const failureGroup = resource('FailureGroup', 'failure_group', failureFields)

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
      status: failureFields.shape.status
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
