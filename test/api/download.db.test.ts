import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { createDownloads } from '../../src/api/download.ts'
import { destinationsOf } from '../../src/app/use-cases.ts'
import { createDocuments } from '../../src/archive/document-list.ts'
import { createArchiveDocuments } from '../../src/archive/documents.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createUpdate } from '../../src/archive/update.ts'
import { newId } from '../../src/base/ids.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { ContentStore } from '../../src/content/store.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createDownloadLinks, createDownloadUrl, type LinkedDownload } from '../../src/security/download-link.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { logsTo } from '../support/logs.ts'

let opened = 0
const logged: string[] = []

const config = testConfig()
const actor = { type: 'system', userId: null } as const

/** Receives a document. @returns what a link to it names */
const receive = async (docId = newId()): Promise<LinkedDownload> => {
  const received = await receivedDocument(routes, { data: 'hello' })
  const components = received.components.map((component) => ({ ...component, contentType: 'application/pdf' }))
  const { messages } = await createReceive(database.db, config)({ ...received, docId, components })
  return {
    workspaceId: routes.workspaceId,
    documentId: messages[0]!.input.documentId,
    destinationId: routes.destinations['mailbox']!,
    version: 1,
  }
}

const links = createDownloadLinks([`k1:${Buffer.alloc(32, 1).toString('base64')}`])
const database = await createTestDatabase()
const routes = await createRoutes(database.db, [{ name: 'mailbox' }])
const link = await receive()
const postgres = createPostgresStore(database.db)
const read: ContentStore['read'] = (...what) => {
  opened += 1
  return postgres.read(...what)
}
const contents = { postgres: { ...postgres, read } }
const app = new Koa()
app.use(createDownloads({ documents: createDocuments(database.db), contents, links, config: {}, ...logsTo(logged) }))
app.use((context) => {
  context.body = 'another middleware'
})
const answer = app.callback()
const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
await once(server, 'listening')
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
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
  links.pathOf({ ...link, expiresAt: inAMinute(), ...overrides })
const fetchLink = (path: string, init: RequestInit = {}) => fetch(origin + path, init)

test('a link returns the bytes without an API key, as an attachment', async () => {
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

test('a download is logged with the document and without the link', async () => {
  const path = pathOf()
  logged.length = 0
  await fetchLink(path)
  const { workspaceId, documentId } = link
  const lines = logged.map((line) => JSON.parse(line) as { event?: string })
  expect(lines.filter(({ event }) => event === undefined)).toMatchObject([
    { msg: 'document downloaded through a link', workspaceId, documentId, method: 'GET' },
  ])
  expect(JSON.stringify(logged)).not.toContain(new URL(origin + path).searchParams.get('signature'))
})

test('a link returns a range of the bytes', async () => {
  const response = await fetchLink(pathOf(), { headers: { range: 'bytes=1-' } })
  expect([response.status, await response.text()]).toEqual([206, 'ello'])
  expect(response.headers.get('content-range')).toBe('bytes 1-4/5')
  expect((await fetchLink(pathOf(), { headers: { range: 'bytes=9-' } })).status).toBe(416)
})

test('createDownloadUrl creates a valid link', async () => {
  const url = createDownloadUrl(links, { baseUrl: `${origin}/`, ttlMs: 60_000 })(link)
  expect(await (await fetch(url!)).text()).toBe('hello')
})

test('HEAD returns the size and does not open the content', async () => {
  const response = await fetchLink(pathOf(), { method: 'HEAD' })
  expect([response.status, response.headers.get('content-length')]).toEqual([200, '5'])
  expect(opened).toBe(0)
})

test('a modified link is 404, whichever part was modified', async () => {
  const path = pathOf()
  const changed = [
    path.replace(link.documentId, newId()),
    path.replace(link.workspaceId, newId()),
    path.replace(link.destinationId, newId()),
    path.replace('version=1', 'version=2'),
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

test('an expired link is 410', async () => {
  const response = await fetchLink(pathOf({ expiresAt: new Date(Date.now() - 1) }))
  expect(response.status).toBe(410)
  expect(await response.json()).toMatchObject({ error: { code: 'gone' } })
})

test('a document that is no longer stored is 410', async () => {
  expect((await fetchLink(pathOf({ documentId: newId() }))).status).toBe(410)
})

test('a validly signed link does not return a document of another workspace', async () => {
  expect((await fetchLink(pathOf({ workspaceId: newId() }))).status).toBe(410)
})

describe('a link ends', () => {
  const statusOf = async (download: LinkedDownload) => (await fetchLink(links.pathOf({ ...download, expiresAt: inAMinute() }))).status
  const archiveDocuments = () => createArchiveDocuments(database.db)

  test('when the source system deletes the document or its component', async () => {
    for (const compId of [undefined, 'data']) {
      const download = await receive(`DELETED-${compId}`)
      expect(await statusOf(download)).toBe(200)
      await archiveDocuments().delete(routes.repositoryId, `DELETED-${compId}`, compId)
      expect(await statusOf(download)).toBe(410)
    }
  })

  test('not when an update replaces the document', async () => {
    const download = await receive('REPLACED')
    const received = await receivedDocument(routes, { data: 'newer' })
    await createUpdate(database.db, config)({ ...received, docId: 'REPLACED', whole: false })
    expect(await statusOf(download)).toBe(200)
  })

  test('when the content is erased', async () => {
    const download = await receive()
    await createErase(database.db)(download.workspaceId, download.documentId, actor)
    expect(await statusOf(download)).toBe(410)
  })

  test('when the links of its destination are revoked, and later links are valid', async () => {
    const download = await receive()
    await expect(destinationsOf(database.db).revokeDownloadLinks(newId(), download.destinationId, actor)).rejects.toMatchObject({
      code: 'not_found',
    })
    expect(await statusOf(download)).toBe(200)
    await destinationsOf(database.db).revokeDownloadLinks(download.workspaceId, download.destinationId, actor)
    expect(await statusOf(download)).toBe(410)
    expect(await statusOf({ ...download, version: 2 })).toBe(200)
    await database.db('destinations').where({ id: download.destinationId }).update({ download_links_version: 1 })
  })

  test('when its destination is deleted', async () => {
    const download = await receive()
    const destination = database.db('destinations').where({ id: download.destinationId })
    await destination.clone().update({ deleted_at: new Date() })
    expect(await statusOf(download)).toBe(410)
    await destination.clone().update({ deleted_at: null })
    expect(await statusOf(download)).toBe(200)
  })
})

test('methods other than GET and HEAD are 405', async () => {
  const response = await fetchLink(pathOf(), { method: 'DELETE' })
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('other paths are passed on', async () => {
  expect(await (await fetchLink('/elsewhere')).text()).toBe('another middleware')
})
