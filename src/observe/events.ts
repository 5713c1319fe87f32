import { AppError } from '../base/errors.ts'
import { createStatement, type Database } from '../db/database.ts'
import { beforeAllEvents, eventIdOf, eventPositionOf, lastBefore, type EventName, type EventPosition } from '../domain/events.ts'

interface Event {
  id: string
  event: EventName
  data: Record<string, unknown>
  createdAt: Date
}

export interface EventsRequest {
  /** The id after which to go on; `latest` for what happens from now on. By default from the oldest event that is kept. */
  after?: string | undefined
  types?: readonly EventName[] | undefined
  limit: number
}

export interface EventsPage {
  items: Event[]
  /** Where to go on: behind the last event of the page or, if no more are known, behind all that were passed over. */
  nextCursor: string
  /** True if more events may be known already. */
  hasMore: boolean
}

// A reader of rare types passes over others. So many rows are read in 30 ms.
const scanRows = 10_000

/**
 * SQL: the position before which no event can appear any more, the number of the next transaction, and if it is stored which server writes
 * this epoch. The horizon can fall: a transaction of another database that has just ended cannot be told from one of this database.
 */
const clock = `
  select
    current_event_epoch() as epoch,
    event_horizon() as transaction,
    pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next_transaction,
    event_server_started_at = pg_postmaster_start_time() as is_stored
  from installation
`

type Found = Omit<Event, 'id'> & EventPosition

interface Row {
  epoch: number
  transaction: number
  nextTransaction: number
  isStored: boolean
  removedTo: string
  scanned: number
  /** The last row that was read, whatever its type. */
  last: EventPosition | null
  events: (Omit<Found, 'createdAt'> & { createdAt: string })[]
}

const readEvents = createStatement<Row>(
  'read-events',
  `
  with clock as materialized (
    ${clock}
  ), scanned as materialized (
    select events.epoch, events.transaction, number, type, data, created_at
    from events
    where workspace_id = :workspaceId
      and (events.epoch, events.transaction, number) > (:epoch::integer, :transaction::bigint, :number::bigint)
      and (events.epoch, events.transaction) < ((select clock.epoch from clock), (select clock.transaction from clock))
    order by events.epoch, events.transaction, number
    limit :scan
  ), found as (
    select *
    from scanned
    where :types::text[] is null or type = any(:types::text[])
    order by epoch, transaction, number
    limit :limit
  )
  select
    clock.epoch, clock.transaction, next_transaction as "nextTransaction", is_stored as "isStored",
    (select events_removed_to from workspaces where id = :workspaceId) as "removedTo",
    (select count(*) from scanned)::integer as scanned,
    (
      select jsonb_build_object('epoch', epoch, 'transaction', transaction, 'number', number)
      from scanned
      order by epoch desc, transaction desc, number desc
      limit 1
    ) as last,
    coalesce(
      (
        select jsonb_agg(jsonb_build_object(
          'epoch', epoch, 'transaction', transaction, 'number', number, 'event', type, 'data', data, 'createdAt', created_at
        ) order by epoch, transaction, number)
        from found
      ),
      '[]'
    ) as events
  from clock
  `,
)

/**
 * Stores which server of PostgreSQL runs the database, if it is another one than before. Until then, a third one would take the same epoch.
 */
const storeEpoch = (db: Database) =>
  db.raw(`
    update installation
    set event_epoch = event_epoch + 1, event_server_started_at = pg_postmaster_start_time()
    where event_server_started_at <> pg_postmaster_start_time()
  `)

/** Of requests that wait: a workspace, and the position after which they wait for an event. */
const findWaiting = createStatement<{ key: string }>(
  'find-events-waited-for',
  `
  with clock as materialized (
    ${clock}
  )
  select key
  from unnest(:keys::text[], :workspaceIds::text[], :epochs::integer[], :transactions::bigint[], :numbers::bigint[])
    as waiting (key, workspace_id, epoch, transaction, number)
  where exists (
    select
    from events
    where events.workspace_id = waiting.workspace_id
      and (events.epoch, events.transaction, events.number) > (waiting.epoch, waiting.transaction, waiting.number)
      and (events.epoch, events.transaction) < ((select clock.epoch from clock), (select clock.transaction from clock))
  )
  `,
)

/** Of each workspace the first event that is held back, which the index finds at once: 10,000 workspaces take 20 ms. */
const findHeldBack = createStatement<{ seconds: number }>(
  'find-events-held-back',
  `
  with clock as materialized (
    ${clock}
  )
  select coalesce(extract(epoch from now() - min(held_back.created_at)), 0)::float8 as seconds
  from workspaces
  cross join lateral (
    select created_at
    from events
    where events.workspace_id = workspaces.id
      and (events.epoch, events.transaction) >= ((select clock.epoch from clock), (select clock.transaction from clock))
    order by events.epoch, events.transaction, number
    limit 1
  ) as held_back
  `,
)

/** Returns the age of the oldest event that readers do not see yet, because an earlier transaction still runs; 0 if there is none. */
export const measureHeldBack = async (db: Database): Promise<number> => (await findHeldBack(db, {}))[0]!.seconds

const comesAfter = (one: string, other: string) => one > other

const refuseGone = ({ removedTo, epoch, nextTransaction }: Row, after: string): void => {
  if (comesAfter(removedTo, after)) {
    throw new AppError(
      'gone',
      'Events after this cursor have been removed. Read the documents for what you have missed, and go on with after=latest.',
    )
  }
  if (comesAfter(after, eventIdOf(lastBefore({ epoch, transaction: nextTransaction })))) {
    throw new AppError('gone', 'This cursor is not of this database, or of a later state of it. Go on with after=latest.')
  }
}

/** Returns the key of a topic of `createWaiting` for a request that waits for an event after a cursor. */
export const eventKeyOf = (workspaceId: string, cursor: string): string => `${workspaceId} ${cursor}`

/** Reads events in their order. None can appear before one that was read: see docs/events.md. */
export const createEvents = (db: Database) => {
  const read = async (workspaceId: string, position: EventPosition, { types, limit }: EventsRequest): Promise<Row> => {
    const [row] = await readEvents(db, { workspaceId, ...position, types: types ? [...types] : null, limit, scan: scanRows })
    if (!row) throw new Error('the table installation is empty')
    if (row.isStored) return row
    await storeEpoch(db)
    return read(workspaceId, position, { types, limit })
  }

  return {
    /** Returns the cursor before the oldest event that is kept. */
    beginning: async (workspaceId: string): Promise<string> => {
      const row = await db('workspaces')
        .where({ id: workspaceId })
        .first<{ removedTo: string } | undefined>('events_removed_to as removedTo')
      return row?.removedTo || eventIdOf(beforeAllEvents)
    },

    /** @throws `AppError` 410 if events after the cursor were removed, or the cursor comes from another database */
    list: async (workspaceId: string, request: EventsRequest): Promise<EventsPage> => {
      const { after, limit } = request
      const isLatest = after === 'latest'
      const position = after === undefined || isLatest ? beforeAllEvents : eventPositionOf(after)
      const row = await read(workspaceId, position, isLatest ? { limit: 0 } : request)
      const end = eventIdOf(lastBefore(row))
      if (isLatest) return { items: [], nextCursor: end, hasMore: false }
      if (after !== undefined) refuseGone(row, after)
      const isFull = row.events.length === limit
      const hasMore = isFull || row.scanned === scanRows
      const last = isFull ? row.events.at(-1)! : row.last!
      const nextCursor = hasMore ? eventIdOf(last) : after !== undefined && comesAfter(after, end) ? after : end
      return {
        items: row.events.map(({ event, data, createdAt, ...at }) => ({ id: eventIdOf(at), event, data, createdAt: new Date(createdAt) })),
        nextCursor,
        hasMore,
      }
    },

    /** Returns the keys of `eventKeyOf` for which there is an event. */
    findWaiting: async (keys: string[]): Promise<Map<string, true>> => {
      const waiting = keys.map((key) => key.split(' ') as [workspaceId: string, cursor: string])
      const positions = waiting.map(([, cursor]) => eventPositionOf(cursor))
      const found = await findWaiting(db, {
        keys,
        workspaceIds: waiting.map(([workspaceId]) => workspaceId),
        epochs: positions.map(({ epoch }) => epoch),
        transactions: positions.map(({ transaction }) => transaction),
        numbers: positions.map(({ number }) => number),
      })
      return new Map(found.map(({ key }) => [key, true]))
    },
  }
}

export type Events = ReturnType<typeof createEvents>
