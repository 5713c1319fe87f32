import {
  bulkRetryWorkflowId,
  deliveryWorkflowId,
  documentWorkflowId,
  type DeliveryInput,
  type DocumentInput,
} from '../../workflows/messages.ts'
import type { Database } from './database.ts'

/** A document's workflow is to be started. Whether search attributes are registered is known only then. */
export type DocumentMessage = { kind: 'document' } & Omit<DocumentInput, 'searchAttributes'>

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
export type OutboxMessage = DocumentMessage | RetryMessage | BulkRetryMessage

/** What a message is stored and removed by. */
export const keyOf = (message: OutboxMessage): string => {
  if (message.kind === 'document') return documentWorkflowId(message.documentId, message.revision)
  if (message.kind === 'bulk-retry') return bulkRetryWorkflowId(message.bulkRetryId)
  return `${deliveryWorkflowId(message.documentId, message.destination.id)}#${message.requestId}`
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
    await db('outbox').whereIn('key', messages.map(keyOf)).delete()
  },
})

export type Outbox = ReturnType<typeof createOutbox>
