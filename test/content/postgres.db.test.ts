import { createPostgresStore } from '../../src/content/postgres.ts'
import { newId } from '../../src/ids.ts'
import { createTestDatabase } from '../support/database.ts'
import { describeContentStore } from './conformance.ts'

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
})
