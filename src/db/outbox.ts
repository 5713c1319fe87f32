import {
  batchWorkflowId,
  bulkRetryWorkflowId,
  deliveryWorkflowId,
  documentWorkflowId,
  type BatchSubject,
  type DeliveryInput,
  type DocumentInput,
} from '../../workflows/messages.ts'
import type { Database, Transaction } from './database.ts'

/** A document's workflow is to be started. Whether search attributes are registered is known only then. */
export type DocumentMessage = { kind: 'document' } & Omit<DocumentInput, 'searchAttributes'>

/** A delivery that was held goes on its way, by a workflow of its own: its document's may never have been started. */
export type DeliveryMessage = { kind: 'delivery' } & Omit<DeliveryInput, 'searchAttributes'>

/** A delivery was cancelled: a workflow that attempts or waits is to stop. */
export interface StopMessage {
  kind: 'stop'
  documentId: string
  destinationId: string
}

/** Deliveries without number are to be released or cancelled, by a workflow that goes through them in batches. */
export interface BatchMessage {
  kind: 'batches'
  subject: BatchSubject
  /** One that comes while the workflow is at work makes it look once more, so none may stand for another. */
  requestId: string
}

/** A delivery is to be made again: by its workflow where that is open, by a new one where it has closed. */
export type RetryMessage = { kind: 'retry'; requestId: string } & Omit<DeliveryInput, 'searchAttributes'>

/** The workflow of a bulk retry is to be started. */
export interface BulkRetryMessage {
  kind: 'bulk-retry'
  bulkRetryId: string
  /** `{userSlug}/{workspaceSlug}` */
  workspace: string
}

/** What Temporal is to be told, committed with the change that makes it so. Sending it twice must do no harm. */
export type OutboxMessage = DocumentMessage | DeliveryMessage | RetryMessage | StopMessage | BatchMessage | BulkRetryMessage

/** What a message is stored and removed by. */
export const keyOf = (message: OutboxMessage): string => {
  switch (message.kind) {
    case 'document':
      return documentWorkflowId(message.documentId, message.revision)
    case 'delivery':
      return deliveryWorkflowId(message.documentId, message.destination.id)
    case 'retry':
      return `${deliveryWorkflowId(message.documentId, message.destination.id)}#${message.requestId}`
    case 'bulk-retry':
      return bulkRetryWorkflowId(message.bulkRetryId)
    case 'stop':
      return `stop/${deliveryWorkflowId(message.documentId, message.destinationId)}`
    default:
      return `${batchWorkflowId(message.subject)}/${message.requestId}`
  }
}

/** Adds messages in the transaction of what they tell about. */
export const addMessages = async (trx: Transaction, messages: OutboxMessage[]): Promise<void> => {
  if (messages.length === 0) return
  await trx('outbox')
    .insert(messages.map((message) => ({ key: keyOf(message), message: JSON.stringify(message) })))
    // the one that waits says the same
    .onConflict('key')
    .ignore()
}

export const createOutbox = (db: Database) => ({
  /** Messages that have been due for at least this long, the longest first: younger ones are still being sent by the process that wrote them. */
  findDue: async (ageMs: number, limit: number): Promise<OutboxMessage[]> => {
    const rows = await db('outbox')
      .select<{ message: OutboxMessage }[]>('message')
      .where('due_at', '<=', db.raw(`now() - ? * interval '1 millisecond'`, [ageMs]))
      .orderBy('due_at')
      .limit(limit)
    return rows.map((row) => row.message)
  },

  /** How many messages have not been sent yet, though they are due. */
  count: async (): Promise<number> =>
    Number((await db('outbox').where('due_at', '<=', db.fn.now()).count({ total: '*' }))[0]?.['total'] ?? 0),

  /** These have been sent. */
  remove: async (messages: OutboxMessage[]): Promise<void> => {
    if (messages.length === 0) return
    await db('outbox').whereIn('key', messages.map(keyOf)).delete()
  },
})

export type Outbox = ReturnType<typeof createOutbox>
