import type { BatchSubject } from '../../workflows/messages.ts'
import { newId } from '../ids.ts'
import type { Transaction } from './database.ts'
import { addMessages, type OutboxMessage, type StopMessage } from './outbox.ts'

/** Whose deliveries are cancelled: all that are not delivered yet, or those that are held. */
export type Deleted = Pick<BatchSubject, 'by' | 'id'>

interface Cancelled {
  documentId: string
  destinationId: string
  was: 'pending' | 'held' | 'retrying' | 'failed'
}

/**
 * Cancels up to `limit` deliveries and commits the messages that stop their workflows. Rows are locked in one order, so that two
 * deletions that meet in the same documents take turns.
 * @returns how many were cancelled, and the messages; the held among them have no workflow to stop
 */
export const cancelBatch = async (
  trx: Transaction,
  { by, id }: Deleted,
  limit: number,
): Promise<{ count: number; messages: StopMessage[] }> => {
  const open =
    by === 'destination'
      ? `destination_id = :id and deliveries.status in ('pending', 'held', 'retrying', 'failed')`
      : `connection_id = :id and deliveries.status = 'held'`
  const { rows } = await trx.raw<{ rows: Cancelled[] }>(
    // the candidates come first and by themselves: the planner would otherwise sort, or join, all that is open
    `
    with candidate as materialized (
      select document_id, destination_id
      from deliveries
      where ${open}
      order by document_id
      limit :limit
    ), picked as (
      select document_id, destination_id, deliveries.status
      from candidate
      join documents on documents.id = document_id
      join deliveries using (document_id, destination_id)
      where ${open}
      order by document_id
      for no key update of documents, deliveries
    )
    update deliveries
    set status = 'cancelled'
    from picked
    where deliveries.document_id = picked.document_id
      and deliveries.destination_id = picked.destination_id
    returning deliveries.document_id as "documentId", deliveries.destination_id as "destinationId", picked.status as was
    `,
    { id, limit },
  )
  const messages = rows
    .filter(({ was }) => was !== 'held')
    .map(({ documentId, destinationId }): StopMessage => ({ kind: 'stop', documentId, destinationId }))
  await addMessages(trx, messages)
  return { count: rows.length, messages }
}

/**
 * The first batch, in the transaction of the deletion, and a message that starts a workflow for the rest. A batch that is not full is no
 * proof that there is none: some of its deliveries may have ended in the same moment.
 */
export const beginCancelling = async (trx: Transaction, deleted: Deleted & { name: string }, limit: number): Promise<OutboxMessage[]> => {
  const { count, messages } = await cancelBatch(trx, deleted, limit)
  if (count === 0) return messages
  const rest: OutboxMessage = { kind: 'batches', subject: { action: 'cancel', ...deleted }, requestId: newId() }
  await addMessages(trx, [rest])
  return [...messages, rest]
}
