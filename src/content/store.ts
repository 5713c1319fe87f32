import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { AppError } from '../base/errors.ts'
import type { Database, Transaction } from '../db/database.ts'
import type { ContentStoreKind } from '../domain/content-store.ts'

/** Bytes that a document owns. */
export interface Content {
  id: string
  sizeBytes: number
  /** The number of appends that have extended the content. Their bytes are in segments, see `segments.ts`. */
  appends?: number
}

/** Bytes that are stored and hashed, and wait for the commit of the document that will own them. */
export interface UnownedContent extends Content {
  sha256: Buffer
  /**
   * Ties the bytes to a transaction that appends them to a document. The statement that inserts a document does so by itself
   * (`src/archive/insert-documents.ts`). The job remove-orphans removes bytes without an owner.
   */
  own(trx: Transaction): Promise<void>
  /** Discards the bytes. Never throws: the job remove-orphans removes what cannot be removed now. */
  discard(): Promise<void>
  /** Set if all bytes are still in memory. The statement that inserts the document writes them. */
  buffer?: { data: Buffer; release(): void }
}

export interface ContentStore {
  kind: ContentStoreKind
  /**
   * Stores a stream of any length, with a bounded part of it in memory at any time.
   * @param bufferMaxBytes the most that the result may keep in `buffer`, by default what the store allows
   * @throws errors of the source; nothing stays stored then
   */
  write(workspaceId: string, source: AsyncIterable<Uint8Array>, bufferMaxBytes?: number): Promise<UnownedContent>
  /** Streams the bytes from `start` to `end`, both inclusive; by default all. Destroying the stream frees its resources. */
  read(content: Content, range?: { start?: number; end?: number }): Readable
  /**
   * Reads at most `shortBytes` at once, which costs less than a stream. Set if the store holds as much in memory to stream them. A content
   * with appends is streamed.
   */
  readShort?: (content: Content, range: { start: number; end: number }) => Promise<Buffer>
  /** Returns the destination that alone has the bytes. Absent if the relay has them. */
  placeOf?: (contentId: string) => Promise<string | undefined>
  /** Measures what is stored, without reading it. @returns bytes by id. A content without stored bytes is missing or has 0 */
  sizesOf(contentIds: string[]): Promise<Map<string, number>>
  /**
   * Removes contents that no document owns. Others, and unknown ids, are ignored. No transaction is open while bytes outside the database are
   * removed.
   * @returns the contents whose bytes the store does not remove. Their rows stay
   * @throws AppError `unavailable` if the store cannot be reached, the reason of the signal, or errors of the database
   */
  remove(contentIds: string[], signal?: AbortSignal): Promise<NotRemoved[]>
}

/** A content that is still stored, and why. */
export interface NotRemoved {
  id: string
  reason: string
}

/** The longest range that `readShort` reads. */
export const shortBytes = 256 * 1024

/** The stores that a process can reach. */
export type Stores = { [Kind in ContentStoreKind]?: ContentStore | undefined }

export interface ByteRange {
  start?: number | undefined
  end?: number | undefined
}

/** Clamps a byte range to a content; both ends are inclusive. @returns undefined if the range is empty */
export const clampRange = (content: Pick<Content, 'sizeBytes'>, { start = 0, end = Number.MAX_SAFE_INTEGER }: ByteRange = {}) => {
  const last = Math.min(end, content.sizeBytes - 1)
  return start <= last ? { start, end: last } : undefined
}

/** Counts and hashes the bytes of a source while they are read. */
export const measure = (source: AsyncIterable<Uint8Array>) => {
  const hash = createHash('sha256')
  let sizeBytes = 0
  let sourceError: { thrown: unknown } | undefined

  const noted = async <Result>(step: Promise<Result>): Promise<Result> => {
    try {
      return await step
    } catch (thrown) {
      sourceError = { thrown }
      throw thrown
    }
  }

  // A store that stops reading throws its own error into this function, at `yield`.
  async function* measured(): AsyncGenerator<Uint8Array, void, undefined> {
    const chunks = source[Symbol.asyncIterator]()
    try {
      for (;;) {
        const { done, value } = await noted(chunks.next())
        if (done) return
        hash.update(value)
        sizeBytes += value.length
        yield value
      }
    } finally {
      await chunks.return?.()
    }
  }

  return {
    source: measured(),
    /** Returns the result. Call it once, after the source has been read to its end. */
    result: () => ({ sizeBytes, sha256: hash.digest() }),
    /** Returns the error that the source has thrown, to tell it from an error of the store that reads the source. */
    sourceError: () => sourceError,
  }
}

/** Inserts the row of a content that is being written. If the process dies, the job remove-orphans finds the bytes by this row. */
export const insertUnownedContent = async (db: Database, content: { id: string; workspaceId: string; store: ContentStoreKind }) => {
  await db('contents').insert({ id: content.id, workspace_id: content.workspaceId, store: content.store })
}

/** Describes a content that was written under a row of `insertUnownedContent`. */
export const unownedContent = (
  content: Pick<UnownedContent, 'id' | 'sizeBytes' | 'sha256'>,
  discard: (id: string) => Promise<void>,
): UnownedContent => ({
  ...content,
  own: async (trx) => {
    const owned = await trx('contents')
      .where({ id: content.id })
      .whereNull('owned_at')
      .whereNull('removal_began_at')
      .update({ size_bytes: content.sizeBytes, sha256: content.sha256, owned_at: trx.fn.now() })
    if (owned !== 1) throw new Error(`content ${content.id} was removed before its document was committed`)
  },
  discard: () => discard(content.id),
})

/** @returns false if the content does not exist or is owned */
export const deleteUnownedContent = async (db: Database, id: string): Promise<boolean> =>
  (await db('contents').where({ id }).whereNull('owned_at').delete()) > 0

/** Removes bytes that exist or not. @returns those that the store keeps @throws AppError `unavailable` if it cannot be reached */
export type RemoveBytes = (contentIds: string[], signal: AbortSignal | undefined) => Promise<NotRemoved[]>

/**
 * Removes contents whose bytes are outside the database, in three steps, so that the database does not wait for the store: the content can
 * no longer be owned, the bytes are removed, the row is deleted. A process that dies in between leaves the row to the job remove-orphans. A
 * content that is owned stays: its commit succeeded, and the answer was lost.
 */
export const removeWithBytes = async (
  db: Database,
  contentIds: string[],
  removeBytes: RemoveBytes,
  signal?: AbortSignal,
): Promise<NotRemoved[]> => {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `
    with content as (
      -- Rows are locked in the order of their ids.
      select id
      from contents
      where id = any(:contentIds)
        and owned_at is null
      order by id
      for no key update
    )
    update contents
    set removal_began_at = coalesce(removal_began_at, now())
    from content
    where contents.id = content.id
    returning contents.id
    `,
    { contentIds },
  )
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const kept = await removeBytes(ids, signal)
  const keptIds = new Set(kept.map(({ id }) => id))
  await db('contents')
    .whereIn(
      'id',
      ids.filter((id) => !keptIds.has(id)),
    )
    .delete()
  return kept
}

// A request is not answered while bytes are removed that the job remove-orphans removes as well.
const discardMaxMs = 3_000

/** Ends the removal of bytes for which a request waits. */
export const discardSignal = (): AbortSignal => AbortSignal.timeout(discardMaxMs)

/** Discards a content whose bytes are outside the database. Never throws: the job remove-orphans removes what cannot be removed now. */
export const discardWithBytes = async (db: Database, id: string, removeBytes: RemoveBytes): Promise<void> => {
  await removeWithBytes(db, [id], removeBytes, discardSignal()).catch(() => {})
}

/** Returns the error of a store outside the database whose operation failed. */
export const storeFailed = (operation: 'store' | 'read' | 'remove', cause: unknown): AppError =>
  new AppError('unavailable', `The content store failed to ${operation} the bytes.`, { cause })
