import type { DocumentKey } from '../../workflows/ids.ts'
import type { BatchSubject, BulkRetryInput, DeliveryInput, DocumentInput, NoticeInput, WakeInput } from '../../workflows/messages.ts'
import type { Database, Transaction } from './database.ts'

/** Starts the workflow of a document. */
export interface StartDocument {
  kind: 'startDocument'
  input: DocumentInput
}

/** Starts a delivery by itself. The workflow of its document may have ended, or may never have been started. */
export interface StartDelivery {
  kind: 'startDelivery'
  input: DeliveryInput
}

/** Retries a delivery: signals its workflow if it is open, starts a new one if it is closed. */
export interface RetryDelivery {
  kind: 'retryDelivery'
  requestId: string
  input: DeliveryInput
}

/** Cancels the workflow of a cancelled delivery, if it is open. */
export interface CancelDelivery {
  kind: 'cancelDelivery'
  document: DocumentKey
  destinationId: string
}

/** Starts a workflow that releases or cancels any number of deliveries in batches. */
export interface ProcessBatches {
  kind: 'processBatches'
  subject: BatchSubject
  /** Makes each message distinct: a message that arrives while the workflow runs makes the workflow look again before it ends. */
  requestId: string
}

/** Starts the workflow that wakes the deliveries that wait for a destination. If it runs already, it starts over. */
export interface WakeDeliveries {
  kind: 'wakeDeliveries'
  input: WakeInput
  requestId: string
}

/** Ends the wait of a delivery for a slot, if its workflow is open. */
export interface WakeDelivery {
  kind: 'wakeDelivery'
  document: DocumentKey
  destinationId: string
  /** Start of the wake, in milliseconds by the clock of Temporal. */
  startedAt: number
}

export interface StartBulkRetry {
  kind: 'startBulkRetry'
  input: BulkRetryInput
}

/** Starts the workflow that sends a notice. */
export interface StartNotice {
  kind: 'startNotice'
  input: NoticeInput
}

/** A message to Temporal, committed together with the change that requires it. Sending a message twice has no further effect. */
export type OutboxMessage =
  | StartDocument
  | StartDelivery
  | RetryDelivery
  | CancelDelivery
  | ProcessBatches
  | WakeDeliveries
  | WakeDelivery
  | StartBulkRetry
  | StartNotice

const deliverPrefix = (documentId: string) => `deliver/${documentId}`

/** Returns the primary key of a message. */
export const outboxKey = (message: OutboxMessage): string => {
  switch (message.kind) {
    case 'startDocument':
      return `${deliverPrefix(message.input.documentId)}@${message.input.revision ?? 1}`
    case 'startDelivery':
      return `${deliverPrefix(message.input.documentId)}/${message.input.destination.id}`
    case 'retryDelivery':
      return `${deliverPrefix(message.input.documentId)}/${message.input.destination.id}#${message.requestId}`
    case 'cancelDelivery':
      return `cancel/${message.document.documentId}/${message.destinationId}`
    case 'processBatches':
      return `${message.subject.action}-batches/${message.subject.id}#${message.requestId}`
    case 'wakeDeliveries':
      return `wake/${message.input.destination.id}#${message.requestId}`
    case 'wakeDelivery':
      return `wake/${message.document.documentId}/${message.destinationId}`
    case 'startBulkRetry':
      return `bulk-retry/${message.input.bulkRetryId}`
  }
  return `notice/${message.input.noticeId}`
}

/** Adds messages in the transaction of the change that they announce. A message with the same key that still waits is kept. */
export const addMessages = async (trx: Transaction, messages: OutboxMessage[]): Promise<void> => {
  if (messages.length === 0) return
  await trx('outbox')
    .insert(messages.map((message) => ({ key: outboxKey(message), message: JSON.stringify(message) })))
    .onConflict('key')
    .ignore()
}

/** Returns true if a message waits that will start or retry deliveries of the document. A prefix search on the primary key. */
export const hasDeliveryMessage = async (trx: Transaction, documentId: string): Promise<boolean> =>
  (await trx('outbox')
    .where('key', 'like', `${deliverPrefix(documentId)}%`)
    .first('key')) !== undefined

export const createOutbox = (db: Database) => ({
  /** Returns messages that have been due for at least `ageMs`, oldest first. The process that wrote a younger message still sends it. */
  findDue: async (ageMs: number, limit: number): Promise<OutboxMessage[]> => {
    const rows = await db('outbox')
      .select<{ message: OutboxMessage }[]>('message')
      .where('due_at', '<=', db.raw(`now() - ? * interval '1 millisecond'`, [ageMs]))
      .orderBy('due_at')
      .limit(limit)
    return rows.map((row) => row.message)
  },

  /** Counts the messages that are due and have not been sent. */
  count: async (): Promise<number> =>
    Number((await db('outbox').where('due_at', '<=', db.fn.now()).count({ total: '*' }))[0]?.['total'] ?? 0),

  /** Returns the time, in seconds, for which the oldest of these messages has been due; 0 if there is none. */
  oldestDueSeconds: async (): Promise<number> => {
    const { rows } = await db.raw<{ rows: { seconds: number | null }[] }>(
      `select greatest(extract(epoch from now() - min(due_at)), 0)::float8 as seconds from outbox`,
    )
    return rows[0]!.seconds ?? 0
  },

  /** Removes messages that have been sent. */
  remove: async (messages: OutboxMessage[]): Promise<void> => {
    if (messages.length === 0) return
    await db('outbox').whereIn('key', messages.map(outboxKey)).delete()
  },
})

export type Outbox = ReturnType<typeof createOutbox>
