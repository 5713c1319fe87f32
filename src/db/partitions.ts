import { DatabaseError } from 'pg'
import { dayMs } from '../base/day.ts'
import { logFailure, reasonOf } from '../base/failure-log.ts'
import { idPrefixAt, timeOfId, timeOfIdPrefix } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Database } from './database.ts'

// Captured requests are kept for days, the other records for months. Partitions are as long, so that retention can drop them whole.
// A captured create is written once more, with its final times. It needs no entry of any index if the page has room for it. A captured request
// that is written once takes twice as much of the table in return, and of the indexes as much as before.
const partitionedTables = [
  { table: 'captured_requests', step: 'day', ahead: 14, fillfactor: 50 },
  { table: 'captured_bodies', step: 'day', ahead: 14, fillfactor: 100 },
  { table: 'delivery_attempts', step: 'month', ahead: 3, fillfactor: 100 },
  { table: 'audit_logs', step: 'month', ahead: 3, fillfactor: 100 },
] as const

const startOf = (step: 'day' | 'month', time: Date, offset: number) =>
  step === 'day'
    ? new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate() + offset))
    : new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + offset, 1))

const partitionName = (table: string, step: 'day' | 'month', from: Date) =>
  `${table}_${from
    .toISOString()
    .slice(0, step === 'day' ? 10 : 7)
    .replaceAll('-', '')}`

type PartitionedTable = (typeof partitionedTables)[number]

export interface Partition {
  name: string
  /** First ten characters of its first id. */
  from: string
  /** Exclusive upper bound of its ids: the first ten characters of a ULID. */
  to: string
}

export const listPartitions = async (db: Database, table: string): Promise<Partition[]> => {
  const { rows } = await db.raw<{ rows: Partition[] }>(
    `
    select
      child.relname as name,
      substring(pg_get_expr(child.relpartbound, child.oid) from 'FROM \\(''(\\w+)''\\)') as from,
      substring(pg_get_expr(child.relpartbound, child.oid) from 'TO \\(''(\\w+)''\\)') as to
    from pg_inherits
    join pg_class child on child.oid = pg_inherits.inhrelid
    where pg_inherits.inhparent = to_regclass(?)
    order by child.relname
    `,
    [table],
  )
  return rows
}

/** Returns the end of the partitions that follow each other without a gap from now on. */
const endOf = async (db: Database, { table }: PartitionedTable, now: Date): Promise<Date> => {
  let end = idPrefixAt(now)
  // In the order of their bounds: the names of the partitions of a table sort like their times.
  for (const { from, to } of await listPartitions(db, table)) if (from <= end && to > end) end = to
  return timeOfIdPrefix(end)
}

/** Lists the partitioned tables that have no partition for rows of this time. */
export const listTablesWithoutPartition = async (db: Database, time: Date): Promise<string[]> => {
  const tables: string[] = []
  for (const partitioned of partitionedTables) if ((await endOf(db, partitioned, new Date())) <= time) tables.push(partitioned.table)
  return tables
}

/** Lists the time up to which the partitions of each partitioned table have room for rows. */
export const listPartitionEnds = async (db: Database): Promise<{ table: string; end: Date }[]> => {
  const ends: { table: string; end: Date }[] = []
  for (const partitioned of partitionedTables) ends.push({ table: partitioned.table, end: await endOf(db, partitioned, new Date()) })
  return ends
}

/** Creates a partition, unless it exists. A new table is created and then attached: attaching does not block readers and writers of the others. */
const createPartition = (db: Database, { table, step, fillfactor }: PartitionedTable, from: Date): Promise<void> =>
  db.transaction(async (trx) => {
    const name = partitionName(table, step, from)
    // Two processes may start at once. The second one finds the table.
    await trx.raw('select pg_advisory_xact_lock(hashtext(?))', [name])
    const { rows: found } = await trx.raw<{ rows: unknown[] }>('select 1 where to_regclass(?) is not null', [name])
    if (found.length > 0) return
    await trx.raw(`create table ?? (like ?? including all) with (fillfactor = ${fillfactor})`, [name, table])
    await trx.raw(
      `alter table ?? attach partition ?? for values from ('${idPrefixAt(from)}') to ('${idPrefixAt(startOf(step, from, 1))}')`,
      [table, name],
    )
  })

/**
 * Creates the partitions of the present and of the time ahead, bounded by the ULIDs of their first and last moment. It must run at least
 * weekly, because PostgreSQL refuses a row without a partition. The first partition is the one of the day before: the clock of a new
 * installation can be set back.
 * @throws what has failed for a table, after the others have their partitions
 */
export const ensurePartitions = async (db: Database, now: Date): Promise<void> => {
  const ensure = async (partitioned: PartitionedTable) => {
    const { table, step, ahead } = partitioned
    const existing = new Set((await listPartitions(db, table)).map(({ name }) => name))
    const first = startOf(step, new Date(now.getTime() - dayMs), 0)
    const last = startOf(step, now, ahead)
    for (let from = first; from <= last; from = startOf(step, from, 1)) {
      if (!existing.has(partitionName(table, step, from))) await createPartition(db, partitioned, from)
    }
  }
  const failures: unknown[] = []
  for (const partitioned of partitionedTables) await ensure(partitioned).catch((thrown: unknown) => void failures.push(thrown))
  if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures, failures.map(reasonOf).join('; '))
}

const checkViolation = '23514'

/**
 * Runs work that writes a row with this id. If the table has no partition for it, because the clock was wrong when the id was made, the
 * partition is created and the work repeated. A default partition would do as well, but PostgreSQL then reads every partition for a page.
 */
export const withPartitionOf = async <Result>(
  db: Database,
  table: PartitionedTable['table'],
  id: string,
  work: () => Promise<Result>,
): Promise<Result> => {
  try {
    return await work()
  } catch (thrown) {
    const isMissing =
      thrown instanceof DatabaseError && thrown.code === checkViolation && thrown.message.includes('no partition of relation')
    if (!isMissing) throw thrown
    const partitioned = partitionedTables.find((each) => each.table === table)!
    await createPartition(db, partitioned, startOf(partitioned.step, timeOfId(id), 0))
    return work()
  }
}

const keepIntervalMs = 86_400_000

/**
 * Creates partitions now and daily. API processes do, so that creates are captured and accepted although no worker has run for two weeks.
 * @returns a function that stops this
 */
export const keepPartitions = (db: Database, log: Log, intervalMs = keepIntervalMs): (() => Promise<void>) => {
  const ensure = () =>
    ensurePartitions(db, new Date()).catch((thrown: unknown) => {
      logFailure(log, thrown, 'partitions could not be created; the next check or the maintenance job creates them')
    })
  let running = ensure()
  const timer = setInterval(() => {
    running = ensure()
  }, intervalMs)
  return async () => {
    clearInterval(timer)
    await running
  }
}
