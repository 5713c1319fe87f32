import type { Database } from '../../src/db/database.ts'

/** Returns true if a statement, or this many statements, in the database of this test file wait for a lock. */
export const waitsForLock = async (db: Database, statements = 1): Promise<boolean> => {
  const { rows } = await db.raw(`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
  return rows.length >= statements
}
