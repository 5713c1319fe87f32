import type { DestinationRef } from '../../workflows/messages.ts'
import type { AppendedDocument } from '../archive/append.ts'
import { currentDeliveryTerms, deliveryTerms, traceOf, type DeliveryTermsConfig } from '../archive/delivery-terms.ts'
import type { Config } from '../config/config.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, outboxKey, type StartDocument } from '../db/outbox.ts'
import { businessObjectOf, type BusinessMetadata } from '../domain/business-object.ts'
import { transitions } from '../domain/delivery-states.ts'
import type { DeliveryRef } from './transition.ts'

// A document is delivered again as a new revision, with a document workflow of its own, if its delivered bytes are no longer right.

/** Sets the given deliveries of a document back to `pending`, if they were delivered to a destination that still exists. */
const resetDelivered = async (trx: Transaction, documentId: string, destinationId?: string): Promise<DestinationRef[]> => {
  const { from, to } = transitions.redeliver
  const { rows } = await trx.raw<{ rows: DestinationRef[] }>(
    `
    update deliveries
    set status = :to, delivered_at = null
    from destinations
    where document_id = :documentId
      and (:destinationId::text is null or destination_id = :destinationId)
      and deliveries.status = any (:from)
      and destinations.id = deliveries.destination_id
      and deleted_at is null
    returning destinations.id, name, connector_type as connector
    `,
    { documentId, destinationId: destinationId ?? null, from: [...from], to },
  )
  return rows
}

export type AppendConfig = DeliveryTermsConfig & Pick<Config, 'RELAY_APPEND_QUIET_MS'>

/**
 * Plans to deliver an appended document again, once no append has come for `RELAY_APPEND_QUIET_MS`. Successive appends share one
 * message: each of them postpones it.
 */
export const createRedeliverAppended =
  (config: AppendConfig) =>
  async (trx: Transaction, { id, repository, docId, compId, revision, traceparent }: AppendedDocument): Promise<void> => {
    const destinations = await resetDelivered(trx, id)
    const document = { documentId: id, repoId: repository.repoId, docId, compId, ...traceOf({ traceparent }) }
    const dueAt = trx.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [config.RELAY_APPEND_QUIET_MS])
    const waiting = await findWaitingRevision(trx, id, revision)
    if (waiting) {
      const input = { ...waiting.input, destinations: [...waiting.input.destinations, ...destinations] }
      const message: StartDocument = { ...waiting, input }
      await trx('outbox')
        .where({ key: outboxKey(message) })
        .update({ due_at: dueAt, message: JSON.stringify(message) })
      return
    }
    if (destinations.length === 0) return

    const next = revision + 1
    const message: StartDocument = {
      kind: 'startDocument',
      input: { ...document, revision: next, destinations, ...deliveryTerms(repository.workspace, config) },
    }
    await trx('documents').where({ id }).update({ revision: next })
    await trx('outbox').insert({ key: outboxKey(message), message: JSON.stringify(message), due_at: dueAt })
  }

/** Finds the message of an earlier append that is not due yet. A message that is due may be being sent at this moment. */
const findWaitingRevision = async (trx: Transaction, documentId: string, revision: number): Promise<StartDocument | undefined> => {
  // Revision 1 is the original delivery, so no append can extend it.
  if (revision === 1) return undefined
  const row = await trx('outbox')
    .where({ key: outboxKey({ kind: 'startDocument', input: { documentId, revision } } as StartDocument) })
    .where('due_at', '>', trx.raw('clock_timestamp()'))
    .forUpdate()
    .first<{ message: StartDocument } | undefined>('message')
  return row?.message
}

interface NewerDocument extends Pick<BusinessMetadata, 'erpObjectType' | 'erpObjectId'> {
  id: string
  workspaceId: string
  revision: number
  repoId: string
  docId: string
  compId: string
  traceparent: string | null
}

/**
 * Handles a superseded document that has arrived at its path, perhaps on top of a newer one. The newest document that had been delivered
 * there is delivered again. An attempt of a newer document that is under way repeats itself, because its `overwrites` has changed.
 * Safe to repeat.
 */
export const createRedeliverNewer =
  (db: Database, config: DeliveryTermsConfig) =>
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
      if (newest) await startRevision(trx, newest, delivery.destinationId, config)
    })

export type RedeliverNewer = ReturnType<typeof createRedeliverNewer>

/** Locks the newer documents with a delivery to the same path, in the order of their ids. Recording an attempt locks its document, too. */
const lockNewer = async (trx: Transaction, { documentId, destinationId }: DeliveryRef): Promise<NewerDocument[]> => {
  const { rows } = await trx.raw<{ rows: NewerDocument[] }>(
    `
    select
      newer.id, newer.workspace_id as "workspaceId", newer.revision, newer.repo_id as "repoId", newer.doc_id as "docId",
      newer.comp_id as "compId", newer.erp_object_type as "erpObjectType", newer.erp_object_id as "erpObjectId",
      newer.traceparent
    from deliveries
    join documents on documents.id = deliveries.document_id
    join documents as newer
      on newer.workspace_id = documents.workspace_id
      and newer.repo_id = documents.repo_id
      and newer.doc_id = documents.doc_id
      and newer.id > documents.id
    join deliveries as newer_delivery
      on newer_delivery.document_id = newer.id
      and newer_delivery.destination_id = deliveries.destination_id
      and newer_delivery.path = deliveries.path
    where deliveries.document_id = :documentId
      and deliveries.destination_id = :destinationId
    order by newer.id
    for no key update of newer
    `,
    { documentId, destinationId },
  )
  return rows
}

const startRevision = async (
  trx: Transaction,
  document: NewerDocument,
  destinationId: string,
  config: DeliveryTermsConfig,
): Promise<void> => {
  const { id, workspaceId, revision, repoId, docId, compId } = document
  const destinations = await resetDelivered(trx, id, destinationId)
  if (destinations.length === 0) return
  const next = revision + 1
  const message: StartDocument = {
    kind: 'startDocument',
    input: {
      documentId: id,
      revision: next,
      repoId,
      docId,
      compId,
      ...businessObjectOf(document),
      ...traceOf(document),
      destinations,
      ...(await currentDeliveryTerms(trx, workspaceId, config)),
    },
  }
  await trx('documents').where({ id }).update({ revision: next })
  await addMessages(trx, [message])
}
