import type { Stores } from '../content/store.ts'
import type { Database } from '../db/database.ts'

// Size of one query and of one request to the bucket.
const sweepBatch = 100

/**
 * Removes contents without an owner: aborted uploads, and contents that documents have disowned. A content that captured bodies refer to
 * stays until retention has released it. Safe to run concurrently. A content that becomes owned at the same moment is safe, because the
 * reference of its document prevents the deletion.
 * @param stores the stores that this process can reach; contents in other stores stay
 * @returns the number of removed contents
 */
export const sweepOrphans = async (db: Database, stores: Stores, olderThan: Date, signal?: AbortSignal): Promise<number> => {
  let removed = 0
  for (const store of Object.values(stores)) {
    if (!store) continue
    for (;;) {
      signal?.throwIfAborted()
      const orphans = await db('contents')
        .select<{ id: string }[]>('id')
        .where({ store: store.kind })
        .whereNull('owned_at')
        .whereNull('captured_on')
        .where('created_at', '<', olderThan)
        .orderBy('created_at')
        .limit(sweepBatch)
      await store.remove(orphans.map(({ id }) => id))
      removed += orphans.length
      if (orphans.length < sweepBatch) break
    }
  }
  return removed
}
