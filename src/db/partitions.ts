import { idPrefixAt } from '../ids.ts'
import type { Database } from './database.ts'

// Retention is counted in days for captured requests, in months for the rest: a partition is as long as what drops it is coarse.
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
  /** Where its ids end: the first ten characters of a ULID, exclusive. */
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

/**
 * Makes the partitions of now and of the time ahead, each bounded by the ULIDs of its first and last moment. Run it at least
 * weekly: a row with no partition to go to is refused. A new table is attached, not created in place, because attaching lets
 * readers and writers of the other partitions go on.
 */
export const ensurePartitions = async (db: Database, now: Date): Promise<void> => {
  for (const { table, step, ahead } of partitionedTables) {
    const existing = new Set((await listPartitions(db, table)).map(({ name }) => name))
    for (let offset = 0; offset <= ahead; offset += 1) {
      const from = startOf(step, now, offset)
      const name = partitionName(table, step, from)
      if (existing.has(name)) continue
      await db.transaction(async (trx) => {
        // two processes may start at once: the second one finds the table there
        await trx.raw('select pg_advisory_xact_lock(hashtext(?))', [name])
        const { rows: found } = await trx.raw<{ rows: unknown[] }>('select 1 where to_regclass(?) is not null', [name])
        if (found.length > 0) return
        await trx.raw('create table ?? (like ?? including all)', [name, table])
        await trx.raw(
          `alter table ?? attach partition ?? for values from ('${idPrefixAt(from)}') to ('${idPrefixAt(startOf(step, now, offset + 1))}')`,
          [table, name],
        )
      })
    }
  }
}
