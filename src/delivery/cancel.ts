import type { DocumentKey } from '../../workflows/ids.ts'
import type { BatchSubject } from '../../workflows/messages.ts'
import { newId } from '../base/ids.ts'
import type { Transaction } from '../db/database.ts'
import { addMessages, type CancelDelivery, type OutboxMessage } from '../db/outbox.ts'
import { transitions, type DeliveryStatus } from '../domain/delivery-states.ts'

/**
 * A deleted destination, whose open deliveries are cancelled, or a connection that was deleted or lost destinations: what it held for
 * destinations that it does not lead to any more is cancelled.
 */
export type Deleted = Pick<BatchSubject, 'workspace' | 'id' | 'name'> & { by: 'destination' | 'connection' }

interface Cancelled {
  document: DocumentKey
  destinationId: string
  previousStatus: DeliveryStatus
}

/** SQL: true if the connection of a delivery does not lead to its destination any more. A deleted connection has no links. */
export const isUnlinked = `not exists (
  select
  from connection_destinations as link
  where link.connection_id = deliveries.connection_id
    and link.destination_id = deliveries.destination_id
)`

/** Counts the deliveries that a connection holds for destinations that it does not lead to. */
export const countUnlinked = async (trx: Transaction, connectionId: string): Promise<number> => {
  const { rows } = await trx.raw<{ rows: { count: number }[] }>(
    `
    select count(*) as count
    from deliveries
    where connection_id = :connectionId
      and status = 'held'
      and ${isUnlinked}
    `,
    { connectionId },
  )
  return rows[0]!.count
}

/**
 * Cancels up to `limit` deliveries and adds the messages that cancel their workflows. Rows are locked in the order of their ids, so
 * concurrent deletions that meet in the same documents cannot deadlock.
 * @returns how many deliveries were cancelled, and the messages; a held delivery has no workflow to cancel
 */
export const cancelBatch = async (
  trx: Transaction,
  { by, id }: Pick<Deleted, 'by' | 'id'>,
  limit: number,
): Promise<{ count: number; messages: CancelDelivery[] }> => {
  const { from, to } = by === 'destination' ? transitions.cancel : transitions.cancelHeld
  // Literals instead of a binding, because the partial indexes on open and on held deliveries must match.
  const status = `${by}_id = :id and deliveries.status in (${from.map((each) => `'${each}'`).join(', ')})`
  const open = by === 'destination' ? status : `${status} and ${isUnlinked}`
  const { rows } = await trx.raw<{ rows: Cancelled[] }>(
    // The candidates are selected first and by themselves. Otherwise, the planner sorts or joins all open deliveries.
    `
    with candidate as materialized (
      select document_id, destination_id
      from deliveries
      where ${open}
      order by document_id
      limit :limit
    ), picked as (
      select
        document_id, destination_id, deliveries.status, documents.workspace_id, documents.repo_id, documents.doc_id, documents.comp_id
      from candidate
      join documents on documents.id = document_id
      join deliveries using (document_id, destination_id)
      where ${open}
      order by document_id
      for no key update of documents, deliveries
    )
    update deliveries
    set
      status = :to,
      ended_by = case
        when :by = 'destination' then 'destination_deleted'
        when exists (
          select
          from connections
          where connections.id = :id
        ) then 'connection_changed'
        else 'connection_deleted'
      end
    from picked
    join workspaces on workspaces.id = picked.workspace_id
    where deliveries.document_id = picked.document_id
      and deliveries.destination_id = picked.destination_id
    returning
      jsonb_build_object(
        'documentId', picked.document_id, 'workspace', user_slug || '/' || workspace_slug, 'repoId', picked.repo_id,
        'docId', picked.doc_id, 'compId', picked.comp_id) as document,
      picked.destination_id as "destinationId", picked.status as "previousStatus"
    `,
    { id, by, limit, to },
  )
  const requestId = newId()
  const messages = rows
    .filter(({ previousStatus }) => previousStatus !== 'held')
    .map(({ document, destinationId }): CancelDelivery => ({ kind: 'cancelDelivery', document, destinationId, requestId }))
  await addMessages(trx, messages)
  return { count: rows.length, messages }
}

/**
 * Cancels the first batch in the transaction of the change, and adds a message that starts a workflow for the rest. A batch that is not
 * full does not prove that no delivery is left: others may have ended at the same moment.
 */
export const startCancelling = async (trx: Transaction, deleted: Deleted, limit: number): Promise<OutboxMessage[]> => {
  const { count, messages } = await cancelBatch(trx, deleted, limit)
  if (count === 0) return messages
  const rest: OutboxMessage = { kind: 'processBatches', subject: { action: 'cancel', ...deleted }, requestId: newId() }
  await addMessages(trx, [rest])
  return [...messages, rest]
}

/** Cancels the deliveries that wait for business data, by which the filters of these connections would decide. */
export const cancelUndecided = async (trx: Transaction, connectionIds: string[]): Promise<void> => {
  const { from, to } = transitions.cancel
  await trx.raw(
    `
    with picked as (
      select id
      from documents
      where id in (select document_id from deliveries where waiting = 'data' and connection_id = any (:connectionIds))
      order by id
      for no key update
    )
    update deliveries
    set status = :to, ended_by = 'connection_deleted'
    from picked
    where document_id = picked.id
      and waiting = 'data'
      and connection_id = any (:connectionIds)
      and status = any (:from)
    `,
    { connectionIds, from: [...from], to },
  )
}
