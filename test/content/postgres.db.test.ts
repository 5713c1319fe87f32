import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { newId } from '../../src/base/ids.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { waitsForLock } from '../support/locks.ts'
import { until } from '../support/until.ts'
import { describeContentStore } from './conformance.ts'

const MiB = 1024 * 1024

describeContentStore('postgres', () => ({
  open: (db) => createPostgresStore(db),
  stored: async (db) => (await db('content_chunks').distinct('content_id').orderBy('content_id')).map((row) => row.content_id),
}))

describe('small contents in the PostgreSQL store', () => {
  async function* bytes(text: string) {
    yield Buffer.from(text)
  }

  test('are buffered in memory until their document is stored, up to the limit in total', async () => {
    const { db, drop } = await createTestDatabase()
    const workspaceId = newId()
    await db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: 'main' })
    const store = createPostgresStore(db, { bufferMaxBytes: 10 })
    const written = async () => (await db('contents').select('id')).map((row) => row.id)

    const buffered = await store.write(workspaceId, bytes('1234567'))
    expect(await written()).toEqual([])
    const inserted = await store.write(workspaceId, bytes('1234567'))
    expect(await written()).toEqual([inserted.id])
    await buffered.discard()
    await buffered.discard()
    const bufferedNext = await store.write(workspaceId, bytes('1234567'))
    const insertedNext = await store.write(workspaceId, bytes('1234567'))
    expect(new Set(await written())).toEqual(new Set([inserted.id, insertedNext.id]))
    await db.transaction((trx) => bufferedNext.own(trx))
    expect(await written()).toContain(bufferedNext.id)
    await drop()
  })

  // V8 collects all garbage after each 64 MiB of buffers.
  test('take little more memory than their bytes', async () => {
    const { db, drop } = await createTestDatabase()
    const store = createPostgresStore(db)
    const before = process.memoryUsage().arrayBuffers
    for (let written = 0; written < 100; written += 1) await (await store.write(newId(), bytes('1234567'))).discard()
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(MiB)
    await drop()
  })
})

test('reading a content of the PostgreSQL store that lacks bytes fails', async () => {
  const { db, drop } = await createTestDatabase()
  const workspaceId = newId()
  await db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: 'main' })
  const store = createPostgresStore(db)
  async function* bytes() {
    yield Buffer.alloc(MiB + 5)
  }
  const content = await store.write(workspaceId, bytes())
  await db('content_chunks')
    .where({ content_id: content.id, seq: 4 })
    .update({ data: Buffer.alloc(3) })
  await expect(buffer(store.read(content))).rejects.toThrow('lacks 2 bytes')
  await expect(buffer(store.read(content, { start: MiB + 1 }))).rejects.toThrow('lacks 2 bytes')
  expect(await buffer(store.read(content, { end: MiB + 2 }))).toHaveLength(MiB + 3)
  await drop()
})

describe('large contents in the PostgreSQL store', () => {
  let database: TestDatabase
  const workspaceId = newId()

  beforeEach(async () => {
    database = await createTestDatabase()
    await database.db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: 'main' })
  })
  afterEach(() => database.drop())

  test('are discarded if their source fails while the first insert runs', async () => {
    const { db } = database
    const sourceError = new Error('the source is gone')
    const pause = await db.transaction()
    await pause.raw('lock table contents in share mode')
    async function* failing() {
      yield Buffer.alloc(MiB + 1)
      await until('the insert waits', () => waitsForLock(db))
      setImmediate(() => void pause.commit())
      throw sourceError
    }
    await expect(createPostgresStore(db).write(workspaceId, failing())).rejects.toBe(sourceError)
    expect(await db('contents')).toEqual([])
  })

  test.each([
    ['first', 0],
    ['second', 4],
  ])('are discarded as soon as more bytes arrive after the %s insert was refused', async (_, seq) => {
    const { db } = database
    await db.raw(`
      create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused by the test'; end $$;
      create trigger refuse before insert on content_chunks for each row when (new.seq = ${seq}) execute function refuse();
    `)
    async function* slow() {
      yield Buffer.alloc((seq / 4 + 1) * MiB)
      for (let sent = 0; sent < 6_000; sent += 1) {
        await delay(10)
        yield Buffer.alloc(1)
      }
      throw new Error('the store read on')
    }
    await expect(createPostgresStore(db).write(workspaceId, slow())).rejects.toThrow('refused by the test')
    expect(await db('contents')).toEqual([])
  })
})
