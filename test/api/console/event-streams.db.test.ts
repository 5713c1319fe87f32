import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { startApi } from '../../support/api.ts'
import { createTestDatabase } from '../../support/database.ts'
import { share } from '../../support/share.ts'
import { until } from '../../support/until.ts'
import { insertDocument } from '../insert-document.ts'
import { objstore, wire } from '../objstore.ts'

const database = share(await createTestDatabase())
const api = share(await startApi(database.db, { limits: { streams: { intervalMs: 100, heartbeatMs: 1_000, maxStreamsPerActor: 2 } } }))
const acme = await api.tenant('acme/prod')
const other = await api.tenant('other/prod')
const wired = await wire(acme, 'A1')
const opened: IncomingMessage[] = []
afterEach(() => {
  for (const response of opened.splice(0)) response.destroy()
})

const fromConsole = { 'sec-fetch-site': 'same-origin' }

const signIn = async (key: string): Promise<string> => {
  const sent = request(`${api.baseUrl}/console/session`, {
    method: 'POST',
    headers: { ...fromConsole, 'content-type': 'application/json' },
  })
  sent.end(JSON.stringify({ key }))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.resume()
  return response.headers['set-cookie']![0]!.split(';')[0]!
}

/** Opens a stream as a browser does, which accepts compressed answers. */
const listen = async (cookie: string) => {
  const sent = request(`${api.baseUrl}/console/events`, {
    headers: { ...fromConsole, cookie, accept: 'text/event-stream', 'accept-encoding': 'gzip, br' },
  })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  opened.push(response)
  let text = ''
  let hasEnded = false
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => void (text += chunk))
  response.on('error', () => {})
  response.once('close', () => (hasEnded = true))
  const changes = () =>
    [...text.matchAll(/^event: change\ndata: (.*)$/gm)].flatMap(([, data]) => (JSON.parse(data!) as { changed: string[] }).changed)
  return { response, text: () => text, changes, hasEnded: () => hasEnded }
}

test('a page learns of documents, deliveries and settings of its workspace, uncompressed and not cached', async () => {
  const stream = await listen(await signIn(acme.keys.viewer))
  const foreign = await listen(await signIn(other.keys.viewer))
  expect(stream.response.statusCode).toBe(200)
  expect(stream.response.headers).toMatchObject({
    'content-type': expect.stringMatching(/^text\/event-stream\b/),
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
  })
  expect(stream.response.headers).not.toHaveProperty('content-encoding')
  // The first change after the answer must be seen.
  await acme.call('POST', '/destinations', objstore('Another'))
  await until('the destination is seen', async () => stream.changes().includes('configuration'))
  await insertDocument(database.db, {
    workspaceId: acme.id,
    repositoryId: wired.repositoryId,
    repoId: 'A1',
    deliveries: [{ ...wired, status: 'pending' }],
  })
  await until('the document is seen', async () => stream.changes().includes('deliveries'))
  await until('a sign of life is seen', async () => stream.text().includes(': still here'))
  expect(foreign.changes()).toEqual([])
})

test('a stream ends when the key of its session is revoked', async () => {
  const { data } = (await acme.call('POST', '/api-keys', { name: 'short', level: 'viewer' })).json
  const stream = await listen(await signIn(data.attributes.key))
  expect(stream.hasEnded()).toBe(false)
  await acme.call('DELETE', `/api-keys/${data.id}`)
  await until('the stream has ended', async () => stream.hasEnded())
})

test('a key has a limited number of streams, and a page that is not signed in has none', async () => {
  const cookie = await signIn(acme.keys.member)
  const first = await listen(cookie)
  await listen(cookie)
  expect((await listen(cookie)).response.statusCode).toBe(429)
  first.response.destroy()
  await until('the place is free', async () => (await listen(cookie)).response.statusCode === 200)
  expect((await listen('relay_session=wrong')).response.statusCode).toBe(401)
})
