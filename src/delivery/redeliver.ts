import type { AppendedDocument } from '../archive/append.ts'
import type { Config } from '../config/config.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { transitions } from '../domain/delivery-states.ts'
import { newerCopies } from './newer-copy.ts'
import type { DeliveryRef } from './transition.ts'

// A document is delivered again as a new revision, with a document workflow of its own, if its delivered bytes are no longer right, or on request.

/**
 * Sets the given deliveries of a document back to `pending`, if they were delivered to a destination that still exists.
 * @param reset.beginAt when the dispatcher has to begin them
 * @param reset.bulkRetryId the bulk retry of the person who asks for it
 * @returns false if there is none
 */
const resetDelivered = async (
  trx: Transaction,
  documentId: string,
  { beginAt, destinationId, bulkRetryId }: { beginAt: string; destinationId?: string; bulkRetryId?: string },
): Promise<boolean> => {
  const { from, to } = transitions.redeliver
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `
    update deliveries
    set
      status = :to, delivered_at = null, begin_as = 'document', begin_at = :beginAt::timestamptz,
      again = again + case when :bulkRetryId::text is null then 0 else 1 end,
      bulk_retry_id = coalesce(:bulkRetryId, bulk_retry_id)
    from destinations
    where document_id = :documentId
      and (:destinationId::text is null or destination_id = :destinationId)
      and deliveries.status = any (:from)
      and destinations.id = deliveries.destination_id
      and deleted_at is null
    `,
    { documentId, destinationId: destinationId ?? null, bulkRetryId: bulkRetryId ?? null, beginAt, from: [...from], to },
  )
  return rowCount > 0
}

export type AppendConfig = Pick<Config, 'RELAY_APPEND_QUIET_MS'>

/**
 * Plans to deliver an appended document again, once no append has come for `RELAY_APPEND_QUIET_MS`. Successive appends share one revision:
 * each of them postpones it.
 */
export const createRedeliverAppended =
  (config: AppendConfig) =>
  async (trx: Transaction, { id, revision }: Pick<AppendedDocument, 'id' | 'revision'>): Promise<void> => {
    const { rows } = await trx.raw<{ rows: { beginAt: string }[] }>(
      `select (clock_timestamp() + :quietMs::integer * interval '1 millisecond')::text as "beginAt"`,
      { quietMs: config.RELAY_APPEND_QUIET_MS },
    )
    const { beginAt } = rows[0]!
    const isWaiting = await postponeRevision(trx, id, revision, beginAt)
    if ((await resetDelivered(trx, id, { beginAt })) && !isWaiting) {
      await trx('documents')
        .where({ id })
        .update({ revision: revision + 1 })
    }
  }

/** Postpones the revision that an earlier append has planned, unless it is due: it may be begun at this moment. @returns false if there is none */
const postponeRevision = async (trx: Transaction, documentId: string, revision: number, beginAt: string): Promise<boolean> => {
  // Revision 1 is the original delivery, so no append can extend it.
  if (revision === 1) return false
  const postponed = await trx('deliveries')
    .where({ document_id: documentId, begin_as: 'document' })
    .where('begin_at', '>', trx.raw('clock_timestamp()'))
    .update({ begin_at: beginAt })
  return postponed > 0
}

interface NewerDocument {
  id: string
  revision: number
}

/**
 * Handles a superseded document that has arrived at its place, perhaps on top of a newer one. The newest document that had been delivered
 * there is delivered again. An attempt of a newer document that is under way repeats itself, because its `overwrites` has changed.
 * Safe to repeat.
 */
export const createRedeliverNewer =
  (db: Database) =>
  (delivery: DeliveryRef): Promise<void> =>
    db.transaction(async (trx) => {
      const newer = await lockNewer(trx, delivery)
      if (newer.length === 0) return
      const ids = newer.map(({ id }) => id)
      const delivered: { documentId: string }[] = await trx('deliveries')
        .select('document_id as documentId')
        .whereIn('document_id', ids)
        .where({ destination_id: delivery.destinationId })
        .whereIn('status', [...transitions.redeliver.from])
        .forNoKeyUpdate()
      await trx('deliveries')
        .whereIn('document_id', ids)
        .where({ destination_id: delivery.destinationId })
        .update({ overwrites: trx.raw('overwrites + 1') })
      const newest = newer.findLast(({ id }) => delivered.some(({ documentId }) => documentId === id))
      if (!newest) return
      if (!(await resetDelivered(trx, newest.id, { beginAt: 'now', destinationId: delivery.destinationId }))) return
      await trx('documents')
        .where({ id: newest.id })
        .update({ revision: newest.revision + 1 })
    })

export type RedeliverNewer = ReturnType<typeof createRedeliverNewer>

/** Locks the newer documents with a delivery to the same place, in the order of their ids. The record of an attempt also locks its document. */
const lockNewer = async (trx: Transaction, { documentId, destinationId }: DeliveryRef): Promise<NewerDocument[]> => {
  const { rows } = await trx.raw<{ rows: NewerDocument[] }>(
    `
    select newer.id, newer.revision
    from deliveries
    join documents on documents.id = deliveries.document_id
    join destinations on destinations.id = deliveries.destination_id
    join ${newerCopies.tables}
      on ${newerCopies.condition}
    where deliveries.document_id = :documentId
      and deliveries.destination_id = :destinationId
    order by newer.id
    for no key update of newer
    `,
    { documentId, destinationId },
  )
  return rows
}

interface Again {
  workspaceId: string
  documentId: string
  destinationId: string
  bulkRetryId: string
  actor: AuditActor
}

/**
 * Plans to deliver a document again to a destination that has it, and adds an audit entry. The document must be locked.
 * @returns false if the destination does not have it, or if the document was replaced or deleted, or has no content
 */
export const deliverAgain = async (
  trx: Transaction,
  { workspaceId, documentId, destinationId, bulkRetryId, actor }: Again,
): Promise<boolean> => {
  const document: { repoId: string; docId: string; compId: string } | undefined = await trx('documents')
    .select('repo_id as repoId', 'doc_id as docId', 'comp_id as compId')
    .where({ id: documentId })
    .whereNull('superseded_at')
    .whereNotNull('content_id')
    .first()
  if (!document || !(await resetDelivered(trx, documentId, { beginAt: 'now', destinationId, bulkRetryId }))) return false
  await trx('documents')
    .where({ id: documentId })
    .update({ revision: trx.raw('revision + 1') })
  const destination: { name: string } | undefined = await trx('destinations').select('name').where({ id: destinationId }).first()
  const { repoId, docId, compId } = document
  await record(trx, {
    workspaceId,
    event: 'document.delivered_again',
    subjectId: documentId,
    description: `Document ${repoId}/${docId}/${compId} was delivered to ${destination!.name}, and is delivered there again.`,
    metadata: { destination_ids: [destinationId], bulk_retry_id: bulkRetryId },
    actor,
  })
  return true
}
