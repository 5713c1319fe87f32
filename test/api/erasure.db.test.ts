import { createReceive } from '../../src/archive/receive.ts'
import { createReceivingRepositories } from '../../src/archive/receiving-repository.ts'
import { newId } from '../../src/base/ids.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { openDatabase } from '../../src/db/database.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'
import { startApi } from '../support/api.ts'
import { databaseConfig } from '../support/database.ts'
import { receivedDocument, testConfig } from '../support/factories.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { createSourceSystem, partOf } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { wire } from './objstore.ts'

const launched: OutboxMessage[] = []
const launch = (messages: OutboxMessage[]) => void launched.push(...messages)
const { database, api, acme, other } = share(await startScene({ temporal: { launch } }))
const wired = await wire(acme, 'A1')
beforeEach(() => {
  launched.length = 0
})

const receive = async () => {
  const [userSlug, workspaceSlug] = acme.path.split('/').slice(2) as [string, string]
  const findRepository = async () => (await createReceivingRepositories(database.db).find(userSlug, workspaceSlug, 'A1'))!
  const received = await receivedDocument({ workspaceId: acme.id, findRepository }, { data: 'hello' })
  const { messages } = await createReceive(database.db, testConfig())(received)
  return { id: messages[0]!.input.documentId, docId: received.docId }
}
const call = (method: string, path: string, key = acme.keys.admin) => api.call(method, acme.path + path, { key })
const erase = (id: string, key?: string) => call('DELETE', `/documents/${id}/content`, key)
const setDelivery = (id: string, status: string) => database.db('deliveries').where({ document_id: id }).update({ status })
const attributesOf = async (id: string) => (await call('GET', `/documents/${id}`)).json.data.attributes
const contentsOf = async (id: string) => {
  const { content_id } = await database.db('documents').where({ id }).first('content_id')
  return content_id as string | null
}

test('erasing removes the bytes at once, and the document stays in the lists', async () => {
  const { id } = await receive()
  await setDelivery(id, 'delivered')
  const contentId = await contentsOf(id)
  expect((await call('GET', `/documents/${id}/content`)).status).toBe(200)
  expect((await erase(id)).status).toBe(204)
  expect(await contentsOf(id)).toBeNull()
  expect(await database.db('contents').where({ id: contentId })).toEqual([])
  expect(await database.db('content_chunks').where({ content_id: contentId })).toEqual([])
  expect((await call('GET', `/documents/${id}/content`)).status).toBe(404)
  expect(await attributesOf(id)).toMatchObject({ status: 'delivered', content_retained: false })
  expect(launched).toEqual([])
})

test('deliveries that have not been made are cancelled, and cannot be retried', async () => {
  for (const status of ['pending', 'retrying', 'failed', 'held']) {
    const { id } = await receive()
    await setDelivery(id, status)
    await erase(id)
    expect(await attributesOf(id)).toMatchObject({ status: 'failed', deliveries: [{ status: 'cancelled' }] })
    expect(launched).toMatchObject([{ kind: 'cancelDelivery', destinationId: wired.destinationId, document: { documentId: id } }])
    expect((await call('POST', `/documents/${id}/retry`)).json.error.code).toBe('nothing_to_retry')
    launched.length = 0
  }
})

test('the captured bodies of every request about the docId go too, and those of other documents stay', async () => {
  const { id, docId } = await receive()
  const capture = async (capturedDocId: string) => {
    const requestId = newId()
    const row = {
      id: requestId,
      workspace_id: acme.id,
      channel: 'receiver',
      http_method: 'PUT',
      uri: '/',
      repo_id: 'A1',
      doc_id: capturedDocId,
    }
    const times = { request_at: new Date(), response_at: new Date(), status_code: 201, duration_ms: 1 }
    await database
      .db('captured_requests')
      .insert({ ...row, ...times, query_string: '', request_headers: '{}', response_headers: '{}', source_ip: '127.0.0.1' })
    await database
      .db('captured_bodies')
      .insert({ request_id: requestId, workspace_id: acme.id, kind: 'request', data: Buffer.from('hello') })
    return requestId
  }
  const [own, foreign] = [await capture(docId), await capture('ANOTHER')]
  await erase(id)
  const left = await database.db('captured_bodies').whereIn('request_id', [own, foreign]).pluck('request_id')
  expect(left).toEqual([foreign])
  expect(await database.db('captured_requests').whereIn('id', [own, foreign])).toHaveLength(2)
})

test('the captured body of an mCreate goes with any of its documents', async () => {
  const [first, second] = [`${newId()}A`, `${newId()}B`]
  const source = createSourceSystem(`${api.baseUrl}/receiver/${acme.path.split('/').slice(2).join('/')}`, { repoId: 'A1' })
  const created = await source.mCreate(first, [partOf(first, 'data', 'first'), partOf(second, 'data', 'second')])
  expect(created.status).toBe(201)
  const document = await database.db('documents').where({ doc_id: second }).first('id', 'request_id')
  const bodies = () => database.db('captured_bodies').where({ request_id: document.request_id, kind: 'request' })
  await until('the body is captured', bodies, (rows) => rows.length === 1)
  expect((await erase(document.id)).status).toBe(204)
  expect(await bodies()).toEqual([])
  expect(await attributesOf(document.id)).toMatchObject({ content_retained: false })
})

test('erasing twice is answered with 204 and recorded once', async () => {
  const { id } = await receive()
  expect([(await erase(id)).status, (await erase(id)).status]).toEqual([204, 204])
  expect(await database.db('audit_logs').where({ event: 'document.erased', subject_id: id })).toHaveLength(1)
})

test('bytes that the store cannot remove now are left to the job remove-orphans', async () => {
  const { id } = await receive()
  const contentId = await contentsOf(id)
  const db = openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 2 }, 'a store that is away')
  const store = { ...createPostgresStore(db), remove: () => Promise.reject(new Error('the store is away')) }
  const unreachable = await startApi(db, { contents: { postgres: store } })
  try {
    expect((await unreachable.call('DELETE', `${acme.path}/documents/${id}/content`, { key: acme.keys.admin })).status).toBe(204)
    expect(await database.db('contents').where({ id: contentId }).first()).toMatchObject({ owned_at: null })
  } finally {
    await unreachable.stop()
    await db.destroy()
  }
})

test('it requires the level admin and a document of the same workspace', async () => {
  const { id } = await receive()
  expect((await erase(id, acme.keys.member)).status).toBe(403)
  expect((await other.call('DELETE', `/documents/${id}/content`)).status).toBe(404)
  expect((await erase(newId())).status).toBe(404)
  expect(await contentsOf(id)).not.toBeNull()
})
