import { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { idPattern } from '../base/ids.ts'
import { validationFailed } from '../base/refusals.ts'
import { actorOf, type Requester } from '../db/audit.ts'
import { bulkOutcome, bulkRetryFields, type BulkAction, type BulkRetries, type BulkRetryFilter } from '../delivery/bulk-retry.ts'
import { dateFrom, dateTo, timestamp } from '../domain/date-range.ts'
import { errorCode, errorCodeText } from '../http/filters.ts'
import { discardedFields, type Discarded } from '../observe/discarded.ts'
import type { Destinations } from '../routing/destinations.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import type { LaunchDeps } from './launch.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, one, resource, resourceOf } from './schemas.ts'

interface BulkRetryDeps extends Pick<LaunchDeps, 'launch'> {
  bulkRetries: Pick<BulkRetries, 'count' | 'find' | 'findUnknown' | 'list' | 'start' | 'cancel'>
  destinations: Pick<Destinations, 'exists'>
  discarded: Discarded
}

const bulkRetry = resource('BulkRetry', 'bulk_retry', bulkRetryFields)

const singleBulkRetry = resource('SingleBulkRetry', 'bulk_retry', bulkRetryFields.extend(bulkOutcome.shape))

const startResponse = one(
  z
    .object({
      // Null for a dry run, which is not stored.
      id: z.string().nullable(),
      type: z.literal('bulk_retry'),
      attributes: bulkRetryFields
        .extend({
          status: z.enum(['dry_run', ...bulkRetryFields.shape.status.options]).meta({ id: 'StartedBulkRetryStatus' }),
          created_at: timestamp.nullable(),
        })
        .meta({ id: 'StartedBulkRetryAttributes' }),
    })
    .meta({ id: 'StartedBulkRetry' }),
)

const present = resourceOf('bulk_retry')

const discardedBody = z
  .strictObject({
    dry_run: z.boolean().default(false).describe('Only count the documents.'),
    repo_id: z.string().describe('The repository (`repo_id`) of the documents.'),
    status: z.literal('discarded').optional().describe('Only `discarded` is accepted, which is also the default.'),
    date_from: dateFrom,
    date_to: dateTo,
  })
  .meta({ id: 'DiscardedDocumentsInput' })

// The size of a page of the list.
const selectedMax = 100

const dryRunOf = {
  status: 200 as const,
  appliesTo: ({ data }: { data: { attributes: { status: string } } }) => data.attributes.status === 'dry_run',
}

const discardedGroup = resource('DiscardedGroup', 'discarded_group', discardedFields)
const presentGroup = resourceOf('discarded_group')

export const bulkRetryEndpoints = ({ bulkRetries, destinations, discarded, launch }: BulkRetryDeps): Endpoint[] => {
  const begin = async (
    action: BulkAction,
    body: BulkRetryFilter & { dryRun: boolean; status?: string | undefined },
    { workspaceId, actor }: { workspaceId: string; actor: Requester },
  ) => {
    const { dryRun, status: _, ...filter } = body
    if (dryRun) {
      const matched = await bulkRetries.count(workspaceId, action, filter)
      const ended = { retriedDocuments: 0, retriedDeliveries: 0, skippedDocuments: 0, createdAt: null, endedAt: null }
      const counted = { action, status: 'dry_run' as const, filter, ...matched, ...ended }
      return { data: { id: null, type: 'bulk_retry' as const, attributes: counted } }
    }
    const { bulkRetry: started, message } = await bulkRetries.start(actor.workspace, action, filter, actorOf(actor))
    launch([message])
    return { data: present(started) }
  }

  /** @throws `AppError` 422 */
  const requireDestination = async (workspaceId: string, id: string): Promise<void> => {
    if (await destinations.exists(workspaceId, id)) return
    throw validationFailed([{ path: 'destination_id', message: 'there is no such destination in this workspace' }])
  }

  return [
    endpoint({
      method: 'POST',
      path: '/documents/retry',
      operation: 'startBulkRetry',
      level: 'member',
      audit: ['bulk_retry.started', 'document.retried'],
      summary: 'Retry documents in bulk',
      description: 'Retries every failed delivery that matches the filters, in the background. With `dry_run`, only counts them.',
      body: z
        .strictObject({
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
        })
        .meta({ id: 'BulkRetryInput' }),
      response: startResponse,
      status: 202,
      alternative: { ...dryRunOf, description: 'Dry run: how many documents and deliveries would be retried now.' },
      handle: async ({ body }, context) => {
        if (body.destinationId !== undefined) await requireDestination(context.workspaceId, body.destinationId)
        return begin('retry', body, context)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/documents/deliver',
      operation: 'startBulkDelivery',
      level: 'member',
      audit: ['bulk_retry.started', 'document.delivered_again'],
      summary: 'Deliver documents to a destination that was connected later, or again',
      description:
        'Delivers, in the background, the documents that were never planned for this destination, from the repositories that a connection leads ' +
        'from, as far as its filter selects them. Safe to repeat. With `again`, delivers those that the destination has, for example because it ' +
        'has lost them: each repetition of the request delivers them once more. Documents that were replaced or deleted, or whose content is ' +
        'gone, are left out.',
      body: z
        .strictObject({
          dry_run: z.boolean().default(false).describe('Only count the documents.'),
          destination_id: z.string().describe('The destination.'),
          again: z
            .boolean()
            .default(false)
            .describe('Deliver the documents that the destination has, instead of those that were never planned for it.'),
          document_ids: z
            .array(z.string().regex(idPattern, 'must be the id of a document'))
            .min(1)
            .max(selectedMax)
            .optional()
            .describe('Only these documents.'),
          repo_id: z.string().optional().describe('Only documents of this repository (`repo_id`).'),
          origin: z
            .literal('source')
            .optional()
            .describe(
              '`source`: only documents that the source system has sent to the relay or changed here. Copies of the upstream are left out.',
            ),
          date_from: dateFrom,
          date_to: dateTo,
          delivered_from: dateFrom.describe('With `again`: start of the range of the deliveries, inclusive, as in `date_from`.'),
          delivered_to: dateTo.describe('With `again`: end of the range of the deliveries, inclusive, as in `date_to`.'),
        })
        .superRefine(({ again, origin, ...rest }, context) => {
          const onlyAgain = (['delivered_from', 'delivered_to'] as const).filter((name) => !again && rest[name] !== undefined)
          for (const name of onlyAgain) context.addIssue({ code: 'custom', path: [name], message: 'needs again' })
          if (again && origin !== undefined)
            context.addIssue({ code: 'custom', path: ['origin'], message: 'cannot be combined with again' })
        })
        .meta({ id: 'BulkDeliveryInput' }),
      response: startResponse,
      status: 202,
      alternative: { ...dryRunOf, description: 'Dry run: how many documents match now, before the filters of connections.' },
      handle: async ({ body: { again, ...filter } }, context) => {
        await requireDestination(context.workspaceId, filter.destinationId)
        const unknown = await bulkRetries.findUnknown(context.workspaceId, filter.documentIds ?? [])
        if (unknown.length > 0) {
          const message = 'there is no such document in this workspace'
          throw validationFailed(unknown.map((index) => ({ path: `document_ids.${index}`, message })))
        }
        return begin('deliver', { ...filter, ...(again && { again }) }, context)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/documents/replay',
      operation: 'startBulkReplay',
      level: 'admin',
      audit: ['bulk_retry.started', 'request.replayed', 'document.acknowledged'],
      summary: 'Replay the requests of discarded documents',
      description:
        'Replays, in the background, the request of every document of a repository that was discarded for lack of a connection and was not ' +
        'acknowledged or replayed. A document counts as acknowledged when its replay has succeeded, so this is safe to repeat.',
      body: discardedBody,
      response: startResponse,
      conflict: 'No connection leads from the repository to a destination: the replays would be discarded again.',
      status: 202,
      alternative: { ...dryRunOf, description: 'Dry run: how many documents have such requests now.' },
      handle: async ({ body }, context) => {
        if (!body.dryRun && !(await discarded.isConnected(context.workspaceId, body.repoId))) {
          throw new AppError('conflict', `No connection leads from repository ${body.repoId} to a destination. Create a connection first.`)
        }
        return begin('replay', body, context)
      },
    }),

    endpoint({
      method: 'POST',
      path: '/documents/acknowledge',
      operation: 'startBulkAcknowledgement',
      level: 'member',
      audit: ['bulk_retry.started', 'document.acknowledged'],
      summary: 'Acknowledge discarded documents',
      description:
        'Acknowledges, in the background, every document of a repository that was discarded for lack of a connection: it is not needed anywhere.',
      body: discardedBody,
      response: startResponse,
      status: 202,
      alternative: { ...dryRunOf, description: 'Dry run: how many documents would be acknowledged now.' },
      handle: ({ body }, context) => begin('acknowledge', body, context),
    }),

    endpoint({
      method: 'GET',
      path: '/discarded',
      operation: 'listDiscardedGroups',
      level: 'viewer',
      summary: 'List discarded documents by repository',
      description:
        'Counts the documents that were discarded because no connection led from their repository to a destination, and that nobody has ' +
        'acknowledged or replayed. `POST /documents/replay` replays their requests, and `POST /documents/acknowledge` acknowledges them.',
      query: pageQuery,
      response: pageOfMany(discardedGroup),
      handle: async ({ query }, { workspaceId }) => toPage(await discarded.list(workspaceId, query), query, presentGroup),
    }),

    endpoint({
      method: 'GET',
      path: '/bulk-retries',
      level: 'viewer',
      summary: 'List bulk retries',
      description: 'Returns the bulk retries of the workspace with their progress, newest first.',
      query: pageQuery,
      response: pageOfMany(bulkRetry),
      handle: async ({ query }, { workspaceId }) => toPage(await bulkRetries.list(workspaceId, query), query, present),
    }),

    endpoint({
      method: 'GET',
      path: '/bulk-retries/:id',
      level: 'viewer',
      summary: 'Retrieve a bulk retry',
      description: 'Shows the progress of a bulk retry, and how many of its deliveries have arrived.',
      params: idParams,
      response: one(singleBulkRetry),
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
      response: one(singleBulkRetry),
      conflict: 'The bulk retry has already ended.',
      handle: async ({ params: { id } }, { workspaceId, actor }) => {
        await bulkRetries.find(workspaceId, id)
        if (!(await bulkRetries.cancel(id, actorOf(actor)))) throw new AppError('conflict', 'This bulk retry has already ended.')
        return { data: present(await bulkRetries.find(workspaceId, id)) }
      },
    }),
  ]
}
