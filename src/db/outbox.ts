import type { DocumentKey } from '../../workflows/ids.ts'
import type { BatchSubject, BulkRetryInput, DeliveryInput, NoticeInput } from '../../workflows/messages.ts'
import { storableJson } from '../base/text.ts'
import type { Database, Transaction } from './database.ts'

/** Cancels the workflow of a cancelled delivery, if it is open. */
export interface CancelDelivery {
  kind: 'cancelDelivery'
  document: DocumentKey
  destinationId: string
  requestId: string
}

/** Starts a workflow that releases or cancels any number of deliveries in batches. */
export interface ProcessBatches {
  kind: 'processBatches'
  subject: BatchSubject
  /** Makes each message distinct: a message that arrives while the workflow runs makes the workflow look again before it ends. */
  requestId: string
}

/** Wakes a delivery that waits in line: signals its workflow, or starts it if Temporal does not know it. */
export interface WakeDelivery {
  kind: 'wakeDelivery'
  requestId: string
  input: DeliveryInput
  /** Also ends the time before the next attempt, if the delivery waits for that. */
  endsBackOff?: true
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

/**
 * A command to Temporal, committed together with the change that requires it. Sending it twice has no further effect. Deliveries are begun
 * without a message: see starts.ts.
 */
export type OutboxMessage = CancelDelivery | ProcessBatches | WakeDelivery | StartBulkRetry | StartNotice

/**
 * Returns the primary key of a message. It contains the id of the request, so that no message is taken for an earlier one that has been
 * sent and is just being removed.
 */
export const outboxKey = (message: OutboxMessage): string => {
  switch (message.kind) {
    case 'cancelDelivery':
      return `cancel/${message.document.documentId}/${message.destinationId}#${message.requestId}`
    case 'processBatches':
      return `${message.subject.action}-batches/${message.subject.id}#${message.requestId}`
    case 'wakeDelivery':
      return `wake/${message.input.documentId}/${message.input.destination.id}#${message.requestId}`
    case 'startBulkRetry':
      return `bulk-retry/${message.input.bulkRetryId}`
  }
  return `notice/${message.input.noticeId}`
}

/** Adds messages in the transaction of the change that they announce. A message with the same key that still waits is kept. */
export const addMessages = async (trx: Transaction, messages: OutboxMessage[]): Promise<void> => {
  if (messages.length === 0) return
  await trx('outbox')
    .insert(messages.map((message) => ({ key: outboxKey(message), message: storableJson(message) })))
    .onConflict('key')
    .ignore()
}

/** Outcome of a message. `refused`: Temporal does not accept it, and may accept others. */
export type Sent = 'sent' | 'refused' | 'unavailable'

// A message that Temporal refuses is sent again, after others.
const refusedMs = 60_000

export const createOutbox = (db: Database) => ({
  /**
   * Sends due messages, the oldest first, and removes those that were sent. No transaction waits for Temporal: another process that does the
   * same may send a message a second time, which has no effect.
   * @param ageMs time for which they have been due, at least. The process that wrote a younger one still sends it
   * @returns the outcomes
   */
  sendDue: async (
    { ageMs, limit }: { ageMs: number; limit: number },
    send: (message: OutboxMessage, key: string) => Promise<Sent>,
  ): Promise<Sent[]> => {
    const messages = await db('outbox')
      .where('due_at', '<=', db.raw(`now() - ? * interval '1 millisecond'`, [ageMs]))
      .orderBy('due_at')
      .limit(limit)
      .select<{ key: string; message: OutboxMessage }[]>('key', 'message')
    const outcomes = await Promise.all(messages.map(({ key, message }) => send(message, key)))
    const keysOf = (outcome: Sent) => messages.filter((_, index) => outcomes[index] === outcome).map(({ key }) => key)
    await db('outbox').whereIn('key', keysOf('sent')).delete()
    await db('outbox')
      .whereIn('key', keysOf('refused'))
      .update({ due_at: db.raw(`now() + ? * interval '1 millisecond'`, [refusedMs]) })
    return outcomes
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
