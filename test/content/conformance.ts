import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { newId } from '../../src/base/ids.ts'
import { createSegmentedStores, hashAppended } from '../../src/content/segments.ts'
import { shortBytes, type ContentStore, type UnownedContent } from '../../src/content/store.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { sweepOrphans } from '../../src/maintenance/sweep-orphans.ts'
import { createTestDatabase, databaseConfig, type TestDatabase } from '../support/database.ts'

const KiB = 1024
const MiB = 1024 * KiB
const chunk = 256 * KiB

export interface StoreUnderTest {
  open(db: Database): ContentStore
  /** Returns the ids of the contents of which the store holds any bytes. */
  stored(db: Database): Promise<string[]>
}

async function* split(data: Buffer, stepBytes: number) {
  for (let start = 0; start < data.length; start += stepBytes) yield data.subarray(start, start + stepBytes)
}

const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex')

/** Defines the tests that every content store must pass. */
export const describeContentStore = (name: string, underTest: () => StoreUnderTest) => {
  describe(`the ${name} content store`, () => {
    let database: TestDatabase
    // Only two connections, so that a connection that is not released makes a test fail.
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
    const writeOwned = async (data: Buffer, stepBytes = 64 * KiB) => {
      const content = await store.write(workspaceId, split(data, stepBytes))
      await own(content)
      return content
    }
    const rowOf = (id: string) => db('contents').where({ id }).first()

    test.each([
      ['nothing', 0],
      ['a byte', 1],
      ['a byte less than a chunk', chunk - 1],
      ['a chunk', chunk],
      ['a byte more than a chunk', chunk + 1],
      ['four chunks', 4 * chunk],
      ['20 MiB and a bit', 20 * MiB + 4_321],
    ])('returns %s unchanged', async (_, sizeBytes) => {
      const data = randomBytes(sizeBytes)
      const content = await writeOwned(data)
      expect(content.sizeBytes).toBe(sizeBytes)
      expect(content.sha256.toString('hex')).toBe(sha256(data))
      expect((await buffer(store.read(content))).equals(data)).toBe(true)
      expect(await rowOf(content.id)).toMatchObject({ store: store.kind, size_bytes: sizeBytes, owned_at: expect.any(Date) })
      expect((await rowOf(content.id)).sha256.toString('hex')).toBe(sha256(data))
    })

    test('accepts a source of single bytes', async () => {
      const data = randomBytes(3_000)
      expect((await buffer(store.read(await writeOwned(data, 1)))).equals(data)).toBe(true)
    })

    test('accepts a source of one large buffer', async () => {
      const data = randomBytes(3 * MiB + 7)
      expect((await buffer(store.read(await writeOwned(data, data.length)))).equals(data)).toBe(true)
    })

    test('returns any range of bytes, including both ends', async () => {
      const data = randomBytes(5 * MiB + 100)
      const content = await writeOwned(data)
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
      // A store that has none streams them.
      for (const [start, end] of store.readShort ? ranges.filter(([from, to]) => to - from < shortBytes) : []) {
        expect((await store.readShort!(content, { start, end })).equals(data.subarray(start, end + 1))).toBe(true)
      }
      expect((await buffer(store.read(content, { start: chunk + 1 }))).equals(data.subarray(chunk + 1))).toBe(true)
      expect((await buffer(store.read(content, { end: 9 }))).equals(data.subarray(0, 10))).toBe(true)
      expect((await buffer(store.read(content, { start: last, end: last + 100 }))).equals(data.subarray(last))).toBe(true)
    })

    test('returns no bytes for a range beyond the end or with its end before its start', async () => {
      const content = await writeOwned(Buffer.from('0123456789'))
      expect(await buffer(store.read(content, { start: 10 }))).toHaveLength(0)
      expect(await buffer(store.read(content, { start: 5, end: 4 }))).toHaveLength(0)
    })

    test.each([
      ['early', 10],
      ['late', 12 * MiB],
    ])('stores nothing of a source that fails %s, and throws its error', async (_, sizeBytes) => {
      const before = { stored: await underTest().stored(db), rows: await db('contents').count() }
      const sourceError = new Error('the source is gone')
      async function* failing() {
        yield* split(randomBytes(sizeBytes), 64 * KiB)
        throw sourceError
      }
      await expect(store.write(workspaceId, failing())).rejects.toBe(sourceError)
      expect(await underTest().stored(db)).toEqual(before.stored)
      expect(await db('contents').count()).toEqual(before.rows)
    })

    test.each([
      ['small', 10],
      ['large', 12 * MiB],
    ])('removes a %s content that is discarded', async (_, sizeBytes) => {
      const content = await store.write(workspaceId, split(randomBytes(sizeBytes), 64 * KiB))
      await content.discard()
      expect(await rowOf(content.id)).toBeUndefined()
      expect(await underTest().stored(db)).not.toContain(content.id)
    })

    test('keeps an owned content that is discarded afterwards, since a commit can succeed without an answer', async () => {
      const data = randomBytes(2 * MiB)
      const content = await writeOwned(data)
      await content.discard()
      expect((await buffer(store.read(content))).equals(data)).toBe(true)
    })

    test('leaves a content without owner if the transaction is rolled back', async () => {
      const content = await store.write(workspaceId, split(randomBytes(2 * MiB), 64 * KiB))
      const rolledBack = db.transaction(async (trx) => {
        await content.own(trx)
        throw new Error('no')
      })
      await expect(rolledBack).rejects.toThrow('no')
      expect(await rowOf(content.id)).toMatchObject({ owned_at: null })
      await content.discard()
      expect(await underTest().stored(db)).not.toContain(content.id)
    })

    test('measures what is stored', async () => {
      const contents = [await writeOwned(Buffer.from('0123456789')), await writeOwned(randomBytes(2 * MiB + 1))]
      const removed = await writeOwned(randomBytes(2 * MiB))
      await db('contents').where({ id: removed.id }).update({ owned_at: null })
      await store.remove([removed.id])
      const sizes = await store.sizesOf([newId(), removed.id, ...contents.map(({ id }) => id)])
      expect(sizes).toEqual(new Map(contents.map(({ id, sizeBytes }) => [id, sizeBytes])))
      expect(await store.sizesOf([])).toEqual(new Map())
    })

    test('removes contents, and ignores those that do not exist', async () => {
      const [small, large, kept] = [
        await writeOwned(randomBytes(3)),
        await writeOwned(randomBytes(2 * MiB)),
        await writeOwned(Buffer.from('kept')),
      ]
      await db('contents').whereIn('id', [small.id, large.id]).update({ owned_at: null })
      // An owned content is kept, whichever process asks for its removal.
      expect(await store.remove([small.id, large.id, kept.id, newId()])).toEqual([])
      expect(await store.remove([small.id])).toEqual([])
      expect(await store.remove([])).toEqual([])
      const stored = await underTest().stored(db)
      expect(stored).not.toContain(small.id)
      expect(stored).not.toContain(large.id)
      expect(String(await buffer(store.read(kept)))).toBe('kept')
      await expect(buffer(store.read(large))).rejects.toThrow()
    })

    test('removes contents without owner in the job remove-orphans, once they are old enough', async () => {
      const orphan = await store.write(workspaceId, split(randomBytes(2 * MiB), 64 * KiB))
      const kept = await writeOwned(randomBytes(2 * MiB))
      const hour = 3_600_000
      await db('contents').update({ created_at: new Date(Date.now() - 2 * hour) })
      const young = await store.write(workspaceId, split(randomBytes(2 * MiB), 64 * KiB))

      expect(await sweepOrphans(db, { [store.kind]: store }, new Date(Date.now() - hour))).toBe(1)
      const stored = await underTest().stored(db)
      expect(stored).not.toContain(orphan.id)
      expect(stored).toEqual(expect.arrayContaining([kept.id, young.id]))
      await expect(own(orphan)).rejects.toThrow('was removed before')
      await young.discard()
    })

    test('keeps a content without owner in the job remove-orphans while captured bodies refer to it', async () => {
      const content = await store.write(workspaceId, split(randomBytes(2 * MiB), 64 * KiB))
      await db.transaction((trx) => content.own(trx))
      await db('contents').where({ id: content.id }).update({ owned_at: null, captured_on: '2026-11-24' })
      const sweep = () => sweepOrphans(db, { [store.kind]: store }, new Date(Date.now() + 60_000))
      await sweep()
      expect(await underTest().stored(db)).toContain(content.id)
      await db('contents').where({ id: content.id }).update({ captured_on: null })
      await sweep()
      expect(await underTest().stored(db)).not.toContain(content.id)
    })

    describe('a content with segments', () => {
      /** Writes a content of which all parts but the first are segments. */
      const writeSegments = async (parts: Buffer[]) => {
        const [first, ...segments] = parts
        const { id } = await writeOwned(first!)
        let sizeBytes = first!.length
        for (const [index, part] of segments.entries()) {
          const segment = { content_id: id, append: index + 1, start_byte: sizeBytes, segment_id: (await writeOwned(part)).id }
          await db('content_segments').insert({ ...segment, workspace_id: workspaceId })
          sizeBytes += part.length
        }
        await db('contents').where({ id }).update({ appends: segments.length })
        return { id, sizeBytes, appends: segments.length }
      }
      const segmented = () => createSegmentedStores(db, { [store.kind]: store })[store.kind]!

      test('returns its bytes and any range of them, also while further segments are added', async () => {
        const parts = [Buffer.alloc(0), randomBytes(3), randomBytes(chunk + 5), randomBytes(1), randomBytes(2 * chunk)]
        const whole = Buffer.concat(parts)
        const content = await writeSegments(parts)
        expect((await buffer(segmented().read(content))).equals(whole)).toBe(true)
        const ranges = [0, 2, 3, chunk + 7, chunk + 8, chunk + 9, whole.length - 1].flatMap((start) => [
          { start, end: start },
          { start, end: start + 1 },
          { start, end: whole.length + 9 },
        ])
        for (const { start, end } of ranges) {
          expect((await buffer(segmented().read(content, { start, end }))).equals(whole.subarray(start, end + 1))).toBe(true)
        }
        const before = { ...content, sizeBytes: chunk }
        expect((await buffer(segmented().read(before))).equals(whole.subarray(0, chunk))).toBe(true)
        const sha256Bytes = await hashAppended(db, segmented(), content, new AbortController().signal)
        expect(sha256Bytes.toString('hex')).toBe(sha256(whole))
        expect((await rowOf(content.id)).appended_sha256.equals(sha256Bytes)).toBe(true)
      })

      test('fails to be read if a segment is missing, instead of returning other bytes', async () => {
        const content = await writeSegments([randomBytes(10), randomBytes(10), randomBytes(10)])
        await db('content_segments').where({ content_id: content.id, append: 1 }).delete()
        await expect(buffer(segmented().read(content))).rejects.toThrow('lacks bytes at 10')
      })

      test('keeps its segments if a document owns it', async () => {
        const parts = [randomBytes(10), randomBytes(20)]
        const content = await writeSegments(parts)
        expect(await segmented().remove([content.id])).toEqual([])
        expect((await buffer(segmented().read(content))).equals(Buffer.concat(parts))).toBe(true)
      })

      test('is removed by the job remove-orphans', async () => {
        const content = await writeSegments([randomBytes(10), randomBytes(2 * chunk), randomBytes(10)])
        const segmentIds: string[] = await db('content_segments').where({ content_id: content.id }).pluck('segment_id')
        expect(segmentIds).toHaveLength(2)
        await db('contents').where({ id: content.id }).update({ owned_at: null })
        await sweepOrphans(db, { [store.kind]: segmented() }, new Date(Date.now() + 60_000))
        expect(await db('contents').whereIn('id', [content.id, ...segmentIds])).toEqual([])
        const stored = await underTest().stored(db)
        for (const id of [content.id, ...segmentIds]) expect(stored).not.toContain(id)
      })
    })

    test('releases its connections if a reader stops early', async () => {
      const content = await writeOwned(randomBytes(6 * MiB))
      for (let round = 0; round < 10; round += 1) {
        const stream = store.read(content)
        await once(stream, 'readable')
        stream.destroy()
        await once(stream, 'close')
      }
      // A reader that never received a byte.
      store.read(content).destroy()
      const all = await Promise.all([db.raw('select 1'), db.raw('select 1'), buffer(store.read(content))])
      expect(all[2]).toHaveLength(6 * MiB)
    })

    test('holds no connection for a reader that pauses', async () => {
      const content = await writeOwned(randomBytes(6 * MiB))
      const streams = Array.from({ length: 5 }, () => store.read(content))
      for (const stream of streams) await once(stream, 'readable')
      await Promise.all([db.raw('select 1'), db.raw('select 1')])
      for (const stream of streams) stream.destroy()
    })

    test('holds no connection for a source that pauses', async () => {
      const resumed = Promise.withResolvers<void>()
      async function* pausing() {
        yield* split(randomBytes(3 * MiB), 64 * KiB)
        await resumed.promise
        yield Buffer.from('end')
      }
      const writes = Array.from({ length: 5 }, () => store.write(workspaceId, pausing()))
      await Promise.all([db.raw('select 1'), db.raw('select 1')])
      resumed.resolve()
      for (const content of await Promise.all(writes)) {
        expect(content.sizeBytes).toBe(3 * MiB + 3)
        await content.discard()
      }
    })
  })
}
