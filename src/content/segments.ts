import { createHash } from 'node:crypto'
import { addAbortSignal, Readable } from 'node:stream'
import type { Database } from '../db/database.ts'
import { clampRange, type ByteRange, type Content, type ContentStore, type Stores } from './store.ts'

// An append stores its bytes as a segment: a content of its own, which never changes. The bytes that a reader has seen stay the same,
// because segments are only added behind them, or replaced by one segment with the same bytes.

interface Segment {
  id: string
  store: ContentStore['kind']
  startByte: number
  sizeBytes: number
}

// Every 64th append merges the segments of the last 64 appends into one. A byte is then written at most twice, and a reader opens at most
// n / 64 + 63 small segments after n appends: 219 after 10,000.
const mergeEvery = 64
// A larger segment is never merged: reading many of them costs little. So a merge writes at most 64 MiB.
const mergeMaxBytes = 1024 * 1024

/** Makes the stores read and remove contents with their segments. A segment may be in another store than the content it extends. */
export const createSegmentedStores = (db: Database, stores: Stores): Stores => {
  const segmented = (store: ContentStore): ContentStore => ({
    ...store,
    read: (content, range) => {
      if (!content.appends) return store.read(content, range)
      let opened: Readable | undefined
      const open = (segment: Segment, segmentRange: ByteRange) => {
        const owner = stores[segment.store]
        if (!owner) throw new Error(`this process is not configured for the ${segment.store} store, which holds a part of the content`)
        opened = owner.read({ id: segment.id, sizeBytes: segment.sizeBytes }, segmentRange)
        return opened
      }
      const stream = Readable.from(readSegments(db, content, open, range), { objectMode: false })
      return stream.once('close', () => opened?.destroy())
    },
    remove: async (contentIds, signal) => {
      const segments = await disownSegments(db, contentIds)
      const kept = await store.remove(contentIds, signal)
      for (const owner of Object.values(stores)) {
        const ids = segments.filter((segment) => segment.store === owner?.kind).map(({ id }) => id)
        // The job remove-orphans removes the segments that cannot be removed now, and those in a store of another process.
        if (ids.length > 0) await owner?.remove(ids, signal).catch(() => {})
      }
      return kept
    },
  })
  const configured = Object.values(stores).filter((store) => store !== undefined)
  return Object.fromEntries(configured.map((store) => [store.kind, segmented(store)]))
}

async function* readSegments(
  db: Database,
  content: Content,
  open: (segment: Segment, range: ByteRange) => Readable,
  byteRange?: ByteRange,
): AsyncGenerator<Buffer, void, undefined> {
  const range = clampRange(content, byteRange)
  if (!range) return
  let position = range.start
  for (const segment of await findSegments(db, content.id, range)) {
    if (segment.startByte > position) break
    yield* open(segment, { start: position - segment.startByte, end: range.end - segment.startByte })
    position = segment.startByte + segment.sizeBytes
  }
  if (position <= range.end) throw new Error(`content ${content.id} lacks bytes at ${position}`)
}

/** Finds the segments that hold a range of bytes, in their order. The first one may be the content itself. */
const findSegments = async (db: Database, contentId: string, { start, end }: { start: number; end: number }): Promise<Segment[]> => {
  const { rows } = await db.raw<{ rows: Segment[] }>(
    `
    select contents.id, store, start_byte as "startByte", size_bytes as "sizeBytes"
    from (
      select :contentId::text as id, 0 as start_byte
      union all
      select segment_id, start_byte
      from content_segments
      where content_id = :contentId
        and start_byte <= :end
    ) as segment
    join contents on contents.id = segment.id
    where start_byte + size_bytes > :start
    order by start_byte
    `,
    { contentId, start, end },
  )
  return rows
}

/** Disowns the segments of contents that no document owns. @returns the segments */
const disownSegments = async (db: Database, contentIds: string[]): Promise<Pick<Segment, 'id' | 'store'>[]> => {
  const { rows } = await db.raw<{ rows: Pick<Segment, 'id' | 'store'>[] }>(
    `
    with released as (
      delete from content_segments
      using contents
      where content_id = any(:contentIds)
        and contents.id = content_id
        and owned_at is null
      returning segment_id
    )
    update contents
    set owned_at = null
    from released
    where contents.id = segment_id
    returning contents.id, store
    `,
    { contentIds },
  )
  return rows
}

/** Bytes that an append writes: its own, behind those of the segments that it merges. */
export interface AppendPlan {
  /** Where the new segment begins. */
  startByte: number
  /** Ids of the segments that the new one replaces. */
  merged: string[]
}

/** Plans the next append to a content, as it is now. */
export const planAppend = async (db: Database, { id, sizeBytes, appends = 0 }: Content): Promise<AppendPlan> => {
  const number = appends + 1
  if (number % mergeEvery !== 0) return { startByte: sizeBytes, merged: [] }
  const recent = await db('content_segments')
    .join('contents', 'contents.id', 'content_segments.segment_id')
    .select<Omit<Segment, 'store'>[]>('contents.id', 'start_byte as startByte', 'size_bytes as sizeBytes')
    .where('content_id', id)
    .where('append', '>', number - mergeEvery)
    .orderBy('append')
  const merged = recent.slice(recent.findLastIndex((segment) => segment.sizeBytes >= mergeMaxBytes) + 1)
  return { startByte: merged[0]?.startByte ?? sizeBytes, merged: merged.map((segment) => segment.id) }
}

/**
 * Computes the SHA-256 of a content with segments, and keeps it until the next append. An append itself computes none: that would read
 * the whole content for each of them.
 * @throws the reason of the signal, and errors of the store
 */
export const hashAppended = async (db: Database, store: ContentStore, content: Content, signal: AbortSignal): Promise<Buffer> => {
  const hash = createHash('sha256')
  for await (const chunk of addAbortSignal(signal, store.read(content))) hash.update(chunk as Buffer)
  const sha256 = hash.digest()
  // A digest that cannot be kept is computed again: that is no failure of the reader.
  const kept = db('contents').where({ id: content.id, appends: content.appends }).update({ appended_sha256: sha256 })
  await kept.catch(() => {})
  return sha256
}
