import type { Database } from '../db/database.ts'
import type { ContentStore } from './store.ts'

type Kind = ContentStore['kind']

// bounds one query and one request to the bucket
const sweepBatch = 100

/**
 * Removes bytes that no document came to own: uploads that were cut off, and contents whose document was let go. Two sweeps at once
 * do no harm. A content that is owned in this very moment is safe: its document's reference refuses the deletion.
 * @param stores those this process can reach; contents of the others stay for one that can
 * @returns how many contents were removed
 */
export const sweepOrphans = async (
  db: Database,
  stores: Partial<Record<Kind, ContentStore | undefined>>,
  olderThan: Date,
  signal?: AbortSignal,
): Promise<number> => {
  let removed = 0
  for (const store of Object.values(stores)) {
    if (!store) continue
    for (;;) {
      signal?.throwIfAborted()
      const orphans = await db('contents')
        .select<{ id: string }[]>('id')
        .where({ store: store.kind })
        .whereNull('owned_at')
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
