import { idPrefixAt, timeOfIdPrefix } from '../base/ids.ts'
import type { Database } from './database.ts'

// Captured requests are kept for days, the other records for months. Partitions are as long, so that retention can drop them whole.
const partitionedTables = [
  { table: 'captured_requests', step: 'day', ahead: 14 },
  { table: 'captured_bodies', step: 'day', ahead: 14 },
  { table: 'delivery_attempts', step: 'month', ahead: 3 },
  { table: 'audit_logs', step: 'month', ahead: 3 },
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

interface Partition {
  name: string
  /** Exclusive upper bound of its ids: the first ten characters of a ULID. */
  to: string
}

export const listPartitions = async (db: Database, table: string): Promise<Partition[]> => {
  const { rows } = await db.raw<{ rows: Partition[] }>(
    `
    select child.relname as name, substring(pg_get_expr(child.relpartbound, child.oid) from 'TO \\(''(\\w+)''\\)') as to
    from pg_inherits
    join pg_class child on child.oid = pg_inherits.inhrelid
    where pg_inherits.inhparent = to_regclass(?)
    order by child.relname
    `,
    [table],
  )
  return rows
}

/** Lists the partitioned tables that have no partition for rows of this time. */
export const listTablesWithoutPartition = async (db: Database, time: Date): Promise<string[]> => {
  const tables: string[] = []
  for (const { table } of partitionedTables) {
    const ends = (await listPartitions(db, table)).map(({ to }) => to)
    if (!ends.some((end) => end > idPrefixAt(time))) tables.push(table)
  }
  return tables
}

/** Lists the time up to which the partitions of each partitioned table have room for rows. */
export const listPartitionEnds = async (db: Database): Promise<{ table: string; end: Date }[]> => {
  const ends: { table: string; end: Date }[] = []
  for (const { table } of partitionedTables) {
    const last = (await listPartitions(db, table))
      .map(({ to }) => to)
      .toSorted()
      .at(-1)
    ends.push({ table, end: last === undefined ? new Date(0) : timeOfIdPrefix(last) })
  }
  return ends
}

/**
 * Creates the partitions of the present and of the time ahead, bounded by the ULIDs of their first and last moment. It must run at least
 * weekly, because PostgreSQL refuses a row without a partition. The first partition is the one of the day before: the clock of a new
 * installation can be set back. A new table is created and then attached: attaching does not block
 * readers and writers of the other partitions.
 */
export const ensurePartitions = async (db: Database, now: Date): Promise<void> => {
  for (const { table, step, ahead } of partitionedTables) {
    const existing = new Set((await listPartitions(db, table)).map(({ name }) => name))
    const first = startOf(step, new Date(now.getTime() - 86_400_000), 0)
    const last = startOf(step, now, ahead)
    for (let from = first; from <= last; from = startOf(step, from, 1)) {
      const name = partitionName(table, step, from)
      if (existing.has(name)) continue
      await db.transaction(async (trx) => {
        // Two processes may start at once. The second one finds the table.
        await trx.raw('select pg_advisory_xact_lock(hashtext(?))', [name])
        const { rows: found } = await trx.raw<{ rows: unknown[] }>('select 1 where to_regclass(?) is not null', [name])
        if (found.length > 0) return
        await trx.raw('create table ?? (like ?? including all)', [name, table])
        await trx.raw(
          `alter table ?? attach partition ?? for values from ('${idPrefixAt(from)}') to ('${idPrefixAt(startOf(step, from, 1))}')`,
          [table, name],
        )
      })
    }
  }
}
