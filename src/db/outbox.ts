import type { DocumentKey } from '../../workflows/ids.ts'
import type { BatchSubject, BulkRetryInput, DeliveryInput, DocumentInput, NoticeInput } from '../../workflows/messages.ts'
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

/** Wakes a delivery that waits in line: signals its workflow, or starts it if Temporal does not know it. */
export interface WakeDelivery {
  kind: 'wakeDelivery'
  requestId: string
  input: DeliveryInput
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
    .insert(messages.map((message) => ({ key: outboxKey(message), message: JSON.stringify(message) })))
    .onConflict('key')
    .ignore()
}

/** Returns true if a message waits that will start or retry deliveries of the document. A prefix search on the primary key. */
export const hasDeliveryMessage = async (trx: Transaction, documentId: string): Promise<boolean> =>
  (await trx('outbox')
    .where('key', 'like', `${deliverPrefix(documentId)}%`)
    .first('key')) !== undefined

interface OutboxPage {
  /** The starts of documents, of which there may be many, or all other messages. */
  kind: keyof typeof statements
  /** Time for which the messages have been due, at least. The process that wrote a younger message still sends it. */
  ageMs: number
  limit: number
  /** Keys of messages that are left out. */
  except: string[]
}

// The kinds are not parameters, so that the partial indexes match.
const statements = {
  // Workspaces get equal parts of the page: the documents of one do not wait behind the many of another. If there are more workspaces than
  // places, chance decides.
  starts: `
    with recursive workspaces as (
      (
        select message -> 'input' ->> 'workspace' as workspace
        from outbox
        where message ->> 'kind' = 'startDocument'
        order by 1
        limit 1
      )
      union all
      select (
        select message -> 'input' ->> 'workspace'
        from outbox
        where message ->> 'kind' = 'startDocument'
          and message -> 'input' ->> 'workspace' > workspaces.workspace
        order by 1
        limit 1
      )
      from workspaces
      where workspace is not null
    ), turns as (
      select workspace
      from workspaces
      where (
        select due_at
        from outbox
        where message ->> 'kind' = 'startDocument'
          and message -> 'input' ->> 'workspace' = workspaces.workspace
        order by due_at
        limit 1
      ) <= now() - :ageMs * interval '1 millisecond'
      order by random()
      limit :limit
    )
    select oldest.message
    from turns
    cross join lateral (
      select message, due_at
      from outbox
      where message ->> 'kind' = 'startDocument'
        and message -> 'input' ->> 'workspace' = turns.workspace
        and due_at <= now() - :ageMs * interval '1 millisecond'
        and key <> all(:except)
      order by due_at
      limit (select (:limit + count(*) - 1) / count(*) from turns)
      for update
      skip locked
    ) as oldest
    order by oldest.due_at
  `,
  others: `
    select message
    from outbox
    where message ->> 'kind' <> 'startDocument'
      and due_at <= now() - :ageMs * interval '1 millisecond'
      and key <> all(:except)
    order by due_at
    limit :limit
    for update
    skip locked
  `,
}

export const createOutbox = (db: Database) => ({
  /**
   * Sends due messages and removes them, the oldest first, those of each workspace in turn if they are starts of documents. They are locked
   * meanwhile: another process that sends due messages takes others, and if this process dies, its messages are free at once.
   * @param send returns the messages that were sent
   * @returns the number of sent messages
   */
  sendDue: ({ kind, ageMs, limit, except }: OutboxPage, send: (messages: OutboxMessage[]) => Promise<OutboxMessage[]>): Promise<number> =>
    db.transaction(async (trx) => {
      const { rows } = await trx.raw<{ rows: { message: OutboxMessage }[] }>(statements[kind], { ageMs, limit, except })
      const sent = rows.length > 0 ? await send(rows.map(({ message }) => message)) : []
      if (sent.length > 0) await trx('outbox').whereIn('key', sent.map(outboxKey)).delete()
      return sent.length
    }),

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
