import type { Knex } from 'knex'
import { dayMs, dayOf, endOfDay } from '../base/day.ts'
import type { Database } from './database.ts'

/** Kinds of rows that counters count: attempts by hour and day only; failures are deliveries that need attention or are retried. */
type CounterKind = 'documents' | 'deliveries' | 'attempts' | 'failures' | 'enrichments'

/** Kinds that are also counted for all destinations of a repository together, and for all repositories of a destination. */
type SummedKind = 'deliveries' | 'attempts'
const sums = ['', 'all_', 'destination_'] as const
/** Which of these sums a reader adds up, so that it reads few counters; empty for the counters of each repository and destination. */
export type Sum = (typeof sums)[number]

/** SQL: the kinds of counters of attempts, which retention removes: rows of `values`, and a list for `in`. */
export const attemptKinds = sums.map((sum) => `('${sum}attempts')`).join(', ')

/** Conditions on the columns of a counter. */
export interface CounterFilter {
  repo_id?: string
  destination_id?: string
  status?: string
  /** One of these. */
  details?: string[]
}

/** A part of a time range. `before` is exclusive. Null: the range is open. */
export interface Span {
  since: Date | null
  before: Date | null
}

const hourMs = 3_600_000
const floor = (time: Date, unitMs: number) => new Date(Math.floor(time.getTime() / unitMs) * unitMs)
const ceil = (time: Date, unitMs: number) => new Date(Math.ceil(time.getTime() / unitMs) * unitMs)

/** Returns the smallest range of whole hours or days, in UTC, that contains a range. */
export const wholePeriods = (period: 'hour' | 'day', { since, before }: { since: Date; before: Date }) => {
  const lengthMs = period === 'hour' ? hourMs : dayMs
  return { since: floor(since, lengthMs), before: ceil(before, lengthMs), lengthMs }
}

const isEmpty = ({ since, before }: Span) => since !== null && before !== null && since >= before

/** Splits a range into whole hours, if it contains any, and what is left at both ends. */
const splitRange = ({ since, before }: Span): { whole: Span | undefined; edges: Span[] } => {
  const whole = { since: since && ceil(since, hourMs), before: before && floor(before, hourMs) }
  if (isEmpty(whole)) return { whole: undefined, edges: [{ since, before }].filter((edge) => !isEmpty(edge)) }
  const edges = [...(since ? [{ since, before: whole.since }] : []), ...(before ? [{ since: whole.before, before }] : [])]
  return { whole, edges: edges.filter((edge) => !isEmpty(edge)) }
}

/** Returns the counters that make up a range of whole hours, so that few rows are added up: days, and hours before and after them. */
const periodsOf = ({ since, before }: Span): (Span & { period: 'hour' | 'day' | 'all' })[] => {
  if (since === null && before === null) return [{ period: 'all', since, before }]
  const days = { since: since && ceil(since, dayMs), before: before && floor(before, dayMs) }
  if (isEmpty(days)) return [{ period: 'hour', since, before }]
  return [
    { period: 'day' as const, ...days },
    ...(since ? [{ period: 'hour' as const, since, before: days.since }] : []),
    ...(before ? [{ period: 'hour' as const, since: days.before, before }] : []),
  ].filter((span) => !isEmpty(span))
}

const within = (query: Knex.QueryBuilder, column: string, { since, before }: Span) => {
  if (since) query.where(column, '>=', since)
  if (before) query.where(column, '<', before)
  return query
}

/**
 * Returns the parts whose numbers add up to the number of rows in a range of whole hours: counters, and changes that are not folded yet.
 * They have to be read in one statement, because the job that folds moves numbers from one to the other.
 */
const partsOf = (
  db: Database,
  workspaceId: string,
  kind: CounterKind,
  { details, ...filter }: CounterFilter,
  hours: Span,
): Knex.QueryBuilder[] => {
  const counted = (table: string) => {
    const query = db(table).where({ workspace_id: workspaceId, kind, ...filter })
    return details ? query.whereIn('detail', details) : query
  }
  const folded = periodsOf(hours).map(({ period, ...span }) => {
    const query = within(counted('counters').where({ period }), 'since', span)
    // Without it, the index would not find the repository.
    if (period === 'all') query.where('since', '-infinity')
    return query.select('count')
  })
  return [...folded, within(counted('counter_deltas'), 'hour', hours).select('change as count')]
}

/** The kind of the changes that a kind of counters adds up. */
const changedKind = (kind: string) => kind.replace(/^(all|destination)_/, '')

/**
 * SQL of the counters of one kind in a range, folded or not, as kind, destination_id, start, status, detail and count. Its parameters are
 * `:workspaceId`, `:interval` (hour or day), `:since` and `:before`: a range of whole intervals.
 * @param kind the sums of a kind also have its name here; those over all destinations have no destination_id
 * @param conditions SQL that further conditions are added with, from `and` on
 */
// A statement reads each kind by itself, because the index has the kind before the time.
export const countsOfRange = (kind: CounterKind | `${Sum}${SummedKind}`, conditions: string) => `
  select '${changedKind(kind)}' as kind, destination_id, since as start, status, detail, count
  from counters
  where workspace_id = :workspaceId
    and kind = '${kind}'
    and period = :interval
    and since >= :since::timestamptz
    and since < :before::timestamptz
    ${conditions}
  union all
  select '${changedKind(kind)}', destination_id, date_trunc(:interval, hour, 'UTC'), status, detail, change
  from counter_deltas
  where workspace_id = :workspaceId
    and kind = '${changedKind(kind)}'
    and hour >= :since::timestamptz
    and hour < :before::timestamptz
    ${conditions}
`

/**
 * SQL of the counters of one kind over all time, folded or not, as kind, repo_id, destination_id, status, detail and count. Its parameter is
 * `:workspaceId`, unless another expression names the workspace, or `any (...)` several.
 * @param kind the sums of deliveries also have the name of deliveries here; those over all destinations have no destination_id
 * @param conditions SQL that further conditions are added with, from `and` on
 */
export const presentCounts = (kind: CounterKind | `${Sum}deliveries`, conditions: string, workspaceId = ':workspaceId') => `
  select '${changedKind(kind)}' as kind, repo_id, destination_id, status, detail, count
  from counters
  where workspace_id = ${workspaceId}
    and kind = '${kind}'
    and period = 'all'
    -- Without it, the index would not find the columns behind it.
    and since = '-infinity'
    ${conditions}
  union all
  select '${changedKind(kind)}', repo_id, destination_id, status, detail, change
  from counter_deltas
  where workspace_id = ${workspaceId}
    and kind = '${changedKind(kind)}'
    ${conditions}
`

/** Returns the start of the hour of a time and the end of its day, in UTC: parameters of `countsSince`. */
export const hourAndDayOf = (time: Date) => ({ hour: floor(time, hourMs), dayEnd: endOfDay(dayOf(time)) })

/**
 * SQL of the counters of one kind from an hour on, folded or not, as destination_id, detail and count. Its parameters are `:workspaceId`,
 * and `:hour` and `:dayEnd`, the start of that hour and the end of its day.
 * @param conditions SQL that further conditions are added with, from `and` on
 */
export const countsSince = (kind: CounterKind, conditions: string) => `
  select destination_id, detail, count
  from counters
  where workspace_id = :workspaceId
    and kind = '${kind}'
    and period = 'hour'
    and since >= :hour::timestamptz
    and since < :dayEnd::timestamptz
    ${conditions}
  union all
  select destination_id, detail, count
  from counters
  where workspace_id = :workspaceId
    and kind = '${kind}'
    and period = 'day'
    and since >= :dayEnd::timestamptz
    ${conditions}
  union all
  select destination_id, detail, change
  from counter_deltas
  where workspace_id = :workspaceId
    and kind = '${kind}'
    and hour >= :hour::timestamptz
    ${conditions}
`

/**
 * Counts the documents of a workspace. Rows themselves are counted only in the two incomplete hours at the ends of a range.
 * @param matching the rows of the workspace that meet the filter
 * @param range times of receipt
 */
export const countDocuments = async (
  db: Database,
  workspaceId: string,
  filter: CounterFilter,
  range: Span,
  matching: () => Knex.QueryBuilder,
): Promise<number> => {
  const { whole, edges } = splitRange(range)
  const parts = [
    ...(whole ? partsOf(db, workspaceId, 'documents', filter, whole) : []),
    ...edges.map((edge) => within(matching(), 'received_at', edge).count({ count: '*' })),
  ]
  if (parts.length === 0) return 0
  const [counted] = await db
    .from(db.unionAll(parts).as('part'))
    .select<{ total: number }[]>(db.raw('coalesce(sum(count), 0)::bigint as total'))
  return counted!.total
}

// Changes that are added up per transaction.
const foldBatchChanges = 10_000

// The counters of a workspace that is being deleted are locked by its deletion.
const foldStatement = `
  with moved as (
    delete from counter_deltas
    where ctid = any (array(
      select ctid
      from counter_deltas
      limit :limit
      for update skip locked
    ))
    returning *
  ), changed as (
    select workspace_id, kind, hour, repo_id, destination_id, status, detail, sum(change) as change
    from moved
    group by workspace_id, kind, hour, repo_id, destination_id, status, detail
    having sum(change) <> 0
  ), counted as (
    select * from changed
    union all
    select workspace_id, summed.kind, hour, summed.repo_id, summed.destination_id, status, detail, sum(change)
    from changed
    cross join lateral (
      values ('all_' || kind, repo_id, ''), ('destination_' || kind, '', destination_id)
    ) as summed (kind, repo_id, destination_id)
    where changed.kind in ('deliveries', 'attempts')
    group by workspace_id, summed.kind, hour, summed.repo_id, summed.destination_id, status, detail
    having sum(change) <> 0
  ), folded as (
    insert into counters (workspace_id, kind, period, since, repo_id, destination_id, status, detail, count)
    select workspace_id, kind, period.name, period.since, repo_id, destination_id, status, detail, sum(change)
    from counted
    cross join lateral (
      values ('hour', hour), ('day', date_trunc('day', hour, 'UTC')), ('all', '-infinity')
    ) as period (name, since)
    where kind not in (${attemptKinds}) or period.name <> 'all'
    group by workspace_id, kind, period.name, period.since, repo_id, destination_id, status, detail
    on conflict (workspace_id, kind, period, since, repo_id, destination_id, status, detail) do update
    set count = counters.count + excluded.count
  )
  select count(*) as moved
  from moved
`

/**
 * Adds the changes that triggers have noted to the counters, batch by batch. Two runs at the same time would lock the same counters in
 * different orders, so the second does nothing.
 * @returns the number of changes
 */
export const foldCounters = async (db: Database, signal: AbortSignal, limit = foldBatchChanges): Promise<number> => {
  for (let total = 0; ;) {
    signal.throwIfAborted()
    const moved = await db.transaction(async (trx) => {
      const { rows: locked } = await trx.raw<{ rows: { isFree: boolean }[] }>(
        `select pg_try_advisory_xact_lock(hashtext('fold-counters')) as "isFree"`,
      )
      if (!locked[0]!.isFree) return 0
      const { rows } = await trx.raw<{ rows: { moved: number }[] }>(foldStatement, { limit })
      await trx('counters').where({ count: 0 }).delete()
      return rows[0]!.moved
    })
    total += moved
    if (moved < limit) return total
  }
}
