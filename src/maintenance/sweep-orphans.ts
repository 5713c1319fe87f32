import { AppError, messageOf } from '../base/errors.ts'
import type { ContentStore, NotRemoved, Stores } from '../content/store.ts'
import type { Database } from '../db/database.ts'
import { isOutage } from '../db/errors.ts'

// Size of one query and of one request to the bucket.
const sweepBatch = 100

/** A content that could not be removed, or a store that cannot be reached, whose contents were left out. */
export interface SweepFailure {
  store: ContentStore['kind']
  contentId?: string
  reason: string
}

/** Returns true if other contents of the store cannot be removed now either. */
const isAway = (thrown: unknown): boolean => (thrown instanceof AppError && thrown.code === 'unavailable') || isOutage(thrown)

/** Removes contents together, or, if that fails because of one of them, one by one. @throws if the store is away */
const removeEach = async (store: ContentStore, ids: string[], signal: AbortSignal | undefined): Promise<NotRemoved[]> => {
  try {
    return await store.remove(ids, signal)
  } catch (thrown) {
    signal?.throwIfAborted()
    if (isAway(thrown)) throw thrown
    const [only, ...others] = ids
    if (others.length === 0) return [{ id: only!, reason: messageOf(thrown) }]
    const kept: NotRemoved[] = []
    for (const id of ids) kept.push(...(await removeEach(store, [id], signal)))
    return kept
  }
}

/**
 * Removes contents without an owner: aborted uploads, and contents that documents have disowned. A content that captured bodies refer to
 * stays until retention has released it. A content that cannot be removed stays until the next run, and does not stop the removal of others; nor
 * does a store that is away. Safe to run concurrently, and while a content gets an owner.
 * @param stores the stores that this process can reach; contents in other stores stay
 * @returns the number of removed contents
 */
export const sweepOrphans = async (
  db: Database,
  stores: Stores,
  olderThan: Date,
  signal?: AbortSignal,
  report: (failure: SweepFailure) => void = () => {},
): Promise<number> => {
  /** Removes contents in the order of one of their times. */
  const sweep = async (store: ContentStore, time: 'removal_began_at' | 'created_at'): Promise<number> => {
    let removed = 0
    let last: { id: string; at: string } | undefined
    for (;;) {
      signal?.throwIfAborted()
      const query = db('contents')
        // As text, because a Date has milliseconds only.
        .select<{ id: string; at: string }[]>('id', db.raw('??::text as at', [time]))
        .where({ store: store.kind })
        .whereNull('owned_at')
        .whereNull('captured_on')
        .orderBy([time, 'id'])
        .limit(sweepBatch)
      void (time === 'created_at' ? query.whereNull('removal_began_at').where(time, '<', olderThan) : query.whereNotNull(time))
      if (last) void query.whereRaw('(??, id) > (?::timestamptz, ?)', [time, last.at, last.id])
      const orphans = await query
      last = orphans.at(-1)
      if (!last) return removed
      const kept = await removeEach(
        store,
        orphans.map(({ id }) => id),
        signal,
      )
      for (const { id, reason } of kept) report({ store: store.kind, contentId: id, reason })
      removed += orphans.length - kept.length
    }
  }

  let removed = 0
  for (const store of Object.values(stores)) {
    if (!store) continue
    try {
      // What could not be removed before is due at any age: it can no longer be owned.
      removed += await sweep(store, 'removal_began_at')
      removed += await sweep(store, 'created_at')
    } catch (thrown) {
      signal?.throwIfAborted()
      report({ store: store.kind, reason: messageOf(thrown) })
    }
  }
  return removed
}
