import type { DeliveryTermsConfig } from '../archive/delivery-terms.ts'
import { documentsOf } from '../archive/document-list.ts'
import { newId } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, type StartBulkRetry } from '../db/outbox.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { noErrorCode } from '../domain/delivery-states.ts'
import { ended, lockDocument, requeue } from './retry.ts'

/** Selects failed documents. */
export interface BulkRetryFilter {
  repoId?: string | undefined
  destinationId?: string | undefined
  /** Code of the last error, or `none`. */
  errorCode?: string | undefined
  /** Time of receipt; both ends are inclusive. */
  dateFrom?: Date | undefined
  dateTo?: Date | undefined
}

interface Matched {
  matchedDocuments: number
  matchedDeliveries: number
}

export interface BulkRetry extends Matched {
  id: string
  status: 'running' | 'completed' | 'cancelled'
  filter: BulkRetryFilter
  retriedDocuments: number
  retriedDeliveries: number
  createdAt: Date
  endedAt: Date | null
}

interface StoredBulkRetry extends BulkRetry {
  workspaceId: string
  documentCursor: string
  actorType: AuditActor['type']
  userId: string | null
  /** Null if the actor was not an API key. */
  keyId: string | null
  keyName: string | null
}

const columns = [
  'id',
  'status',
  'filter',
  'matched_documents as matchedDocuments',
  'matched_deliveries as matchedDeliveries',
  'retried_documents as retriedDocuments',
  'retried_deliveries as retriedDeliveries',
  'created_at as createdAt',
  'ended_at as endedAt',
]

// jsonb holds dates as text.
const parseFilter = <Row extends BulkRetry>(row: Row): Row => {
  const { dateFrom, dateTo, ...filter } = row.filter
  return {
    ...row,
    filter: { ...filter, ...(dateFrom && { dateFrom: new Date(dateFrom) }), ...(dateTo && { dateTo: new Date(dateTo) }) },
  }
}

const recordedFilter = ({ repoId, destinationId, errorCode, dateFrom, dateTo }: BulkRetryFilter) => ({
  ...(repoId !== undefined && { repo_id: repoId }),
  ...(destinationId !== undefined && { destination_id: destinationId }),
  ...(errorCode !== undefined && { error_code: errorCode }),
  ...(dateFrom && { date_from: dateFrom }),
  ...(dateTo && { date_to: dateTo }),
})

/** Returns the actor who requested a bulk retry. Each document that it retries has an audit entry of this actor. */
const actorOf = ({ actorType, userId, keyId, keyName }: StoredBulkRetry): AuditActor =>
  actorType === 'api_key' ? { type: actorType, userId, keyId: keyId ?? '', keyName: keyName ?? '' } : { type: actorType, userId }

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

export const createBulkRetries = (db: Database, config: DeliveryTermsConfig) => {
  const count = async (workspaceId: string, filter: BulkRetryFilter): Promise<Matched> => {
    const [row] = await retryableDeliveries(db, workspaceId, filter)
      .countDistinct({ matchedDocuments: 'documents.id' })
      .count<Matched[]>({ matchedDeliveries: '*' })
    return row!
  }

  /** @throws `AppError` 404 */
  const find = async (workspaceId: string, id: string): Promise<BulkRetry> => {
    const row = await db('bulk_retries').select<BulkRetry[]>(columns).where({ workspace_id: workspaceId, id }).first()
    if (!row) throw notFound()
    return parseFilter(row)
  }

  return {
    /** Counts what a bulk retry with this filter would retry now. */
    count,

    find,

    /** Lists bulk retries, newest first. */
    list: async (workspaceId: string, page: PageRequest): Promise<Page<BulkRetry>> => {
      const query = db('bulk_retries').where({ workspace_id: workspaceId }).orderBy('id', 'desc')
      const { items, total } = await pageOf<BulkRetry>(query, columns, page)
      return { items: items.map(parseFilter), total }
    },

    /** Inserts a bulk retry. The message starts its workflow. */
    start: async (
      workspace: { id: string; userSlug: string; workspaceSlug: string },
      filter: BulkRetryFilter,
      actor: AuditActor,
    ): Promise<{ bulkRetry: BulkRetry; message: StartBulkRetry }> => {
      const matched = await count(workspace.id, filter)
      const message: StartBulkRetry = {
        kind: 'startBulkRetry',
        input: { bulkRetryId: newId(), workspace: `${workspace.userSlug}/${workspace.workspaceSlug}` },
      }
      const bulkRetry = await db.transaction(async (trx) => {
        const [inserted]: BulkRetry[] = await trx('bulk_retries')
          .insert({
            id: message.input.bulkRetryId,
            workspace_id: workspace.id,
            filter: JSON.stringify(filter),
            matched_documents: matched.matchedDocuments,
            matched_deliveries: matched.matchedDeliveries,
            actor_type: actor.type,
            user_id: actor.userId,
            key_id: actor.type === 'api_key' ? actor.keyId : null,
            key_name: actor.type === 'api_key' ? actor.keyName : null,
          })
          .returning(columns)
        await addMessages(trx, [message])
        await record(trx, {
          workspaceId: workspace.id,
          event: 'bulk_retry.started',
          subjectId: message.input.bulkRetryId,
          description: `A bulk retry of ${matched.matchedDocuments} documents was started.`,
          metadata: {
            filter: recordedFilter(filter),
            matched_documents: matched.matchedDocuments,
            matched_deliveries: matched.matchedDeliveries,
          },
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
        const [cancelled] = await trx('bulk_retries')
          .where({ id, status: 'running' })
          .update({ status: 'cancelled', ended_at: trx.fn.now() })
          .returning(['workspace_id as workspaceId', 'retried_documents as retried', 'matched_documents as matched'])
        if (!cancelled) return false
        const { workspaceId, retried, matched } = cancelled
        await record(trx, {
          workspaceId,
          event: 'bulk_retry.cancelled',
          subjectId: id,
          description: `A bulk retry was cancelled after ${retried} of ${matched} documents.`,
          metadata: { retried_documents: retried, matched_documents: matched },
          actor,
        })
        return true
      }),

    /**
     * Retries the next documents, each in a transaction that also records the progress. The dispatcher begins their deliveries.
     * @param advanced is called after each document
     * @returns the bulk retry after that, or undefined if it does not exist
     */
    retryPage: async (id: string, limit: number, advanced: () => void): Promise<BulkRetry | undefined> => {
      const stored: StoredBulkRetry | undefined = await db('bulk_retries')
        .select([
          ...columns,
          'workspace_id as workspaceId',
          'document_cursor as documentCursor',
          'actor_type as actorType',
          'user_id as userId',
          'key_id as keyId',
          'key_name as keyName',
        ])
        .where({ id })
        .first()
      if (!stored || stored.status !== 'running') return stored && parseFilter(stored)
      const { workspaceId, documentCursor, filter } = parseFilter(stored)
      const actor = actorOf(stored)
      const page: { id: string }[] = await retryableDeliveries(db, workspaceId, filter)
        .distinct('documents.id')
        .where('documents.id', '>', documentCursor)
        // Documents received after the start of the bulk retry are not retried.
        .where('documents.id', '<', id)
        .orderBy('documents.id')
        .limit(limit)
      for (const document of page) {
        const isRunning = await db.transaction(async (trx) => {
          const current: { cursor: string } | undefined = await trx('bulk_retries')
            .select('document_cursor as cursor')
            .where({ id, status: 'running' })
            .forNoKeyUpdate()
            .first()
          if (!current) return false
          // Another run of this page may have retried the document.
          if (current.cursor >= document.id || !(await lockDocument(trx, { workspaceId, documentId: document.id }))) return true
          const retried = await requeue(
            trx,
            {
              workspaceId,
              documentId: document.id,
              destinationId: filter.destinationId,
              errorCode: filter.errorCode,
              statuses: ended,
              actor,
              bulkRetryId: id,
            },
            config,
          )
          await trx('bulk_retries')
            .where({ id })
            .update({
              document_cursor: document.id,
              retried_documents: trx.raw('retried_documents + ?', [retried.length > 0 ? 1 : 0]),
              retried_deliveries: trx.raw('retried_deliveries + ?', [retried.length]),
            })
          return true
        })
        if (!isRunning) break
        advanced()
      }
      if (page.length < limit) {
        await db('bulk_retries').where({ id, status: 'running' }).update({ status: 'completed', ended_at: db.fn.now() })
      }
      return find(workspaceId, id)
    },
  }
}

export type BulkRetries = ReturnType<typeof createBulkRetries>
