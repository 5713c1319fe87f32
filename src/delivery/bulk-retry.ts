import { z } from 'zod'
import { documentsOf } from '../archive/document-list.ts'
import { newId } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, type StartBulkRetry } from '../db/outbox.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { columnsAs, toSnakeCase, type CamelCasedOutput } from '../domain/casing.ts'
import { timestamp } from '../domain/date-range.ts'
import { noErrorCode } from '../domain/delivery-states.ts'
import { ended } from './retry.ts'

export const bulkRetryFields = z.object({
  action: z
    .enum(['retry', 'replay', 'acknowledge', 'deliver'])
    .meta({ id: 'BulkAction' })
    .describe(
      '`retry`: failed deliveries. `replay`, `acknowledge`: the requests of discarded documents, or these documents. `deliver`: documents to a destination that was connected later, or that is to get them `again`.',
    ),
  status: z.enum(['running', 'completed', 'cancelled']).meta({ id: 'BulkRetryStatus' }),
  filter: z
    .object({
      repo_id: z.string().optional(),
      destination_id: z.string().optional(),
      error_code: z.string().optional(),
      origin: z.literal('source').optional(),
      again: z.boolean().optional(),
      document_ids: z.array(z.string()).optional(),
      date_from: timestamp.optional(),
      date_to: timestamp.optional(),
      delivered_from: timestamp.optional(),
      delivered_to: timestamp.optional(),
    })
    .meta({ id: 'BulkRetryFilter' }),
  matched_documents: z
    .int()
    .describe('Counted at the start. For `deliver`, at most 10,000 are counted, and the number grows if more are taken.'),
  matched_deliveries: z.int().describe('Counted at the start. For `deliver`, at most 10,000 are counted.'),
  retried_documents: z.int().describe('Documents to which the action was applied.'),
  retried_deliveries: z.int().describe('Deliveries that were made again, that the documents of the replays have, or that were planned.'),
  skipped_documents: z
    .int()
    .describe(
      'Documents to which it could not be applied, such as those whose request was refused again or has no body any more, or that the filter of the connection passes over.',
    ),
  created_at: timestamp,
  ended_at: timestamp.nullable(),
})

/** Outcome of the deliveries that a bulk retry has taken. */
export const bulkOutcome = z.object({
  delivered_deliveries: z
    .int()
    .describe('Of these deliveries: those that have arrived. Deliveries that a later bulk retry has taken count there.'),
  failed_deliveries: z.int().describe('Those that have failed again, or were cancelled.'),
  open_deliveries: z.int().describe('Those that wait or are under way.'),
})

type BulkRetryValues = CamelCasedOutput<typeof bulkRetryFields>
export type BulkAction = BulkRetryValues['action']
/** Selects documents. Both ends of a range are inclusive. */
export type BulkRetryFilter = BulkRetryValues['filter']
export type BulkRetry = BulkRetryValues & { id: string }
export type BulkOutcome = CamelCasedOutput<typeof bulkOutcome>
type Matched = Pick<BulkRetry, 'matchedDocuments' | 'matchedDeliveries'>

const nounOf: Record<BulkAction, string> = { retry: 'retry', replay: 'replay', acknowledge: 'acknowledgement', deliver: 'delivery' }

export const bulkRetryColumns = columnsAs(
  'id, action, status, filter, matched_documents, matched_deliveries, retried_documents, retried_deliveries, skipped_documents, created_at, ended_at',
)

// jsonb holds dates as text.
export const parseFilter = <Row extends BulkRetry>(row: Row): Row => {
  const dates = (['dateFrom', 'dateTo', 'deliveredFrom', 'deliveredTo'] as const).flatMap((name) => {
    const date = row.filter[name]
    return date ? [[name, new Date(date)] as const] : []
  })
  return { ...row, filter: { ...row.filter, ...Object.fromEntries(dates) } }
}

/**
 * Selects the failed and cancelled deliveries of the failed documents that a filter matches, by the index documents_failed_and_open. A
 * document that an operator has acknowledged is left out, and so is one whose content is gone.
 */
const retryableDeliveries = (db: Database | Transaction, workspaceId: string, filter: BulkRetryFilter) => {
  const query = documentsOf(db, workspaceId, filter)
    .where({ 'documents.status': 'failed' })
    .whereNull('acknowledged_at')
    .whereNotNull('content_id')
    .join('deliveries', 'deliveries.document_id', 'documents.id')
    .whereIn('deliveries.status', ended)
    .join('destinations', 'destinations.id', 'deliveries.destination_id')
    .whereNull('destinations.deleted_at')
  if (filter.destinationId !== undefined) query.where({ destination_id: filter.destinationId })
  if (filter.errorCode !== undefined) query.where({ last_error_code: filter.errorCode === noErrorCode ? null : filter.errorCode })
  return query
}

/** Selects the documents of `retryableDeliveries`. Without the `offset`, the planner may read all failed deliveries of all workspaces. */
export const retryableDocuments = (
  db: Database | Transaction,
  workspaceId: string,
  { destinationId, errorCode, ...filter }: BulkRetryFilter,
) =>
  documentsOf(db, workspaceId, filter)
    .where({ 'documents.status': 'failed' })
    .whereNull('acknowledged_at')
    .whereNotNull('content_id')
    .whereRaw(
      `exists (
        select
        from deliveries
        join destinations on destinations.id = deliveries.destination_id
        where deliveries.document_id = documents.id
          and deliveries.status = any (:ended)
          and destinations.deleted_at is null
          and (:destinationId::text is null or destination_id = :destinationId)
          and (:errorCode::text is null or coalesce(last_error_code, :noErrorCode) = :errorCode)
        offset 0
      )`,
      { ended, destinationId: destinationId ?? null, errorCode: errorCode ?? null, noErrorCode },
    )

/** Selects the documents that a filter matches, that were discarded for lack of a connection, and that were neither acknowledged nor replayed. */
export const discardedDocuments = (db: Database, workspaceId: string, filter: BulkRetryFilter) =>
  documentsOf(db, workspaceId, filter).where('is_unconnected', true).whereNull('acknowledged_at')

/**
 * Selects the documents that a filter matches and that were never planned for its destination, to which a connection leads. A document that
 * was replaced or deleted is left out, and so is one whose content is gone.
 */
const undeliveredDocuments = (db: Database, workspaceId: string, filter: BulkRetryFilter) => {
  const { destinationId, origin } = filter
  const query = documentsOf(db, workspaceId, filter)
    .whereNull('superseded_at')
    .join('contents', 'contents.id', 'content_id')
    .whereIn('repository_id', (connected) => {
      void connected
        .select('repository_id')
        .from('connection_repositories')
        .join('connection_destinations', 'connection_destinations.connection_id', 'connection_repositories.connection_id')
        .where({ destination_id: destinationId! })
    })
    .whereNotExists((planned) => {
      void planned.from('deliveries').whereRaw('document_id = documents.id').where({ destination_id: destinationId! })
    })
  // An append changes a document that was fetched, and leaves its origin.
  if (origin === 'source') query.andWhere((either) => void either.where({ origin }).orWhere('appends', '>', 0))
  return query
}

/**
 * Selects the documents that a filter matches and that its destination has, according to the relay. A document that was replaced or deleted
 * is left out, and so is one whose content is gone.
 */
const deliveredDocuments = (
  db: Database,
  workspaceId: string,
  { destinationId, deliveredFrom, deliveredTo, ...filter }: BulkRetryFilter,
) => {
  const query = documentsOf(db, workspaceId, filter)
    .whereNull('superseded_at')
    .whereNotNull('content_id')
    .whereExists((delivered) => {
      void delivered
        .from('deliveries')
        .whereRaw('document_id = documents.id')
        .where({ destination_id: destinationId!, status: 'delivered' })
      if (deliveredFrom) void delivered.where('delivered_at', '>=', deliveredFrom)
      if (deliveredTo) void delivered.where('delivered_at', '<=', deliveredTo)
    })
  // So that a page ends where the delivered ones end: nothing is delivered before it is received.
  if (deliveredTo) query.where('received_at', '<=', deliveredTo)
  return query
}

/** Selects the documents of a bulk delivery. */
export const documentsToDeliver = (db: Database, workspaceId: string, filter: BulkRetryFilter) => {
  const query = (filter.again ? deliveredDocuments : undeliveredDocuments)(db, workspaceId, filter)
  return filter.documentIds ? query.whereIn('documents.id', filter.documentIds) : query
}

// Of a bulk delivery, which may take a whole archive: a request waits for the count.
const maxCounted = 10_000

export const createBulkRetries = (db: Database) => {
  const count = async (workspaceId: string, action: BulkAction, filter: BulkRetryFilter): Promise<Matched> => {
    if (action === 'deliver') {
      const some = documentsToDeliver(db, workspaceId, filter).select('documents.id').limit(maxCounted)
      const [matched] = await db.from(some.as('some')).count<{ documents: number }[]>({ documents: '*' })
      return { matchedDocuments: matched!.documents, matchedDeliveries: matched!.documents }
    }
    if (action !== 'retry') {
      const [discarded] = await discardedDocuments(db, workspaceId, filter).count<{ matchedDocuments: number }[]>({ matchedDocuments: '*' })
      return { ...discarded!, matchedDeliveries: 0 }
    }
    const [row] = await retryableDeliveries(db, workspaceId, filter)
      .countDistinct({ matchedDocuments: 'documents.id' })
      .count<Matched[]>({ matchedDeliveries: '*' })
    return row!
  }

  /** @throws `AppError` 404 */
  const find = async (workspaceId: string, id: string): Promise<BulkRetry & BulkOutcome> => {
    const row = await db('bulk_retries').select<BulkRetry[]>(bulkRetryColumns).where({ workspace_id: workspaceId, id }).first()
    if (!row) throw notFound()
    return { ...parseFilter(row), ...(await outcomeOf(id)) }
  }

  const outcomeOf = async (id: string): Promise<BulkOutcome> => {
    const { rows } = await db.raw<{ rows: BulkOutcome[] }>(
      `
      select
        count(*) filter (where status = 'delivered') as "deliveredDeliveries",
        count(*) filter (where status in ('failed', 'cancelled')) as "failedDeliveries",
        count(*) filter (where status in ('pending', 'held', 'retrying')) as "openDeliveries"
      from deliveries
      where bulk_retry_id = :id
      `,
      { id },
    )
    return rows[0]!
  }

  return {
    /** Counts what a bulk retry with this filter would take now. */
    count,

    /** Returns the positions of the ids that no document of the workspace has. */
    findUnknown: async (workspaceId: string, documentIds: readonly string[]): Promise<number[]> => {
      const known = new Set(await db('documents').where({ workspace_id: workspaceId }).whereIn('id', documentIds).pluck<string[]>('id'))
      return documentIds.flatMap((id, index) => (known.has(id) ? [] : [index]))
    },

    find,

    /** Lists bulk retries, newest first. */
    list: async (workspaceId: string, page: PageRequest): Promise<Page<BulkRetry>> => {
      const query = db('bulk_retries').where({ workspace_id: workspaceId }).orderBy('id', 'desc')
      const { items, total } = await pageOf<BulkRetry>(query, bulkRetryColumns, page)
      return { items: items.map(parseFilter), total }
    },

    /** Inserts a bulk retry. The message starts its workflow. */
    start: async (
      workspace: { id: string; userSlug: string; workspaceSlug: string },
      action: BulkAction,
      filter: BulkRetryFilter,
      actor: AuditActor,
    ): Promise<{ bulkRetry: BulkRetry; message: StartBulkRetry }> => {
      const { matchedDocuments, matchedDeliveries } = await count(workspace.id, action, filter)
      const counts = { matched_documents: matchedDocuments, matched_deliveries: matchedDeliveries }
      const message: StartBulkRetry = {
        kind: 'startBulkRetry',
        input: { bulkRetryId: newId(), workspace: `${workspace.userSlug}/${workspace.workspaceSlug}` },
      }
      const bulkRetry = await db.transaction(async (trx) => {
        const [inserted]: BulkRetry[] = await trx('bulk_retries')
          .insert({
            id: message.input.bulkRetryId,
            workspace_id: workspace.id,
            action,
            filter: JSON.stringify(filter),
            ...counts,
            actor_type: actor.type,
            user_id: actor.userId,
            actor_id: actor.type === 'system' ? null : actor.id,
            actor_name: actor.type === 'system' ? null : actor.name,
          })
          .returning(bulkRetryColumns)
        await addMessages(trx, [message])
        await record(trx, {
          workspaceId: workspace.id,
          event: 'bulk_retry.started',
          subjectId: message.input.bulkRetryId,
          description: `A bulk ${nounOf[action]} of ${matchedDocuments} documents was started.`,
          metadata: { action, filter: toSnakeCase(bulkRetryFields.shape.filter, filter), ...counts },
          actor,
        })
        return parseFilter(inserted!)
      })
      return { bulkRetry, message }
    },

    /**
     * Stops a running bulk retry before its next document. Documents that were retried stay retried.
     * @returns false if it does not run
     */
    cancel: (id: string, actor: AuditActor): Promise<boolean> =>
      db.transaction(async (trx) => {
        const [cancelled]: { workspaceId: string; action: BulkAction; retried: number; matched: number }[] = await trx('bulk_retries')
          .where({ id, status: 'running' })
          .update({ status: 'cancelled', ended_at: trx.fn.now() })
          .returning(['workspace_id as workspaceId', 'action', 'retried_documents as retried', 'matched_documents as matched'])
        if (!cancelled) return false
        const { workspaceId, action, retried, matched } = cancelled
        await record(trx, {
          workspaceId,
          event: 'bulk_retry.cancelled',
          subjectId: id,
          description: `A bulk ${nounOf[action]} was cancelled after ${retried} of ${matched} documents.`,
          metadata: { retried_documents: retried, matched_documents: matched },
          actor,
        })
        return true
      }),
  }
}

export type BulkRetries = ReturnType<typeof createBulkRetries>
