import type { DestinationRef } from '../../workflows/messages.ts'
import { startableColumns, startInputOf, type DeliveryTermsConfig, type StartableDelivery } from '../archive/delivery-input.ts'
import { createStatement, type Database, type Transaction } from '../db/database.ts'
import { dispatchShares, retryRequestId, dispatchShareOf, type BeginAs, type Start, type StartDocument } from '../db/starts.ts'
import type { DeliveryRef } from './transition.ts'

// Deliveries that wait for the dispatcher: `begin_at` is not null. The first attempt, a wait for it, and the end of a delivery clear it, so
// nothing that the dispatcher does has to be written. Lists are JSON in the statements of every round: PostgreSQL replans the statement for
// every array, which takes longer than running it.

/** Deliveries of a workspace that are begun in the same way, one document after another. */
export interface Queue {
  workspaceId: string
  beginAs: BeginAs
}

/** Every share, for those who work for the whole installation. */
const allShares: readonly number[] = Array.from({ length: dispatchShares }, (_, share) => share)

/** The deliveries of a document that are begun together. */
export interface WaitingDocument extends Queue {
  /** The share of its workspace. */
  share: number
  documentId: string
  deliveries: (StartableDelivery & { requestId: string })[]
}

const shareOfRow = dispatchShareOf('workspace_id')

// SQL: the queues of these shares that have deliveries. Each costs a look-up in the index deliveries_to_begin.
const queuesOfShares = `
  with recursive queues as (
    select first.*
    from jsonb_array_elements_text(:shares::jsonb) as held (share)
    cross join lateral (
      select ${shareOfRow} as share, workspace_id, begin_as
      from deliveries
      where begin_at is not null
        and ${shareOfRow} = held.share::bigint
      order by workspace_id, begin_as
      limit 1
    ) as first
    union all
    select next.*
    from queues
    cross join lateral (
      select ${shareOfRow} as share, workspace_id, begin_as
      from deliveries
      where begin_at is not null
        and ${shareOfRow} = queues.share
        and (workspace_id, begin_as) > (queues.workspace_id, queues.begin_as)
      order by workspace_id, begin_as
      limit 1
    ) as next
  )`

/** What is due at a look. */
interface Look {
  queues: Queue[]
  /** Whether each of the conditions holds. */
  holds: boolean[]
}

/**
 * Creates the look for the queues of some shares in which something is due. Each costs two look-ups in the index deliveries_to_begin.
 * @param conditions SQL: what is asked beside them. One statement for all, because ten looks a second are most of what an idle worker does
 */
export const createLook = (db: Database | Transaction, conditions: readonly string[] = []) => {
  const look = createStatement<Look>(
    `find-queues-to-begin/${conditions.length}`,
    `
    ${queuesOfShares}
    select
      array(
        select jsonb_build_object('workspaceId', workspace_id, 'beginAs', begin_as)
        from queues
        where (
          select min(begin_at)
          from deliveries
          where begin_at is not null
            and ${shareOfRow} = queues.share
            and workspace_id = queues.workspace_id
            and begin_as = queues.begin_as
        ) <= now()
      ) as queues,
      array[${conditions.join(', ')}]::boolean[] as holds
    `,
  )
  return async (shares: readonly number[] = allShares): Promise<Look> => (await look(db, { shares: JSON.stringify(shares) }))[0]!
}

const oldestDue = createStatement<{ due: Date | null }>(
  'find-oldest-due',
  `
  ${queuesOfShares}
  select least(
    (
      select min(waiting.begin_at)
      from queues
      cross join lateral (
        select min(begin_at) as begin_at
        from deliveries
        where begin_at is not null
          and ${shareOfRow} = queues.share
          and workspace_id = queues.workspace_id
          and begin_as = queues.begin_as
      ) as waiting
    ),
    (
      select greatest(next_attempt_at, checked_at)
      from deliveries
      where status in ('pending', 'retrying')
        and begin_at is null
      order by greatest(next_attempt_at, checked_at), document_id, destination_id
      limit 1
    )
  ) as due
  `,
)

type Row = Pick<WaitingDocument, 'share'> &
  Queue &
  Omit<StartableDelivery, 'destination'> & { destination: DestinationRef; requestId: string }

const oldest = createStatement<Row>(
  'find-documents-to-begin',
  `
  with picked as materialized (
    select turn."workspaceId", turn."beginAs", document_id
    from jsonb_to_recordset(:turns::jsonb) as turn ("workspaceId" text, "beginAs" text, documents integer)
    cross join lateral (
      select distinct begin_at, document_id
      from deliveries
      where begin_at is not null
        and ${shareOfRow} = ${dispatchShareOf('turn."workspaceId"')}
        and workspace_id = turn."workspaceId"
        and begin_as = turn."beginAs"
        and begin_at <= now()
        and document_id not in (select jsonb_array_elements_text(:except::jsonb))
      order by begin_at, document_id
      limit turn.documents
    ) as waiting
  )
  select ${dispatchShareOf('picked."workspaceId"')} as share, picked."workspaceId", picked."beginAs", ${retryRequestId} as "requestId", ${startableColumns}
  from (select distinct * from picked) as picked
  join deliveries
    on deliveries.document_id = picked.document_id
    and begin_as = picked."beginAs"
    and begin_at <= now()
  join documents on documents.id = picked.document_id
  join workspaces on workspaces.id = documents.workspace_id
  join destinations on destinations.id = deliveries.destination_id
  order by begin_at, documents.id, destinations.id
  `,
)

/** What a dispatcher has begun of a document. A delivery that is due again has another request. */
export interface BegunDocument {
  documentId: string
  requestIds: string[]
}

const namesOf = (begun: BegunDocument[]) => ({
  begun: JSON.stringify(begun.map(({ documentId, requestIds }) => ({ documentId, requestIds }))),
})

// SQL: what was begun of these documents. The function is the operator that a prepared statement cannot have, a question mark.
const begunDeliveries = 'jsonb_to_recordset(:begun::jsonb) as begun ("documentId" text, "requestIds" jsonb)'
const isStillWaiting = `
  document_id = begun."documentId"
    and begin_at <= now()
    and jsonb_exists("requestIds", ${retryRequestId})`

const stillWaiting = createStatement<{ documentId: string }>(
  'find-documents-still-to-begin',
  `
  select distinct document_id as "documentId"
  from ${begunDeliveries}
  join deliveries on ${isStillWaiting}
  `,
)

const leave = createStatement<never>(
  'leave-deliveries-to-begin',
  `
  update deliveries
  set begin_at = null, checked_at = now()
  from ${begunDeliveries}
  where ${isStillWaiting}
  `,
)

export const createToBegin = (db: Database | Transaction) => ({
  /**
   * Returns since when the delivery that has waited for the longest time is due, or has shown no sign of life. It may be in the future; null
   * if none is open.
   */
  findOldestDue: async (): Promise<Date | null> => (await oldestDue(db, { shares: JSON.stringify(allShares) }))[0]!.due,

  /** Finds the oldest documents of these queues. @param except ids of documents that are being begun */
  findOldest: async (turns: (Queue & { documents: number })[], except: string[]): Promise<WaitingDocument[]> => {
    const found = new Map<string, WaitingDocument>()
    for (const { share, workspaceId, beginAs, ...delivery } of await oldest(db, {
      turns: JSON.stringify(turns),
      except: JSON.stringify(except),
    })) {
      const { documentId } = delivery
      // If a document waits in two queues, the second is another one's turn.
      const document = found.get(documentId) ?? { documentId, share, workspaceId, beginAs, deliveries: [] }
      if (document.beginAs === beginAs) document.deliveries.push(delivery)
      found.set(documentId, document)
    }
    return [...found.values()]
  },

  /** Returns those of these documents that no attempt has been begun for, and no wait, since they were begun here. */
  stillWaiting: async (begun: BegunDocument[]): Promise<Set<string>> =>
    new Set((await stillWaiting(db, namesOf(begun))).map(({ documentId }) => documentId)),

  /**
   * Takes documents out of the queue whose workflows do not begin. The reconciler asks Temporal about them, but not at once: a slow server may
   * still be about to start them.
   */
  leave: async (begun: BegunDocument[]): Promise<void> => {
    await leave(db, namesOf(begun))
  },

  /** Lets a document that Temporal refuses wait, so that it does not hold up others. */
  postpone: async (documentId: string, delayMs: number): Promise<void> => {
    await db('deliveries')
      .where({ document_id: documentId })
      .where('begin_at', '<=', db.fn.now())
      .update({ begin_at: db.raw(`now() + ? * interval '1 millisecond'`, [delayMs]) })
  },
})

/** Returns the messages that begin the deliveries of a document, under the current settings of the workspace. */
export const startsOf = (
  { beginAs, deliveries }: WaitingDocument,
  { urgency, eager }: Required<Pick<StartDocument, 'urgency' | 'eager'>>,
  config: DeliveryTermsConfig,
): Start[] => {
  const inputs = deliveries.map(({ requestId, ...delivery }) => ({ requestId, input: startInputOf(delivery, config) }))
  if (beginAs === 'delivery') return inputs.map(({ input }) => ({ kind: 'startDelivery', input, urgency }))
  if (beginAs === 'retry') return inputs.map((each) => ({ kind: 'retryDelivery', ...each, urgency }))
  const { destination: _, ...input } = inputs[0]!.input
  const destinations = deliveries.map(({ destination }) => destination)
  return [{ kind: 'startDocument', input: { ...input, destinations }, urgency, eager }]
}

/** Has deliveries begun that no workflow works on. Their documents must be locked. @param delayMs time until they are due */
export const beginAgain = async (
  trx: Transaction,
  deliveries: DeliveryRef[],
  beginAs: 'delivery' | 'retry',
  delayMs = 0,
): Promise<void> => {
  if (deliveries.length === 0) return
  await trx('deliveries')
    .whereIn(
      ['document_id', 'destination_id'],
      deliveries.map(({ documentId, destinationId }) => [documentId, destinationId]),
    )
    .update({ begin_as: beginAs, begin_at: trx.raw(`now() + ? * interval '1 millisecond'`, [delayMs]) })
}

/**
 * Counts the deliveries that are due and not begun, and returns for how long the oldest of them has been due, in seconds. The
 * time leaves releases, bulk retries and restarts out, which may take hours.
 */
export const measureWaiting = async (db: Database): Promise<{ count: number; oldestSeconds: number }> => {
  const { rows } = await db.raw<{ rows: { count: number; oldestSeconds: number }[] }>(
    `
    select
      count(*) as count,
      coalesce(extract(epoch from now() - min(begin_at) filter (where begin_as = 'document')), 0)::float8 as "oldestSeconds"
    from deliveries
    where begin_at <= now()
    `,
  )
  return rows[0]!
}
