import type { DeliveryTermsConfig } from '../archive/delivery-input.ts'
import { AppError } from '../base/errors.ts'
import type { Replay } from '../capture/replay.ts'
import { systemActor, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { columnsAs } from '../domain/casing.ts'
import type { Acknowledge } from './acknowledge.ts'
import {
  bulkRetryColumns,
  discardedDocuments,
  parseFilter,
  retryableDocuments,
  documentsToDeliver,
  type BulkAction,
  type BulkRetry,
} from './bulk-retry.ts'
import { planExisting } from './plan-existing.ts'
import { deliverAgain } from './redeliver.ts'
import { ended, lockDocument, requeue } from './retry.ts'

interface StoredBulkRetry extends BulkRetry {
  workspaceId: string
  documentCursor: string
  /** Time of receipt of the last document. Null before the first. */
  receivedCursor: Date | null
  actorType: AuditActor['type']
  userId: string | null
  /** Null if the actor was neither an API key nor a person. */
  actorId: string | null
  actorName: string | null
}

/** A document at its place in the order of receipt. */
interface Received {
  id: string
  receivedAt: Date
}

/** What became of one document. */
interface Outcome {
  documents: number
  deliveries: number
  skipped: number
  /** The request that has replayed the one of the document. */
  replay?: string
}

const nothing: Outcome = { documents: 0, deliveries: 0, skipped: 0 }
const skipped: Outcome = { ...nothing, skipped: 1 }

/** Returns the actor who requested a bulk retry, whose audit entry each document has that is retried, replayed or acknowledged. */
const actorOf = ({ actorType, userId, actorId, actorName }: StoredBulkRetry): AuditActor =>
  actorType === 'system' ? systemActor : { type: actorType, userId, id: actorId ?? '', name: actorName ?? '' }

const documentsFor: Record<BulkAction, typeof discardedDocuments> = {
  retry: retryableDocuments,
  replay: discardedDocuments,
  acknowledge: discardedDocuments,
  deliver: documentsToDeliver,
}

/** The relay could not answer a replay, because it lacks the database or the content store. Temporal runs the page again. */
const unavailable = 503

interface PageDeps {
  db: Database
  replay: Replay
  acknowledgeReplayed(workspaceId: string, requestId: string, newRequestId: string, actor: AuditActor): Promise<number>
  acknowledge: Acknowledge
  config: DeliveryTermsConfig
}

export const createBulkPage = ({ db, replay, acknowledge, acknowledgeReplayed, config }: PageDeps) => {
  const find = async (id: string): Promise<StoredBulkRetry | undefined> => {
    const stored: StoredBulkRetry | undefined = await db('bulk_retries')
      .select([
        ...bulkRetryColumns,
        ...columnsAs('workspace_id, document_cursor, received_cursor, actor_type, user_id, actor_id, actor_name'),
      ])
      .where({ id })
      .first()
    return stored && parseFilter(stored)
  }

  /** Finds the next documents in the order of their receipt, which the indexes of documents have: a page reads what it takes. */
  const findNext = (bulkRetry: StoredBulkRetry, limit: number): Promise<Received[]> => {
    const { id, action, workspaceId, documentCursor, receivedCursor, filter } = bulkRetry
    const query = documentsFor[action](db, workspaceId, filter)
      .select<Received[]>('documents.id', 'received_at as receivedAt')
      // Documents received after the start of the bulk retry are not taken.
      .where('documents.id', '<', id)
      .orderBy([{ column: 'received_at' }, { column: 'documents.id' }])
      .limit(limit)
    if (receivedCursor) query.whereRaw('(received_at, documents.id) > (?, ?)', [receivedCursor, documentCursor])
    return query
  }

  /** Takes the document in a transaction that also records the progress. @returns false if the bulk retry does not run any more */
  const advance = (id: string, document: Received, take: (trx: Transaction) => Promise<Outcome>): Promise<boolean> =>
    db.transaction(async (trx) => {
      const position = [document.receivedAt, document.id]
      const current: { isTaken: boolean } | undefined = await trx('bulk_retries')
        .select(trx.raw('coalesce((received_cursor, document_cursor) >= (?, ?), false) as "isTaken"', position))
        .where({ id, status: 'running' })
        .forNoKeyUpdate()
        .first()
      if (!current) return false
      // Another run of this page may have taken the document.
      if (current.isTaken) return true
      const { documents, deliveries, skipped: left } = await take(trx)
      await trx('bulk_retries')
        .where({ id })
        .update({
          document_cursor: document.id,
          received_cursor: document.receivedAt,
          retried_documents: trx.raw('retried_documents + ?', [documents]),
          retried_deliveries: trx.raw('retried_deliveries + ?', [deliveries]),
          skipped_documents: trx.raw('skipped_documents + ?', [left]),
          // The count at the start may have ended at its limit.
          matched_documents: trx.raw('greatest(matched_documents, retried_documents + skipped_documents + ?)', [documents + left]),
        })
      return true
    })

  const retry = async (trx: Transaction, bulkRetry: StoredBulkRetry, documentId: string): Promise<Outcome> => {
    const { id: bulkRetryId, workspaceId, filter } = bulkRetry
    if (!(await lockDocument(trx, { workspaceId, documentId }))) return nothing
    const { destinationId, errorCode } = filter
    const request = { workspaceId, documentId, destinationId, errorCode, statuses: ended, actor: actorOf(bulkRetry), bulkRetryId }
    const { length } = await requeue(trx, request, config)
    return length > 0 ? { ...nothing, documents: 1, deliveries: length } : skipped
  }

  const deliver = async (trx: Transaction, bulkRetry: StoredBulkRetry, documentId: string): Promise<Outcome> => {
    const { id: bulkRetryId, workspaceId, filter } = bulkRetry
    if (!(await lockDocument(trx, { workspaceId, documentId }))) return nothing
    const delivery = { documentId, destinationId: filter.destinationId!, bulkRetryId }
    const isPlanned = filter.again
      ? await deliverAgain(trx, { ...delivery, workspaceId, actor: actorOf(bulkRetry) })
      : await planExisting(trx, delivery)
    return isPlanned ? { ...nothing, documents: 1, deliveries: 1 } : skipped
  }

  /** Returns the replay of a request that has created this document, if there is one: the page was broken off, or a person has replayed it. */
  const findReplay = async (documentId: string): Promise<string | undefined> => {
    const { rows } = await db.raw<{ rows: { id: string }[] }>(
      `
      select captured_requests.id
      from documents as discarded
      join documents as replayed
        on replayed.workspace_id = discarded.workspace_id
        and replayed.repo_id = discarded.repo_id
        and replayed.doc_id = discarded.doc_id
      join captured_requests on captured_requests.id = replayed.request_id
      where discarded.id = :documentId
        and replay_of = discarded.request_id
      limit 1
      `,
      { documentId },
    )
    return rows[0]?.id
  }

  /** Counts the deliveries of the documents that a replay has created as those of the bulk retry. @returns how many there are */
  const claimReplayed = async (trx: Transaction, { id, workspaceId }: StoredBulkRetry, replayId: string | undefined): Promise<number> => {
    if (replayId === undefined) return 0
    const documents: { id: string }[] = await trx('documents')
      .select('id')
      .where({ workspace_id: workspaceId, request_id: replayId })
      .orderBy('id')
      .forNoKeyUpdate()
    const ids = documents.map((document) => document.id)
    return trx('deliveries').whereIn('document_id', ids).update({ bulk_retry_id: id })
  }

  /** Replays the request of a discarded document. It may have contained several, which are then all acknowledged. */
  const replayOne = async (bulkRetry: StoredBulkRetry, documentId: string): Promise<Outcome> => {
    const { workspaceId } = bulkRetry
    const actor = actorOf(bulkRetry)
    const found: { requestId: string; acknowledgedAt: Date | null } | undefined = await db('documents')
      .select('request_id as requestId', 'acknowledged_at as acknowledgedAt')
      .where({ id: documentId })
      .first()
    if (!found || found.acknowledgedAt) return nothing
    const earlier = await findReplay(documentId)
    if (earlier !== undefined) {
      return { ...nothing, documents: await acknowledgeReplayed(workspaceId, found.requestId, earlier, actor), replay: earlier }
    }
    try {
      const { statusCode, acknowledged, newRequestId } = await replay(workspaceId, found.requestId, actor)
      if (statusCode === unavailable) throw new AppError('unavailable', 'The replay was answered with 503.')
      return acknowledged > 0 ? { ...nothing, documents: acknowledged, replay: newRequestId } : skipped
    } catch (thrown) {
      // The request or its body is no longer stored.
      if (thrown instanceof AppError && (thrown.code === 'not_found' || thrown.code === 'conflict')) return skipped
      throw thrown
    }
  }

  const acknowledgeOne = async (bulkRetry: StoredBulkRetry, documentId: string): Promise<Outcome> => {
    await acknowledge(bulkRetry.workspaceId, documentId, actorOf(bulkRetry))
    return { ...nothing, documents: 1 }
  }

  const take = async (bulkRetry: StoredBulkRetry, document: Received): Promise<boolean> => {
    const documentId = document.id
    if (bulkRetry.action === 'retry') return advance(bulkRetry.id, document, (trx) => retry(trx, bulkRetry, documentId))
    if (bulkRetry.action === 'deliver') return advance(bulkRetry.id, document, (trx) => deliver(trx, bulkRetry, documentId))
    if (!(await db('bulk_retries').where({ id: bulkRetry.id, status: 'running' }).first('id'))) return false
    // A replay takes its own transactions. A second run of this page finds what the first one has done.
    const outcome = await (bulkRetry.action === 'replay' ? replayOne : acknowledgeOne)(bulkRetry, documentId)
    return advance(bulkRetry.id, document, async (trx) => ({
      ...outcome,
      deliveries: await claimReplayed(trx, bulkRetry, outcome.replay),
    }))
  }

  /**
   * Takes the next documents, and records the progress after each. The dispatcher begins their deliveries.
   * @param advanced is called after each document
   * @returns the bulk retry after that, or undefined if it does not exist
   */
  return async (id: string, limit: number, advanced: () => void): Promise<BulkRetry | undefined> => {
    const bulkRetry = await find(id)
    if (!bulkRetry || bulkRetry.status !== 'running') return bulkRetry
    const documents = await findNext(bulkRetry, limit)
    for (const document of documents) {
      if (!(await take(bulkRetry, document))) break
      advanced()
    }
    if (documents.length < limit) {
      await db('bulk_retries').where({ id, status: 'running' }).update({ status: 'completed', ended_at: db.fn.now() })
    }
    return find(id)
  }
}

export type BulkPage = ReturnType<typeof createBulkPage>
