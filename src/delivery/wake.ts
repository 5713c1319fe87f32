import type { DocumentKey } from '../../workflows/ids.ts'
import type { WakeInput, WakePage, WakePosition } from '../../workflows/messages.ts'
import { newId } from '../base/ids.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, type WakeDeliveries, type WakeDelivery } from '../db/outbox.ts'

// A delivery that has to wait sleeps in its workflow. When the circuit of its destination closes, a wake ends the sleep. The deliveries are
// woken page by page: if all of them asked at once, most would ask in vain.

/** Deliveries of a destination that are awake at a time. */
const pageSize = 200

/** Deliveries that are woken for one trial: the first may have been held or cancelled. */
const trialCandidates = 3

/**
 * Returns the message that wakes the deliveries that wait for a destination.
 * @param requestId makes each message distinct: one that arrives during a wake makes it start over
 */
export const wakeMessage = (input: WakeInput, requestId: string): WakeDeliveries => ({ kind: 'wakeDeliveries', input, requestId })

/** Adds the message that wakes the deliveries that wait for a destination. */
export const addWake = async (trx: Transaction, destinationId: string): Promise<WakeDeliveries> => {
  const { id, name, workspace } = await trx('destinations')
    .join('workspaces', 'workspaces.id', 'workspace_id')
    .where({ 'destinations.id': destinationId })
    .first<{ id: string; name: string; workspace: string }>([
      'destinations.id',
      'name',
      trx.raw(`user_slug || '/' || workspace_slug as workspace`),
    ])
  const message = wakeMessage({ workspace, destination: { id, name } }, newId())
  await addMessages(trx, [message])
  return message
}

interface PageRequest {
  destinationId: string
  /** Start of the wake, in milliseconds by the clock of Temporal. */
  startedAt: number
  /** End of the previous page. */
  position?: WakePosition | undefined
}

/**
 * SQL of a list of deliveries of a destination that are pending or retrying, as `found` (document_id). It asks the index
 * deliveries_by_destination once per status, so each status is read in the order of the documents, and no further than needed.
 */
const openDeliveries = (conditions: string, order: 'asc' | 'desc', limit: string) => `
  (values ('pending'), ('retrying')) as open (status)
  cross join lateral (
    select document_id
    from deliveries
    where destination_id = :destinationId
      and deliveries.status = open.status
      ${conditions}
    order by document_id ${order}
    limit ${limit}
  ) as found`

/** Finds out how far the deliveries of earlier pages have come. */
const readProgress = async (trx: Transaction, { destinationId, position }: PageRequest) => {
  const { rows } = await trx.raw<{ rows: { isClosed: boolean; awake: number; last: string | null }[] }>(
    `
    select
      coalesce((select circuit = 'closed' from destination_gates where destination_id = :destinationId), true) as "isClosed",
      (
        select count(*)::integer
        from ${openDeliveries('and next_attempt_at <= now() and document_id <= :after', 'asc', ':pageSize')}
      ) as awake,
      coalesce(:last, (select max(document_id) from ${openDeliveries('', 'desc', '1')})) as last
    `,
    { destinationId, pageSize, after: position?.after ?? '', last: position?.last ?? null },
  )
  return rows[0]!
}

/** Finds the next deliveries that wait. One that is under way, or waits for its back-off, is left out. */
const findWaiting = async (
  trx: Transaction,
  destinationId: string,
  { after, last }: WakePosition,
  limit: number,
): Promise<DocumentKey[]> => {
  const { rows } = await trx.raw<{ rows: DocumentKey[] }>(
    `
    with waiting as materialized (
      select document_id
      from ${openDeliveries(
        'and next_attempt_at <= now() and attempt_id is null and document_id > :after and document_id <= :last',
        'asc',
        ':limit',
      )}
      order by document_id
      limit :limit
    )
    select
      document_id as "documentId", user_slug || '/' || workspace_slug as workspace, repo_id as "repoId", doc_id as "docId", comp_id as "compId"
    from waiting
    join documents on documents.id = document_id
    join workspaces on workspaces.id = workspace_id
    order by document_id
    `,
    { destinationId, after, last, limit },
  )
  return rows
}

export const createWake = (db: Database) => ({
  /**
   * Wakes as many deliveries as earlier pages have left room for, or a few if the circuit is not closed.
   * @returns the page with its committed messages
   */
  wakeNextPage: (page: PageRequest): Promise<Omit<WakePage, 'count'> & { messages: WakeDelivery[] }> =>
    db.transaction(async (trx) => {
      const { destinationId, startedAt } = page
      const { isClosed, awake, last } = await readProgress(trx, page)
      const position = { after: page.position?.after ?? '', last: last ?? '' }
      const room = isClosed ? pageSize - awake : trialCandidates
      const documents = room > 0 ? await findWaiting(trx, destinationId, position, room) : []
      const messages = documents.map((document): WakeDelivery => ({ kind: 'wakeDelivery', document, destinationId, startedAt }))
      await addMessages(trx, messages)
      return {
        messages,
        position: { ...position, after: documents.at(-1)?.documentId ?? position.after },
        isLast: !isClosed || documents.length < room,
        ...(!isClosed && { stopped: 'the circuit is not closed' }),
      }
    }),
})

export type Wake = ReturnType<typeof createWake>
