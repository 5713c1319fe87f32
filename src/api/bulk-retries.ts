import { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { validationFailed } from '../base/refusals.ts'
import type { BulkRetries } from '../delivery/bulk-retry.ts'
import { actorOf } from '../workspace/authenticator.ts'
import type { Destinations } from '../workspace/destinations.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { errorCode, errorCodeText } from './failures.ts'
import type { LaunchDeps } from './launch.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { dateFrom, dateTo, idParams, one, resource, resourceOf, timestamp } from './schemas.ts'

export interface BulkRetryDeps extends Pick<LaunchDeps, 'launch'> {
  bulkRetries: Pick<BulkRetries, 'count' | 'find' | 'list' | 'start' | 'cancel'>
  destinations: Pick<Destinations, 'exists'>
}

const attributes = z.object({
  status: z.enum(['running', 'completed', 'cancelled']).meta({ id: 'BulkRetryStatus' }),
  filter: z.object({
    repo_id: z.string().optional(),
    destination_id: z.string().optional(),
    error_code: z.string().optional(),
    date_from: timestamp.optional(),
    date_to: timestamp.optional(),
  }),
  matched_documents: z.int(),
  matched_deliveries: z.int(),
  retried_documents: z.int(),
  retried_deliveries: z.int(),
  created_at: timestamp,
  ended_at: timestamp.nullable(),
})
const bulkRetry = resource('bulk_retry', attributes).meta({ id: 'BulkRetry' })

const startResponse = one(
  z
    .object({
      // Null for a dry run, which is not stored.
      id: z.string().nullable(),
      type: z.literal('bulk_retry'),
      attributes: attributes.extend({
        status: z.enum(['dry_run', ...attributes.shape.status.options]).meta({ id: 'StartedBulkRetryStatus' }),
        created_at: timestamp.nullable(),
      }),
    })
    .meta({ id: 'StartedBulkRetry' }),
)

const present = resourceOf('bulk_retry')

export const bulkRetryEndpoints = ({ bulkRetries, destinations, launch }: BulkRetryDeps): Endpoint[] => {
  return [
    endpoint({
      method: 'POST',
      path: '/documents/retry',
      level: 'member',
      audit: ['bulk_retry.started', 'document.retried'],
      summary: 'Retry documents in bulk',
      description: 'Retries every failed delivery that matches the filters, in the background. With `dry_run`, only counts them.',
      body: z.strictObject({
        dry_run: z.boolean().default(false).describe('Only count what would be retried.'),
        repo_id: z.string().optional().describe('Only documents of this repository (`repo_id`).'),
        status: z
          .literal('failed')
          .optional()
          .describe('The status filter of the document list. Only `failed` is accepted, which is also the default.'),
        destination_id: z.string().optional().describe('Only deliveries to this destination.'),
        error_code: errorCode.describe(`Only deliveries ${errorCodeText}`),
        date_from: dateFrom,
        date_to: dateTo,
      }),
      response: startResponse,
      status: 202,
      alternative: {
        status: 200,
        description: 'Dry run: how many documents and deliveries would be retried now.',
        appliesTo: ({ data }) => data.attributes.status === 'dry_run',
      },
      handle: async ({ body: { dryRun, repoId, destinationId, errorCode: code, dateFrom: from, dateTo: to } }, { workspaceId, actor }) => {
        const filter = { repoId, destinationId, errorCode: code, dateFrom: from, dateTo: to }
        if (destinationId !== undefined && !(await destinations.exists(workspaceId, destinationId))) {
          throw validationFailed([{ path: 'destination_id', message: 'there is no such destination in this workspace' }])
        }
        if (dryRun) {
          const matched = await bulkRetries.count(workspaceId, filter)
          const counted = { filter, ...matched, retriedDocuments: 0, retriedDeliveries: 0, createdAt: null, endedAt: null }
          return { data: { id: null, type: 'bulk_retry' as const, attributes: { status: 'dry_run' as const, ...counted } } }
        }
        const { bulkRetry: started, message } = await bulkRetries.start(actor.workspace, filter, actorOf(actor))
        launch([message])
        return { data: present(started) }
      },
    }),

    endpoint({
      method: 'GET',
      path: '/bulk-retries',
      level: 'viewer',
      summary: 'List bulk retries',
      description: 'Returns the bulk retries of the workspace with their progress, newest first.',
      query: pageQuery,
      response: pageOfMany(bulkRetry),
      status: 200,
      handle: async ({ query }, { workspaceId }) => toPage(await bulkRetries.list(workspaceId, query), query, present),
    }),

    endpoint({
      method: 'GET',
      path: '/bulk-retries/:id',
      level: 'viewer',
      summary: 'Retrieve a bulk retry',
      description: 'Shows the progress of a bulk retry.',
      params: idParams,
      response: one(bulkRetry),
      status: 200,
      handle: async ({ params }, { workspaceId }) => ({ data: present(await bulkRetries.find(workspaceId, params.id)) }),
    }),

    endpoint({
      method: 'POST',
      path: '/bulk-retries/:id/cancel',
      level: 'member',
      audit: 'bulk_retry.cancelled',
      summary: 'Cancel a bulk retry',
      description: 'Stops the bulk retry before its next document. Deliveries that were already retried are not affected.',
      params: idParams,
      response: one(bulkRetry),
      conflict: 'The bulk retry has already ended.',
      status: 200,
      handle: async ({ params: { id } }, { workspaceId, actor }) => {
        await bulkRetries.find(workspaceId, id)
        if (!(await bulkRetries.cancel(id, actorOf(actor)))) throw new AppError('conflict', 'This bulk retry has already ended.')
        return { data: present(await bulkRetries.find(workspaceId, id)) }
      },
    }),
  ]
}
