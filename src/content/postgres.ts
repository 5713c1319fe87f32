import { Readable } from 'node:stream'
import type { Client } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { isId, newId } from '../base/ids.ts'
import type { Database, Transaction } from '../db/database.ts'
import {
  clampRange,
  deleteUnownedContent,
  insertUnownedContent,
  measure,
  unownedContent,
  type ByteRange,
  type Content,
  type ContentStore,
  type UnownedContent,
} from './store.ts'

/** The size that COPY reads fastest, of those measured (64 KiB to 4 MiB). Never change this value: stored contents are split by it. */
const chunkBytes = 256 * 1024
// One insert writes 1 MiB. A larger insert is hardly faster, and an upload holds its size in memory twice: one insert runs while the
// chunks of the next are read and hashed.
const insertChunks = 4
// One delete removes 256 MiB, far below the statement timeout.
const deleteChunks = 1_024
// Contents up to this size are removed together: a hundred of them are less than one large one may be.
const smallBytes = 4 * chunkBytes
// One COPY reads at most 2 MiB, which a reader holds in memory. Many readers share 64 MiB, down to one chunk for each.
const windowMaxChunks = 8
const windowsMaxChunks = 256
// Contents that wait in memory for the transaction of their document, in total.
const bufferMaxBytes = 64 * 1024 * 1024

/**
 * Stores contents in the table `content_chunks`. No connection is held while the store waits for a client: each insert, and each window
 * of a read, borrows a connection for itself.
 */
export const createPostgresStore = (db: Database, limits = { bufferMaxBytes }): ContentStore => {
  let bufferedBytes = 0
  let readers = 0

  // The job remove-orphans removes what cannot be removed now.
  const discard = async (id: string) => {
    await deleteUnownedContent(db, id).catch(() => {})
  }

  type Stored = Pick<UnownedContent, 'id' | 'sizeBytes' | 'sha256'>

  /** Keeps a small content in memory until the transaction of its document writes it, which saves a round trip. */
  const buffered = (workspaceId: string, content: Stored, data: Buffer): UnownedContent => {
    let heldBytes = data.length
    bufferedBytes += heldBytes
    const release = () => {
      bufferedBytes -= heldBytes
      heldBytes = 0
    }
    return {
      ...content,
      own: async (trx) => {
        await trx('contents').insert({
          id: content.id,
          workspace_id: workspaceId,
          store: 'postgres',
          size_bytes: content.sizeBytes,
          sha256: content.sha256,
          owned_at: trx.fn.now(),
        })
        if (data.length > 0) await trx('content_chunks').insert({ content_id: content.id, seq: 0, data })
        release()
      },
      discard: async () => release(),
      buffer: { data, release },
    }
  }

  return {
    kind: 'postgres',

    write: async (workspaceId, source, maxBytes = chunkBytes) => {
      const id = newId()
      const measured = measure(source)
      let inserted = 0
      let waiting: Buffer[] = []
      let running = Promise.resolve()
      const failed = new AbortController()
      const insertAt = async (first: number, chunks: Buffer[]) => {
        if (first === 0) await insertUnownedContent(db, { id, workspaceId, store: 'postgres' })
        await db('content_chunks').insert(chunks.map((data, index) => ({ content_id: id, seq: first + index, data })))
      }
      const insert = async () => {
        await running
        running = insertAt(inserted, waiting)
        // Its error is thrown when more bytes arrive, or in the end.
        running.catch((thrown) => failed.abort(thrown))
        inserted += waiting.length
        waiting = []
      }
      try {
        for await (const chunk of splitIntoChunks(measured.source, failed.signal)) {
          waiting.push(chunk)
          if (waiting.length === insertChunks) await insert()
        }
        const content = { id, ...measured.result() }
        if (content.sizeBytes <= Math.min(maxBytes, chunkBytes) && bufferedBytes + content.sizeBytes <= limits.bufferMaxBytes) {
          return buffered(workspaceId, content, waiting[0] ?? Buffer.alloc(0))
        }
        if (waiting.length > 0) await insert()
        await running
        return unownedContent(content, discard)
      } catch (thrown) {
        await running.catch(() => {})
        await discard(id)
        throw thrown
      }
    },

    read: (content, range) => {
      readers += 1
      const windowChunks = () => Math.max(1, Math.min(windowMaxChunks, Math.floor(windowsMaxChunks / readers)))
      const stream = Readable.from(readChunks(db, content, windowChunks, range), { objectMode: false, highWaterMark: chunkBytes })
      return stream.once('close', () => {
        readers -= 1
      })
    },

    sizesOf: async (contentIds) => {
      const { rows } = await db.raw<{ rows: { id: string; bytes: number }[] }>(
        `
        select content_id as id, sum(octet_length(data)) as bytes
        from content_chunks
        where content_id = any(:contentIds)
        group by content_id
        `,
        { contentIds },
      )
      return new Map(rows.map(({ id, bytes }) => [id, bytes]))
    },

    remove: async (contentIds, signal) => {
      const small = await removeSmall(db, contentIds)
      for (const id of contentIds) {
        signal?.throwIfAborted()
        if (!small.has(id)) await db.transaction((trx) => removeContent(trx, id))
      }
      return []
    },
  }
}

async function* readChunks(
  db: Database,
  content: Content,
  windowChunks: () => number,
  byteRange?: ByteRange,
): AsyncGenerator<Buffer, void, undefined> {
  const range = clampRange(content, byteRange)
  if (!range) return
  const lastSeq = Math.floor(range.end / chunkBytes)
  let lacking = range.end - range.start + 1
  let seq = Math.floor(range.start / chunkBytes)
  while (seq <= lastSeq) {
    const until = Math.min(seq + windowChunks() - 1, lastSeq)
    const chunks = await copyWindow(db, content.id, seq, until)
    if (chunks.length !== until - seq + 1) throw new Error(`content ${content.id} lacks chunks between ${seq} and ${until}`)
    for (const chunk of chunks) {
      const offset = seq * chunkBytes
      const part = chunk.subarray(Math.max(range.start - offset, 0), range.end - offset + 1)
      lacking -= part.length
      yield part
      seq += 1
    }
  }
  // A client that was told the length would wait for the rest.
  if (lacking > 0) throw new Error(`content ${content.id} lacks ${lacking} bytes`)
}

/** Reads a few chunks at a time, so that a slow reader, or one that stops early, holds no connection. */
const copyWindow = async (db: Database, contentId: string, from: number, until: number): Promise<Buffer[]> => {
  // COPY accepts no parameters.
  if (!isId(contentId)) throw new TypeError('a content id must be a ULID')
  const connection = (await db.client.acquireConnection()) as Client
  try {
    const copy = copyTo(
      `copy (select data from content_chunks where content_id = '${contentId}' and seq between ${from} and ${until} order by seq) to stdout (format binary)`,
    )
    // Not `buffer()` of node:stream/consumers, which copies the bytes through a Blob.
    return parseCopiedColumn(Buffer.concat((await connection.query(copy).toArray()) as Buffer[]))
  } finally {
    await db.client.releaseConnection(connection)
  }
}

/**
 * Removes short contents together, unless a document owns them. A transaction for each takes most of its time to commit.
 * @returns their ids
 */
const removeSmall = async (db: Database, contentIds: string[]): Promise<Set<string>> => {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `
    with free as (
      -- Rows are locked in the order of their ids.
      select id
      from contents
      where id = any (:contentIds)
        and owned_at is null
        and size_bytes <= :maxBytes
      order by id
      for update
    ), chunks as (
      delete from content_chunks
      where content_id in (select id from free)
    )
    delete from contents
    using free
    where contents.id = free.id
    returning contents.id
    `,
    { contentIds, maxBytes: smallBytes },
  )
  return new Set(rows.map(({ id }) => id))
}

/** Removes a content completely or not at all, unless a document owns it. */
const removeContent = async (trx: Transaction, id: string): Promise<void> => {
  const free = await trx('contents').select('id').where({ id }).whereNull('owned_at').forUpdate()
  if (free.length === 0) return
  for (;;) {
    const next = trx('content_chunks').select('seq').where({ content_id: id }).orderBy('seq').limit(deleteChunks)
    const deleted = await trx('content_chunks').where({ content_id: id }).whereIn('seq', next).delete()
    if (deleted < deleteChunks) break
  }
  await trx('contents').where({ id }).delete()
}

// A client may send single bytes, and each piece takes memory of its own.
const joinAtPieces = 1_000

/**
 * Splits a stream into chunks of `chunkBytes`; the last one may be shorter. Holds about one chunk in memory, and only as much of it as has
 * arrived: V8 collects all garbage after each 64 MiB of buffers, so a whole chunk for each document of 1 KiB took a third of the API's time.
 * @throws the reason of `signal`, if that is aborted when bytes arrive
 */
async function* splitIntoChunks(source: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
  let pieces: Uint8Array[] = []
  let filled = 0
  for await (const input of source) {
    signal.throwIfAborted()
    for (let taken = 0; taken < input.length;) {
      const piece = input.subarray(taken, taken + chunkBytes - filled)
      pieces.push(piece)
      taken += piece.length
      filled += piece.length
      if (filled === chunkBytes) {
        yield Buffer.concat(pieces, filled)
        pieces = []
        filled = 0
      } else if (pieces.length === joinAtPieces) {
        pieces = [Buffer.concat(pieces, filled)]
      }
    }
  }
  if (filled > 0) yield Buffer.concat(pieces, filled)
}

const signatureBytes = 11
const headerBytes = signatureBytes + 8

/** Parses the output of COPY in binary format with one bytea column. Layout: PostgreSQL documentation of COPY, "Binary Format". */
const parseCopiedColumn = (copied: Buffer): Buffer[] => {
  const values: Buffer[] = []
  let offset = headerBytes + copied.readInt32BE(signatureBytes + 4)
  while (copied.readInt16BE(offset) === 1) {
    const length = copied.readInt32BE(offset + 2)
    values.push(copied.subarray(offset + 6, offset + 6 + length))
    offset += 6 + length
  }
  return values
}
