import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { Client } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { Database, Transaction } from '../db/database.ts'
import { isId, newId } from '../ids.ts'
import { chunkBytes, cutIntoChunks, parseCopiedColumn } from './chunks.ts'
import { measure } from './measure.ts'
import { clampRange, type ByteRange } from './range.ts'
import { deleteUnownedContent, insertUnownedContent, ownContent } from './rows.ts'
import type { Content, ContentStore, UnownedContent } from './store.ts'

// one insert: 1 MiB. More is hardly faster, and is what an upload holds in memory twice.
const insertChunks = 4
// one delete: 256 MiB, far from the longest a statement may take
const deleteChunks = 1_024
// one COPY: 2 MiB, which is what a reader holds in memory
const windowChunks = 8
const heldMaxBytes = 64 * 1024 * 1024

/**
 * Keeps bytes in content_chunks. No connection is held while a client is waited for: each insert and each window of a read
 * borrows one for itself.
 * @param limits `heldMaxBytes`: small contents wait in memory for their document's transaction, together no more than this
 */
export const createPostgresStore = (db: Database, limits = { heldMaxBytes }): ContentStore => {
  let heldBytes = 0

  // what cannot be removed now, the sweep will
  const discard = async (id: string) => {
    await deleteUnownedContent(db, id).catch(() => {})
  }

  /** A small content costs no round trip of its own: it is written by the transaction that commits its document. */
  const hold = (workspaceId: string, content: Omit<UnownedContent, 'own' | 'discard'>, data: Buffer): UnownedContent => {
    let held: number = data.length
    heldBytes += held
    const release = () => {
      heldBytes -= held
      held = 0
    }
    const bindings = { contentId: content.id, contentSizeBytes: content.sizeBytes, contentSha256: content.sha256, contentData: data }
    return {
      ...content,
      own: async (trx) => {
        await trx
          .raw(`with always as (select 1), ${ownedWith('always')} select 1`, { ...bindings, workspaceId })
          .options({ name: 'own-content' })
        release()
      },
      discard: async () => release(),
      held: { ownedWith, bindings, release },
    }
  }

  const spill = (content: Omit<UnownedContent, 'own' | 'discard'>): UnownedContent => ({
    ...content,
    own: (trx) => ownContent(trx, content),
    discard: () => discard(content.id),
  })

  return {
    kind: 'postgres',

    write: async (workspaceId, source) => {
      const id = newId()
      const measured = measure(source)
      let inserted = 0
      let waiting: Buffer[] = []
      const insert = async () => {
        if (inserted === 0) await insertUnownedContent(db, { id, workspaceId, store: 'postgres' })
        await db('content_chunks').insert(waiting.map((data, index) => ({ content_id: id, seq: inserted + index, data })))
        inserted += waiting.length
        waiting = []
      }
      try {
        for await (const chunk of cutIntoChunks(measured.source)) {
          waiting.push(chunk)
          if (waiting.length === insertChunks) await insert()
        }
        const content = { id, ...measured.result() }
        if (content.sizeBytes <= chunkBytes && heldBytes + content.sizeBytes <= limits.heldMaxBytes) {
          return hold(workspaceId, content, waiting[0] ?? Buffer.alloc(0))
        }
        if (waiting.length > 0) await insert()
        return spill(content)
      } catch (thrown) {
        await discard(id)
        throw thrown
      }
    },

    read: (content, range) => Readable.from(readChunks(db, content, range), { objectMode: false, highWaterMark: chunkBytes }),

    remove: async (contentIds) => {
      for (const id of contentIds) await db.transaction((trx) => removeContent(trx, id))
    },
  }
}

const ownedWith = (onlyIf: string): string => `
    content as (
      insert into contents (id, workspace_id, store, size_bytes, sha256, owned_at)
      select :contentId, :workspaceId, 'postgres', :contentSizeBytes::bigint, :contentSha256::bytea, now()
      from ${onlyIf}
    ), content_chunk as (
      insert into content_chunks (content_id, seq, data)
      select :contentId, 0, :contentData::bytea
      from ${onlyIf}
      where :contentSizeBytes::bigint > 0
    )`

async function* readChunks(db: Database, content: Content, byteRange?: ByteRange): AsyncGenerator<Buffer, void, undefined> {
  const range = clampRange(content, byteRange)
  if (!range) return
  const lastSeq = Math.floor(range.end / chunkBytes)
  let seq = Math.floor(range.start / chunkBytes)
  while (seq <= lastSeq) {
    const until = Math.min(seq + windowChunks - 1, lastSeq)
    const chunks = await copyWindow(db, content.id, seq, until)
    if (chunks.length !== until - seq + 1) throw new Error(`content ${content.id} lacks chunks between ${seq} and ${until}`)
    for (const chunk of chunks) {
      const offset = seq * chunkBytes
      yield chunk.subarray(Math.max(range.start - offset, 0), range.end - offset + 1)
      seq += 1
    }
  }
}

/** Reads a few chunks in one go, so that a slow reader, or one that leaves early, never keeps a connection. */
const copyWindow = async (db: Database, contentId: string, from: number, until: number): Promise<Buffer[]> => {
  // COPY takes no parameters
  if (!isId(contentId)) throw new TypeError('a content id is a ULID')
  const connection = (await db.client.acquireConnection()) as Client
  try {
    const copy = copyTo(
      `copy (select data from content_chunks where content_id = '${contentId}' and seq between ${from} and ${until} order by seq) to stdout (format binary)`,
    )
    return parseCopiedColumn(await buffer(connection.query(copy)))
  } finally {
    await db.client.releaseConnection(connection)
  }
}

/** All or nothing: the reference of a document that owns the content refuses its row's deletion, and so keeps the chunks too. */
const removeContent = async (trx: Transaction, id: string): Promise<void> => {
  await trx('contents').select('id').where({ id }).forUpdate()
  for (;;) {
    const next = trx('content_chunks').select('seq').where({ content_id: id }).orderBy('seq').limit(deleteChunks)
    const deleted = await trx('content_chunks').where({ content_id: id }).whereIn('seq', next).delete()
    if (deleted < deleteChunks) break
  }
  await trx('contents').where({ id }).delete()
}
