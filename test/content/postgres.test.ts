import { createPostgresStore } from '../../src/content/postgres.ts'
import { newId } from '../../src/ids.ts'
import { createTestDatabase } from '../support/database.ts'
import { describeContentStore } from './conformance.ts'

describeContentStore('postgres', () => ({
  open: (db) => createPostgresStore(db),
  stored: async (db) => (await db('content_chunks').distinct('content_id').orderBy('content_id')).map((row) => row.content_id),
}))

describe('small contents in the postgres store', () => {
  async function* of(text: string) {
    yield Buffer.from(text)
  }

  it('wait in memory for their document, but together take no more of it than allowed', async () => {
    const { db, drop } = await createTestDatabase()
    const workspaceId = newId()
    await db('workspaces').insert({ id: workspaceId, user_slug: 'acme', workspace_slug: 'main' })
    const store = createPostgresStore(db, { heldMaxBytes: 10 })
    const written = async () => (await db('contents').select('id')).map((row) => row.id)

    const held = await store.write(workspaceId, of('1234567'))
    expect(await written()).toEqual([])
    const spilled = await store.write(workspaceId, of('1234567'))
    expect(await written()).toEqual([spilled.id])
    await held.discard()
    await held.discard()
    const again = await store.write(workspaceId, of('1234567'))
    const spilledAgain = await store.write(workspaceId, of('1234567'))
    expect(new Set(await written())).toEqual(new Set([spilled.id, spilledAgain.id]))
    await db.transaction((trx) => again.own(trx))
    expect(await written()).toContain(again.id)
    await drop()
  })
})
