import type { Knex } from 'knex'
import type { Database } from './database.ts'

const fetchRows = 500

/**
 * The rows of a query as they are taken, out of one snapshot. A connection is held meanwhile, and goes back to the pool however it
 * ends. A cursor that is fetched from, and no statement that runs all the while: the longest a statement may take holds for each fetch.
 */
export async function* readRows<Row>(db: Database, query: Knex.QueryBuilder): AsyncGenerator<Row> {
  const trx = await db.transaction()
  try {
    await trx.raw('declare rows_to_read no scroll cursor for ?', [query])
    for (;;) {
      const { rows } = await trx.raw<{ rows: Row[] }>(`fetch ${fetchRows} from rows_to_read`)
      yield* rows
      if (rows.length < fetchRows) return
    }
  } finally {
    // closes the cursor; on a connection that is lost, nothing is left to close
    await trx.rollback().catch(() => {})
  }
}
