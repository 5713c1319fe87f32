import { z } from 'zod'
import { createBulkRetries, type BulkRetry } from '../db/bulk-retries.ts'
import type { Database } from '../db/database.ts'
import { createDestinations } from '../db/destinations.ts'
import type { Workflow } from '../db/planned-documents.ts'
import { AppError } from '../errors.ts'
import { actorOf } from './actor.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { notFound, validationFailed } from './faults.ts'
import type { LaunchDeps } from './launch.ts'
import { dateFrom, dateTo, idParams, one, timestamp } from './schemas.ts'

export interface BulkRetryDeps extends Pick<LaunchDeps, 'launch'> {
  db: Database
  config: Workflow
}

const response = one(
  z.object({
    // null for a dry run: there is nothing to ask for later
    id: z.string().nullable(),
    type: z.literal('bulk_retry'),
    attributes: z.object({
      status: z.enum(['dry_run', 'running', 'completed', 'cancelled']),
      filter: z.object({
        repo_id: z.string().optional(),
        destination_id: z.string().optional(),
        date_from: timestamp.optional(),
        date_to: timestamp.optional(),
      }),
      matched_documents: z.int(),
      matched_deliveries: z.int(),
      retried_documents: z.int(),
      retried_deliveries: z.int(),
      created_at: timestamp.nullable(),
      ended_at: timestamp.nullable(),
    }),
  }),
)

const present = ({ id, ...attributes }: BulkRetry) => ({ data: { id, type: 'bulk_retry' as const, attributes } })

export const bulkRetryEndpoints = ({ db, launch, config }: BulkRetryDeps): Endpoint[] => {
  const bulkRetries = createBulkRetries(db, config)
  const destinations = createDestinations(db)
  const show = async (workspaceId: string, id: string) => {
    const found = await bulkRetries.find(workspaceId, id)
    if (!found) throw notFound()
    return present(found)
  }

  return [
    endpoint({
      method: 'POST',
      path: '/documents/retry',
      level: 'member',
      audit: 'document.retried',
      summary: 'Retries every failed delivery that the filters match, in the background; a dry run only counts them',
      body: z.strictObject({
        dry_run: z.boolean().default(false).describe('Only counts what would be retried'),
        repo_id: z.string().optional().describe('Documents of this repository only'),
        status: z.literal('failed').optional().describe('As in the list of documents; nothing else can be retried'),
        destination_id: z.string().optional().describe('Deliveries to this destination only'),
        date_from: dateFrom,
        date_to: dateTo,
      }),
      response,
      status: 202,
      alternative: {
        status: 200,
        description: 'A dry run: how much would be retried now',
        appliesTo: ({ data }) => data.attributes.status === 'dry_run',
      },
      handle: async ({ body: { dryRun, repoId, destinationId, dateFrom: from, dateTo: to } }, { workspaceId, actor }) => {
        const filter = { repoId, destinationId, dateFrom: from, dateTo: to }
        if (destinationId !== undefined && !(await destinations.find(workspaceId, destinationId))) {
          throw validationFailed([{ path: 'destination_id', message: 'there is no such destination in this workspace' }])
        }
        if (dryRun) {
          const matched = await bulkRetries.count(workspaceId, filter)
          const attributes = { filter, ...matched, retriedDocuments: 0, retriedDeliveries: 0, createdAt: null, endedAt: null }
          return { data: { id: null, type: 'bulk_retry' as const, attributes: { status: 'dry_run' as const, ...attributes } } }
        }
        const { bulkRetry, message } = await bulkRetries.begin(actor.workspace, filter, actorOf(actor))
        launch([message])
        return present(bulkRetry)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/bulk-retries/:id',
      level: 'viewer',
      summary: 'How far a bulk retry is',
      params: idParams,
      response,
      status: 200,
      handle: ({ params }, { workspaceId }) => show(workspaceId, params.id),
    }),

    endpoint({
      method: 'POST',
      path: '/bulk-retries/:id/cancel',
      level: 'member',
      summary: 'Stops a bulk retry before its next document; what it has retried stays so',
      params: idParams,
      response,
      conflict: 'It has ended already',
      status: 200,
      handle: async ({ params: { id } }, { workspaceId }) => {
        const { data } = await show(workspaceId, id)
        if (data.attributes.status !== 'running') throw new AppError('conflict', 'This bulk retry has ended already.')
        await bulkRetries.cancel(id)
        return show(workspaceId, id)
      },
    }),
  ]
}
