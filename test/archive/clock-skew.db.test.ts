import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createArchiveDocuments } from '../../src/archive/documents.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createUpdate } from '../../src/archive/update.ts'
import { newId } from '../../src/base/ids.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

// The id of a document tells which one is newer, and each process gives ids by its own clock.

const config = testConfig()

const database = share(await createTestDatabase())

const receiver = fileURLToPath(new URL('./receive-ahead.ts', import.meta.url))

/** Creates a document in a process whose clock is an hour ahead. */
const receiveAhead = async (routes: Awaited<ReturnType<typeof createRoutes>>, docId: string): Promise<string> => {
  const env = { ...process.env, DATABASE_URL: database.url }
  const { stdout } = await promisify(execFile)(process.execPath, [receiver, routes.workspaceId, routes.workspaceSlug, docId], { env })
  return stdout.trim()
}

const scene = async () => {
  const routes = await createRoutes(database.db, [{ name: 'archive' }])
  const docId = newId()
  const older = await receiveAhead(routes, docId)
  expect(older > newId()).toBe(true)
  return { routes, docId, older }
}

describe('a document of a process whose clock is ahead', () => {
  test('has an earlier id than each of its updates, and ids of other documents follow the clock', async () => {
    const { db } = database
    const { routes, docId, older } = await scene()
    const update = async (components: Record<string, string>) =>
      (await createUpdate(db, config)({ ...(await receivedDocument(routes, components, docId)), whole: true })).messages
    const [first, second] = [await update({ data: 'new', note: 'new' }), await update({ data: 'newer' })]
    const ids = [first.map(({ input }) => input.documentId).toSorted(), second.map(({ input }) => input.documentId)]
    expect([older, ...ids.flat()].toSorted()).toEqual([older, ...ids.flat()])
    expect(new Set(ids.flat()).size).toBe(3)
    expect(newId() < older).toBe(true)
  })

  test('has an earlier id than a document that is created after its deletion', async () => {
    const { db } = database
    const { routes, docId, older } = await scene()
    const create = async () => createReceive(db, config)(await receivedDocument(routes, { data: 'new' }, docId))
    await expect(create()).resolves.toMatchObject({ created: false })
    await createArchiveDocuments(db).delete(routes.repositoryId, docId)
    const { created, documents } = await create()
    expect({ created, isLater: documents[0]!.documentId > older }).toEqual({ created: true, isLater: true })
  })
})
