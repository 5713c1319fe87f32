import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import type { ContentStore, UnownedContent } from '../../src/content/store.ts'
import { sweepOrphans } from '../../src/content/sweep.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { newId } from '../../src/ids.ts'
import { createTestDatabase, databaseConfig, type TestDatabase } from '../support/database.ts'

const KiB = 1024
const MiB = 1024 * KiB
const chunk = 256 * KiB

export interface StoreUnderTest {
  open(db: Database): ContentStore
  /** Ids of the contents whose bytes, or parts of them, lie in the store. */
  stored(db: Database): Promise<string[]>
}

async function* inPieces(data: Buffer, pieceBytes: number) {
  for (let start = 0; start < data.length; start += pieceBytes) yield data.subarray(start, start + pieceBytes)
}

const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex')

/** What every content store must do: run by each of them. */
export const describeContentStore = (name: string, underTest: () => StoreUnderTest) => {
  describe(`the ${name} content store`, () => {
    let database: TestDatabase
    // two connections only, so that one that is not given back is noticed
    let db: Database
    let store: ContentStore
    const workspaceId = newId()

    beforeAll(async () => {
      database = await createTestDatabase()
      db = openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 2 }, 'test')
      store = underTest().open(db)
      await db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: 'main' })
    })
    afterAll(async () => {
      await db.destroy()
      await database.drop()
    })

    const own = (content: UnownedContent) => db.transaction((trx) => content.own(trx))
    const keep = async (data: Buffer, pieceBytes = 64 * KiB) => {
      const content = await store.write(workspaceId, inPieces(data, pieceBytes))
      await own(content)
      return content
    }
    const rowOf = (id: string) => db('contents').where({ id }).first()

    it.each([
      ['nothing', 0],
      ['a byte', 1],
      ['a byte less than a chunk', chunk - 1],
      ['a chunk', chunk],
      ['a byte more than a chunk', chunk + 1],
      ['four chunks', 4 * chunk],
      ['20 MiB and a bit', 20 * MiB + 4_321],
    ])('gives %s back as it came', async (_, sizeBytes) => {
      const data = randomBytes(sizeBytes)
      const content = await keep(data)
      expect(content.sizeBytes).toBe(sizeBytes)
      expect(content.sha256.toString('hex')).toBe(sha256(data))
      expect((await buffer(store.read(content))).equals(data)).toBe(true)
      expect(await rowOf(content.id)).toMatchObject({ store: store.kind, size_bytes: sizeBytes, owned_at: expect.any(Date) })
      expect((await rowOf(content.id)).sha256.toString('hex')).toBe(sha256(data))
    })

    it('does not care in how small pieces the bytes come', async () => {
      const data = randomBytes(3_000)
      expect((await buffer(store.read(await keep(data, 1)))).equals(data)).toBe(true)
    })

    it('does not care in how large pieces the bytes come', async () => {
      const data = randomBytes(3 * MiB + 7)
      expect((await buffer(store.read(await keep(data, data.length)))).equals(data)).toBe(true)
    })

    it('gives any range of bytes, both ends included', async () => {
      const data = randomBytes(5 * MiB + 100)
      const content = await keep(data)
      const last = data.length - 1
      const ranges: [number, number][] = [
        [0, 0],
        [0, chunk - 1],
        [0, chunk],
        [chunk - 1, chunk],
        [chunk, chunk],
        [chunk, 2 * chunk - 1],
        [4 * MiB - 1, 4 * MiB],
        [last, last],
        [0, last],
      ]
      for (const [start, end] of ranges) {
        expect((await buffer(store.read(content, { start, end }))).equals(data.subarray(start, end + 1))).toBe(true)
      }
      expect((await buffer(store.read(content, { start: chunk + 1 }))).equals(data.subarray(chunk + 1))).toBe(true)
      expect((await buffer(store.read(content, { end: 9 }))).equals(data.subarray(0, 10))).toBe(true)
      expect((await buffer(store.read(content, { start: last, end: last + 100 }))).equals(data.subarray(last))).toBe(true)
    })

    it('gives nothing for a range beyond the end, or one that ends before it starts', async () => {
      const content = await keep(Buffer.from('0123456789'))
      expect(await buffer(store.read(content, { start: 10 }))).toHaveLength(0)
      expect(await buffer(store.read(content, { start: 5, end: 4 }))).toHaveLength(0)
    })

    it.each([
      ['early', 10],
      ['late', 12 * MiB],
    ])('keeps nothing of a source that fails %s, and throws what it threw', async (_, sizeBytes) => {
      const before = { stored: await underTest().stored(db), rows: await db('contents').count() }
      const broken = new Error('the source is gone')
      async function* breaking() {
        yield* inPieces(randomBytes(sizeBytes), 64 * KiB)
        throw broken
      }
      await expect(store.write(workspaceId, breaking())).rejects.toBe(broken)
      expect(await underTest().stored(db)).toEqual(before.stored)
      expect(await db('contents').count()).toEqual(before.rows)
    })

    it.each([
      ['small', 10],
      ['large', 12 * MiB],
    ])('forgets a %s content that is discarded', async (_, sizeBytes) => {
      const content = await store.write(workspaceId, inPieces(randomBytes(sizeBytes), 64 * KiB))
      await content.discard()
      expect(await rowOf(content.id)).toBeUndefined()
      expect(await underTest().stored(db)).not.toContain(content.id)
    })

    it('keeps a content that is owned, though it is discarded afterwards: the answer to a commit may get lost', async () => {
      const data = randomBytes(2 * MiB)
      const content = await keep(data)
      await content.discard()
      expect((await buffer(store.read(content))).equals(data)).toBe(true)
    })

    it('owns nothing where the transaction is rolled back', async () => {
      const content = await store.write(workspaceId, inPieces(randomBytes(2 * MiB), 64 * KiB))
      const rolledBack = db.transaction(async (trx) => {
        await content.own(trx)
        throw new Error('no')
      })
      await expect(rolledBack).rejects.toThrow('no')
      expect(await rowOf(content.id)).toMatchObject({ owned_at: null })
      await content.discard()
      expect(await underTest().stored(db)).not.toContain(content.id)
    })

    it('removes contents, and does not mind those that are gone', async () => {
      const [small, large, kept] = [await keep(randomBytes(3)), await keep(randomBytes(2 * MiB)), await keep(Buffer.from('kept'))]
      await store.remove([small.id, large.id, newId()])
      await store.remove([small.id])
      await store.remove([])
      const stored = await underTest().stored(db)
      expect(stored).not.toContain(small.id)
      expect(stored).not.toContain(large.id)
      expect(String(await buffer(store.read(kept)))).toBe('kept')
      await expect(buffer(store.read(large))).rejects.toThrow()
    })

    it('sweeps what no document came to own, once it is old enough', async () => {
      const orphan = await store.write(workspaceId, inPieces(randomBytes(2 * MiB), 64 * KiB))
      const kept = await keep(randomBytes(2 * MiB))
      const hour = 3_600_000
      await db('contents').update({ created_at: new Date(Date.now() - 2 * hour) })
      const young = await store.write(workspaceId, inPieces(randomBytes(2 * MiB), 64 * KiB))

      expect(await sweepOrphans(db, { [store.kind]: store }, new Date(Date.now() - hour))).toBe(1)
      const stored = await underTest().stored(db)
      expect(stored).not.toContain(orphan.id)
      expect(stored).toEqual(expect.arrayContaining([kept.id, young.id]))
      await expect(own(orphan)).rejects.toThrow('was removed before')
      await young.discard()
    })

    it('gives everything back that a reader held who leaves early', async () => {
      const content = await keep(randomBytes(6 * MiB))
      for (let round = 0; round < 10; round += 1) {
        const stream = store.read(content)
        await once(stream, 'readable')
        stream.destroy()
        await once(stream, 'close')
      }
      // one that never got a byte
      store.read(content).destroy()
      const all = await Promise.all([db.raw('select 1'), db.raw('select 1'), buffer(store.read(content))])
      expect(all[2]).toHaveLength(6 * MiB)
    })

    it('holds no connection for a reader that pauses', async () => {
      const content = await keep(randomBytes(6 * MiB))
      const streams = Array.from({ length: 5 }, () => store.read(content))
      for (const stream of streams) await once(stream, 'readable')
      await Promise.all([db.raw('select 1'), db.raw('select 1')])
      for (const stream of streams) stream.destroy()
    })

    it('holds no connection for a source that pauses', async () => {
      const going = Promise.withResolvers<void>()
      async function* pausing() {
        yield* inPieces(randomBytes(3 * MiB), 64 * KiB)
        await going.promise
        yield Buffer.from('end')
      }
      const writes = Array.from({ length: 5 }, () => store.write(workspaceId, pausing()))
      await Promise.all([db.raw('select 1'), db.raw('select 1')])
      going.resolve()
      for (const content of await Promise.all(writes)) {
        expect(content.sizeBytes).toBe(3 * MiB + 3)
        await content.discard()
      }
    })

    it('needs a bounded part of the memory that the content would need', async () => {
      const sizeBytes = 192 * MiB
      const piece = randomBytes(64 * KiB)
      let highest = 0
      const before = process.memoryUsage().rss
      const note = () => {
        highest = Math.max(highest, process.memoryUsage().rss - before)
      }
      async function* large() {
        for (let sent = 0; sent < sizeBytes; sent += piece.length) {
          note()
          yield piece
        }
      }
      const content = await store.write(workspaceId, large())
      await own(content)
      let read = 0
      for await (const data of store.read(content)) {
        note()
        read += data.length
      }
      expect(read).toBe(sizeBytes)
      expect(highest).toBeLessThan(128 * MiB)
      await store.remove([content.id])
    })
  })
}
