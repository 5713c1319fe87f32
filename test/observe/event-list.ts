import type { Database } from '../../src/db/database.ts'
import { eventPositionOf } from '../../src/domain/events.ts'
import type { Events } from '../../src/observe/events.ts'
import { until } from '../support/until.ts'

/**
 * Creates a function that reads a page, as soon as it reaches all that was written before. Until then it can be empty: a transaction of another
 * test's database that has just ended holds events back for a moment.
 */
export const createList =
  (db: Database, reader: Events) =>
  async (...request: Parameters<Events['list']>) => {
    const { rows } = await db.raw<{ rows: { next: number }[] }>('select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next')
    return until(
      'no earlier transaction runs',
      () => reader.list(...request),
      ({ hasMore, nextCursor }) => hasMore || eventPositionOf(nextCursor).transaction >= rows[0]!.next - 1,
    )
  }
