import type { Database } from '../../src/db/database.ts'
import type { Events } from '../../src/events/event-log.ts'
import { until } from '../support/until.ts'

/**
 * Creates a function that reads a page as soon as nothing can hide what was written before, also later. Until then, a transaction of another
 * test's database that has just ended holds back the events that are younger than it, for a moment.
 */
export const createList =
  (db: Database, reader: Events) =>
  async (...request: Parameters<Events['list']>) => {
    const transactions = async () => {
      const { rows } = await db.raw<{ rows: { oldest: number; next: number }[] }>(
        'select pg_snapshot_xmin(snapshot)::text::bigint as oldest, pg_snapshot_xmax(snapshot)::text::bigint as next from pg_current_snapshot() as snapshot',
      )
      return rows[0]!
    }
    const { next } = await transactions()
    await until('all transactions of the server that began before have ended', async () => (await transactions()).oldest >= next)
    return reader.list(...request)
  }
