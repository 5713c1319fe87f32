import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { ContentStore } from '../../src/content/store.ts'
import { createDownloads } from '../../src/http/download.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { createDownloadLinks, createDownloadUrl } from '../../src/security/download-link.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring } from '../support/factories.ts'
import { insertDocument } from './documents-in.ts'

let database: TestDatabase
let server: Server
let origin: string
let workspaceId: string
let documentId: string
let opened = 0

const links = createDownloadLinks([`k1:${Buffer.alloc(32, 1).toString('base64')}`])
beforeAll(async () => {
  database = await createTestDatabase()
  const wiring = await createWiring(database.db, [])
  workspaceId = wiring.workspaceId
  const { repositoryId, repoId } = wiring
  const contentId = newId()
  const content = { id: contentId, workspace_id: workspaceId, store: 'postgres', size_bytes: 5, sha256: Buffer.alloc(32) }
  await database.db('contents').insert({ ...content, owned_at: new Date() })
  await database.db('content_chunks').insert({ content_id: contentId, seq: 0, data: Buffer.from('hello') })
  documentId = await insertDocument(database.db, { workspaceId, repositoryId, repoId, contentId })
  const postgres = createPostgresStore(database.db)
  const read: ContentStore['read'] = (...what) => {
    opened += 1
    return postgres.read(...what)
  }
  const contents = { postgres: { ...postgres, read }, s3: undefined }
  const app = new Koa()
  app.use(createDownloads({ db: database.db, contents, links, log: createLog('silent') }))
  app.use((context) => {
    context.body = 'somebody else'
  })
  const answer = app.callback()
  server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  server.closeAllConnections()
  server.close()
  await database.drop()
})
beforeEach(() => {
  opened = 0
})

const inAMinute = () => new Date(Date.now() + 60_000)
const pathOf = (overrides: Partial<Parameters<typeof links.pathOf>[0]> = {}) =>
  links.pathOf({ workspaceId, documentId, expiresAt: inAMinute(), ...overrides })
const fetchLink = (path: string, init: RequestInit = {}) => fetch(origin + path, init)

test('a link gives the bytes without a key, as a file to be saved', async () => {
  const response = await fetchLink(pathOf())
  expect(response.status).toBe(200)
  expect(await response.text()).toBe('hello')
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'application/pdf',
    'content-length': '5',
    'content-disposition': 'attachment; filename="data.pdf"',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
  })
})

test('an address made up for a mail is one of these links', async () => {
  const url = createDownloadUrl(links, { baseUrl: `${origin}/`, ttlMs: 60_000 })(workspaceId, documentId)
  expect(await (await fetch(url!)).text()).toBe('hello')
})

test('HEAD tells what there is and opens nothing', async () => {
  const response = await fetchLink(pathOf(), { method: 'HEAD' })
  expect([response.status, response.headers.get('content-length')]).toEqual([200, '5'])
  expect(opened).toBe(0)
})

test('a link that was changed leads nowhere, whatever was changed', async () => {
  const path = pathOf()
  const changed = [
    path.replace(documentId, newId()),
    path.replace(workspaceId, newId()),
    path.replace(/expires=\d+/, `expires=${Date.now() + 999_999}`),
    path.replace(/signature=./, (found) => (found.endsWith('A') ? 'signature=B' : 'signature=A')),
    path.replace(/&signature=.*/, ''),
    path.replace(/expires=\d+&/, ''),
    `${path}&signature=x`,
    `${path}&expires=1`,
    path.replace(/\?.*/, ''),
    '/download/',
  ]
  for (const each of changed) {
    const response = await fetchLink(each)
    expect([each, response.status]).toEqual([each, 404])
    expect(await response.json()).toMatchObject({ error: { code: 'not_found' } })
  }
  expect(opened).toBe(0)
})

test('a link that has run out is gone, and says so', async () => {
  const response = await fetchLink(pathOf({ expiresAt: new Date(Date.now() - 1) }))
  expect(response.status).toBe(410)
  expect(await response.json()).toMatchObject({ error: { code: 'gone' } })
})

test('a document that is no longer kept is gone', async () => {
  expect((await fetchLink(pathOf({ documentId: newId() }))).status).toBe(410)
})

test('a document of another workspace is not given out, even by a link of ours', async () => {
  expect((await fetchLink(pathOf({ workspaceId: newId() }))).status).toBe(410)
})

test('nothing but reading is possible', async () => {
  const response = await fetchLink(pathOf(), { method: 'DELETE' })
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('every other address is left to the others', async () => {
  expect(await (await fetchLink('/elsewhere')).text()).toBe('somebody else')
})
