import { AppError } from '../base/errors.ts'
import { createStatement, type Database } from '../db/database.ts'
import { beforeAllEvents, eventIdOf, eventPositionOf, type EventName, type EventPosition } from '../domain/events.ts'

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
  /** Where to go on: the id of the last event that was read or passed over, or the place before the oldest event that is kept. */
  nextCursor: string
  /** True if more events may be known already. */
  hasMore: boolean
}

// A reader of rare types passes over others. So many rows are read in 30 ms.
const scanRows = 10_000

/**
 * SQL: the position before which no event can appear any more. The horizon can fall: a transaction of another database that has just ended
 * cannot be told from one of this database.
 */
const clock = 'select current_event_epoch() as epoch, event_horizon() as transaction'

type Found = Omit<Event, 'id'> & EventPosition

interface Row {
  removedTo: string
  /** True if the workspace has an event at the position. */
  isKnown: boolean
  /** The last event, if that was asked for. */
  newest: EventPosition | null
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
      and (events.epoch, events.transaction, number) > (:epoch::bigint, :transaction::bigint, :number::bigint)
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
    (select events_removed_to from workspaces where id = :workspaceId) as "removedTo",
    exists (
      select
      from events
      where workspace_id = :workspaceId
        and epoch = :epoch::bigint
        and transaction = :transaction::bigint
        and number = :number::bigint
    ) as "isKnown",
    case when :isLatest::boolean then (
      select jsonb_build_object('epoch', epoch, 'transaction', transaction, 'number', number)
      from events
      where workspace_id = :workspaceId
        and (events.epoch, events.transaction) < ((select clock.epoch from clock), (select clock.transaction from clock))
      order by events.epoch desc, events.transaction desc, number desc
      limit 1
    ) end as newest,
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
  `,
)

/** Finds the waiting requests whose workspace has an event after their position. */
const findWaiting = createStatement<{ key: string }>(
  'find-events-waited-for',
  `
  with clock as materialized (
    ${clock}
  )
  select key
  from unnest(:keys::text[], :workspaceIds::text[], :epochs::bigint[], :transactions::bigint[], :numbers::bigint[])
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

/** Finds the first event of each workspace that is held back, by an index: 10,000 workspaces take 20 ms. */
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

const beginningOf = (removedTo: string): string => removedTo || eventIdOf(beforeAllEvents)

/**
 * A cursor is the id of an event, or the place before the oldest event that is kept. A database that was restored, or whose standby lacked
 * transactions, does not have every event that was read. A reader of such an event would miss what was written since.
 */
const refuseGone = ({ removedTo, isKnown }: Row, after: string): void => {
  if (comesAfter(removedTo, after)) {
    throw new AppError(
      'gone',
      'Events after this cursor have been removed. Read the documents for what you have missed, and go on with after=latest.',
    )
  }
  if (!isKnown && after !== beginningOf(removedTo)) {
    throw new AppError(
      'gone',
      'This database does not have the event of this cursor. Read the documents for what you have missed, and go on with after=latest.',
    )
  }
}

/** Returns the key of a topic of `createWaiting` for a request that waits for an event after a cursor. */
export const eventKeyOf = (workspaceId: string, cursor: string): string => `${workspaceId} ${cursor}`

/** Reads events in their order. None can appear before one that was read: see docs/events.md. */
export const createEvents = (db: Database) => {
  return {
    /** Returns the cursor before the oldest event that is kept. */
    beginning: async (workspaceId: string): Promise<string> => {
      const row = await db('workspaces')
        .where({ id: workspaceId })
        .first<{ removedTo: string } | undefined>('events_removed_to as removedTo')
      return beginningOf(row?.removedTo ?? '')
    },

    /** @throws `AppError` 410 if events after the cursor were removed, or if this database does not have its event */
    list: async (workspaceId: string, { after, types, limit }: EventsRequest): Promise<EventsPage> => {
      const isLatest = after === 'latest'
      const position = after === undefined || isLatest ? beforeAllEvents : eventPositionOf(after)
      const scan = isLatest ? 0 : scanRows
      const [row] = await readEvents(db, { workspaceId, ...position, types: types ? [...types] : null, limit, scan, isLatest })
      const { removedTo, newest, scanned, last, events } = row!
      if (isLatest) return { items: [], nextCursor: newest ? eventIdOf(newest) : beginningOf(removedTo), hasMore: false }
      if (after !== undefined) refuseGone(row!, after)
      const isFull = events.length === limit
      const end = isFull ? events.at(-1)! : last
      return {
        items: events.map(({ event, data, createdAt, ...at }) => ({ id: eventIdOf(at), event, data, createdAt: new Date(createdAt) })),
        // Never the horizon: PostgreSQL can give its number again after a crash, if no transaction with it was on the disk.
        nextCursor: end ? eventIdOf(end) : (after ?? beginningOf(removedTo)),
        hasMore: isFull || scanned === scanRows,
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
