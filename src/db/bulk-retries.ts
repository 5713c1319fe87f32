import { newId } from '../ids.ts'
import type { AuditActor } from './audit.ts'
import type { Database, Transaction } from './database.ts'
import { documentsOf } from './documents.ts'
import { addMessages, type BulkRetryMessage, type RetryMessage } from './outbox.ts'
import type { Workflow } from './planned-documents.ts'
import { lockDocument, retryDeliveries } from './retries.ts'

/** Which failed documents, and to which destination. */
export interface BulkRetryFilter {
  repoId?: string | undefined
  destinationId?: string | undefined
  /** Both inclusive, of the receipt. */
  dateFrom?: Date | undefined
  dateTo?: Date | undefined
}

export interface Matched {
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

interface Stored extends BulkRetry {
  workspaceId: string
  documentCursor: string
  actorType: AuditActor['type']
  userId: string | null
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

// jsonb knows no dates
const fromStored = <Row extends BulkRetry>(row: Row): Row => {
  const { dateFrom, dateTo, ...filter } = row.filter
  return {
    ...row,
    filter: { ...filter, ...(dateFrom && { dateFrom: new Date(dateFrom) }), ...(dateTo && { dateTo: new Date(dateTo) }) },
  }
}

/** Failed deliveries that the filter matches; the index by status serves the order of ids. */
const failedDeliveries = (db: Database | Transaction, workspaceId: string, filter: BulkRetryFilter) => {
  const query = documentsOf(db, workspaceId, filter)
    .where({ 'documents.status': 'failed' })
    .join('deliveries', 'deliveries.document_id', 'documents.id')
    .where({ 'deliveries.status': 'failed' })
    .join('destinations', 'destinations.id', 'deliveries.destination_id')
    .whereNull('destinations.deleted_at')
  if (filter.destinationId !== undefined) query.where({ destination_id: filter.destinationId })
  return query
}

export const createBulkRetries = (db: Database, config: Workflow) => {
  const count = async (workspaceId: string, filter: BulkRetryFilter): Promise<Matched> => {
    const [row] = await failedDeliveries(db, workspaceId, filter)
      .countDistinct({ matchedDocuments: 'documents.id' })
      .count<Matched[]>({ matchedDeliveries: '*' })
    return row!
  }

  const find = async (workspaceId: string, id: string): Promise<BulkRetry | undefined> => {
    const row = await db('bulk_retries').select<BulkRetry[]>(columns).where({ workspace_id: workspaceId, id }).first()
    return row && fromStored(row)
  }

  return {
    /** What a bulk retry of this filter would retry now. */
    count,

    find,

    /** Begins one: its workflow is started by the message. */
    begin: async (
      workspace: { id: string; userSlug: string; workspaceSlug: string },
      filter: BulkRetryFilter,
      actor: AuditActor,
    ): Promise<{ bulkRetry: BulkRetry; message: BulkRetryMessage }> => {
      const matched = await count(workspace.id, filter)
      const message: BulkRetryMessage = {
        kind: 'bulk-retry',
        bulkRetryId: newId(),
        workspace: `${workspace.userSlug}/${workspace.workspaceSlug}`,
      }
      const bulkRetry = await db.transaction(async (trx) => {
        const [inserted]: BulkRetry[] = await trx('bulk_retries')
          .insert({
            id: message.bulkRetryId,
            workspace_id: workspace.id,
            filter: JSON.stringify(filter),
            matched_documents: matched.matchedDocuments,
            matched_deliveries: matched.matchedDeliveries,
            actor_type: actor.type,
            user_id: actor.userId,
          })
          .returning(columns)
        await addMessages(trx, [message])
        return fromStored(inserted!)
      })
      return { bulkRetry, message }
    },

    /** Ends it before its next document; what has been retried stays so. Does nothing to one that has ended. */
    cancel: async (id: string): Promise<void> => {
      await db('bulk_retries').where({ id, status: 'running' }).update({ status: 'cancelled', ended_at: db.fn.now() })
    },

    /** The next documents, each in a transaction with the account of it. @param send takes what each of them has committed, before the next one */
    retryPage: async (id: string, limit: number, send: (messages: RetryMessage[]) => Promise<void>): Promise<BulkRetry | undefined> => {
      const begun: Stored | undefined = await db('bulk_retries')
        .select([
          ...columns,
          'workspace_id as workspaceId',
          'document_cursor as documentCursor',
          'actor_type as actorType',
          'user_id as userId',
        ])
        .where({ id })
        .first()
      if (!begun || begun.status !== 'running') return begun && fromStored(begun)
      const { workspaceId, documentCursor, filter, ...rest } = fromStored(begun)
      const actor = { type: rest.actorType, userId: rest.userId }
      const page: { id: string }[] = await failedDeliveries(db, workspaceId, filter)
        .distinct('documents.id')
        .where('documents.id', '>', documentCursor)
        // what has come since is none of its business
        .where('documents.id', '<', id)
        .orderBy('documents.id')
        .limit(limit)
      for (const document of page) {
        const start = { workspaceId, documentId: document.id, destinationId: filter.destinationId, statuses: ['failed'] }
        const messages = await db.transaction(async (trx) => {
          const current: { cursor: string } | undefined = await trx('bulk_retries')
            .select('document_cursor as cursor')
            .where({ id, status: 'running' })
            .forNoKeyUpdate()
            .first()
          if (!current) return undefined
          // another run of this page was here before
          if (current.cursor >= document.id || !(await lockDocument(trx, { workspaceId, documentId: document.id }))) return []
          const retried = await retryDeliveries(trx, { ...start, actor, bulkRetryId: id }, config)
          await trx('bulk_retries')
            .where({ id })
            .update({
              document_cursor: document.id,
              retried_documents: trx.raw('retried_documents + ?', [retried.length > 0 ? 1 : 0]),
              retried_deliveries: trx.raw('retried_deliveries + ?', [retried.length]),
            })
          return retried
        })
        if (!messages) break
        await send(messages)
      }
      if (page.length < limit) {
        await db('bulk_retries').where({ id, status: 'running' }).update({ status: 'completed', ended_at: db.fn.now() })
      }
      return find(workspaceId, id)
    },
  }
}

export type BulkRetries = ReturnType<typeof createBulkRetries>
