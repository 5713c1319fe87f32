import type { Database } from '../../src/db/database.ts'

interface Index {
  table: string
  name: string
  definition: string
  /** Null unless the index belongs to a constraint. */
  constraint: string | null
}

/** Lists the indexes of these tables, except those that the order of ids fills at their end and that foreign keys need. */
const listIndexes = async (db: Database, tables: string[]): Promise<Index[]> => {
  const { rows } = await db.raw<{ rows: Index[] }>(
    `
    select
      indrelid::regclass::text as table, indexrelid::regclass::text as name,
      replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') as definition, pg_get_constraintdef(pg_constraint.oid) as constraint
    from pg_index
    left join pg_constraint on conindid = indexrelid and contype in ('p', 'u')
    where indrelid = any (?::regclass[])
      and (pg_constraint.oid is null or indrelid = 'document_keys'::regclass)
    order by 1, 2
    `,
    [tables],
  )
  return rows
}

// The values of an index are then sorted in few passes.
const memory = '1GB'

/**
 * Drops the indexes of tables, fills these, and creates the indexes again: sorting all rows takes much less time than inserting each, and
 * the indexes are smaller.
 */
export const withoutIndexes = async (db: Database, tables: string[], say: (line: string) => void, fillTables: () => Promise<void>) => {
  const indexes = await listIndexes(db, tables)
  for (const { table, name, constraint } of indexes) {
    await (constraint === null ? db.raw('drop index ??', [name]) : db.raw('alter table ?? drop constraint ??', [table, name]))
  }
  await fillTables()
  for (const { table, name, definition, constraint } of indexes) {
    await db.transaction(async (trx) => {
      await trx.raw(`select set_config('maintenance_work_mem', ?, true)`, [memory])
      await (constraint === null ? trx.raw(definition) : trx.raw(`alter table ?? add constraint ?? ${constraint}`, [table, name]))
    })
    say(`${name} is created.`)
  }
}
