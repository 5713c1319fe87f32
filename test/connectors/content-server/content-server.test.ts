import type { Payload } from '../../../src/connectors/connector.ts'
import { contentServer } from '../../../src/connectors/content-server/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { createThrowAwayKey } from '../../../src/security/throw-away-key.ts'
import { disposable } from '../../support/disposable.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { oddHeads, startOddServer } from '../../support/odd-heads.ts'
import type { ServerFault } from '../../support/old-content-server-faults.ts'
import { startOldContentServer } from '../../support/old-content-server.ts'
import { startRefusingStore } from '../../support/refusing-store.ts'
import { share } from '../../support/share.ts'
import { startWormStore } from '../../support/worm-store.ts'
import { contextOf, failure, payloadOf } from '../payloads.ts'

const outbound = share(disposable(createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }), (each) => each.close()))
const context = contextOf(outbound)

const start = async (faults: ServerFault[] = [], config: object = {}) => {
  const server = await startOldContentServer({ faults })
  const target = { config: contentServer.config.parse({ url: server.url, repository: 'Z1', ...config }), credentials: {} }
  const send = (compId: string, content: string, docId = 'D1') =>
    contentServer.deliver(payloadOf(Buffer.from(content), { docId, compId }), target, context)
  const contents = (docId = 'D1') =>
    Object.fromEntries(server.documents.get(`Z1/${docId}`)!.components.map(({ compId, body }) => [compId, body.toString()]))
  return { server, target, send, contents, [Symbol.asyncDispose]: server.stop }
}

describe('a document at another content server', () => {
  test.each(Object.entries(oddHeads))('is stored once, whose answers contain %s', async (_, change) => {
    await using old = await start()
    await using odd = await startOddServer(Number(new URL(old.server.url).port))
    odd.change(change)
    const config = contentServer.config.parse({ ...old.target.config, url: old.server.url.replace(/:\d+/, `:${odd.port}`) })
    const result = await contentServer.deliver(payloadOf(Buffer.from('hello'), { docId: 'D1' }), { config, credentials: {} }, context)
    expect(result.answer).toEqual({ status: 201, doc_id: 'D1' })
    expect(old.contents()).toEqual({ data: 'hello' })
    expect(old.server.requests.map((line) => line.split(' ')[0])).toEqual(['info', 'create', 'info'])
  })

  test('has the id of the source system and an address at which it can be read', async () => {
    await using old = await start()
    const { path, answer } = await old.send('data', 'hello')
    expect(path).toBe(`${old.server.url}?get&pVersion=0045&contRep=Z1&docId=D1&compId=data`)
    expect(answer).toEqual({ status: 201, doc_id: 'D1' })
    expect(await (await fetch(path)).text()).toBe('hello')
  })

  test('is stored at a server whose lines end with LF alone', async () => {
    await using old = await start(['bare_line_feeds'])
    for (const compId of ['data', 'note'])
      expect((await old.send(compId, `content of ${compId}`)).answer).toEqual({ status: compId === 'data' ? 201 : 200, doc_id: 'D1' })
    expect(old.contents()).toEqual({ data: 'content of data', note: 'content of note' })
  })

  test('gets its components one after another', async () => {
    await using old = await start()
    for (const compId of ['data', 'descr', 'note']) await old.send(compId, `content of ${compId}`)
    expect(old.contents()).toEqual({ data: 'content of data', descr: 'content of descr', note: 'content of note' })
    expect(old.server.requests.map((line) => line.split(' ')[0])).toEqual([
      'info',
      'create',
      'info',
      'info',
      'update',
      'info',
      'info',
      'update',
      'info',
    ])
  })

  test('gets components that arrive together: all but the first find it created', async () => {
    await using old = await start()
    await Promise.all(['data', 'descr', 'note'].map((compId) => old.send(compId, compId)))
    expect(old.contents()).toEqual({ data: 'data', descr: 'descr', note: 'note' })
  })

  test('keeps what it has when one component is replaced', async () => {
    await using old = await start()
    old.server.put('D1', { data: 'old', note: 'kept' })
    expect((await old.send('data', 'new')).answer).toEqual({ status: 200, doc_id: 'D1' })
    expect(old.contents()).toEqual({ data: 'new', note: 'kept' })
  })

  test('has the id of the relay if the destination says so', async () => {
    await using old = await start([], { document_ids: 'relay' })
    const payload = payloadOf(Buffer.from('x'), { docId: 'not this one' })
    await contentServer.deliver(payload, old.target, context)
    expect([...old.server.documents.keys()]).toEqual([`Z1/${payload.documentId}`])
  })
})

test.each([
  ['as many bytes as were sent', 'hello', undefined],
  ['others', 'hell', 'content_altered'],
])('a size that info does not tell is asked of get: %s', async (_, stored, code) => {
  await using server = await startHttpTarget()
  let isCreated = false
  server.answerWith(({ method, url }, response) => {
    if (method === 'PUT') {
      isCreated = true
      return void response.writeHead(201).end()
    }
    if (url.includes('?get&')) return void response.end(stored)
    if (!isCreated) return void response.writeHead(404).end()
    const parts = '--B\r\nX-compId: data\r\nContent-Length: 0\r\n\r\n\r\n--B--\r\n'
    return void response.writeHead(200, { 'content-type': 'multipart/form-data; boundary=B' }).end(parts)
  })
  const target = { config: contentServer.config.parse({ url: server.origin, repository: 'Z1' }), credentials: {} }
  const sent = contentServer.deliver(payloadOf(Buffer.from('hello'), { docId: 'D1', compId: 'data' }), target, context)
  if (code === undefined) expect(await sent).toMatchObject({ bytesSent: 5, answer: { status: 201 } })
  else expect(await failure(sent)).toMatchObject({ code })
})

test.each<[number, Record<string, string>, string, string, boolean]>([
  [
    401,
    { 'x-errordescription': 'the URL expired at 2026-11-29T08:00:00.000Z; the time here is 2026-11-29T09:00:00.000Z' },
    '',
    'credentials_refused',
    false,
  ],
  [401, { 'x-errordescription': 'signature invalid' }, '', 'credentials_refused', true],
  [403, { 'content-type': 'text/html' }, '<html>blocked by the firewall</html>', 'http_403', false],
  [403, { 'content-type': 'text/html', 'x-errordescription': 'no access mode' }, '<html>no access mode</html>', 'http_403', true],
  [400, { 'x-errordescription': 'the storage is full' }, '', 'http_400', false],
  [400, { 'x-errordescription': 'docId is missing' }, '', 'http_400', true],
])('%i with %j is final only if no time changes it: %s %s %s', async (status, headers, page, code, permanent) => {
  await using server = await startHttpTarget()
  server.answerWith((_, response) => response.writeHead(status, headers).end(page))
  const target = { config: contentServer.config.parse({ url: server.origin, repository: 'Z1' }), credentials: {} }
  expect(await failure(contentServer.deliver(payloadOf(Buffer.from('hello')), target, context))).toMatchObject({ code, permanent })
})

test('a test says that a content server refuses a second component, and deletes the first', async () => {
  await using old = await start([])
  await using before = await startRefusingStore(old.server.port, (_, { searchParams }) =>
    searchParams.has('update') ? { status: 403, headers: { 'x-errordescription': 'documents are closed' } } : undefined,
  )
  const target = {
    ...old.target,
    config: { ...old.target.config, url: old.server.url.replace(`:${old.server.port}/`, `:${before.port}/`) },
  }
  expect(await contentServer.probe(target, context)).toMatch(/It refused a second component: .*403: documents are closed/)
  expect(old.server.documents.size).toBe(0)
})

describe('a content server that is broken', () => {
  test.each<[ServerFault, string, boolean]>([
    ['truncates', 'content_altered', false],
    ['info_size', 'content_altered', false],
    ['unknown_is_200', 'answer_unreadable', false],
    ['fails', 'http_500', false],
  ])('in this way is noticed: %s', async (fault, code, permanent) => {
    await using old = await start([fault])
    const sent = old.send('data', 'x'.repeat(70_000))

    expect(await failure(sent)).toMatchObject({ code, permanent })
  })

  test('so that it does not delete the document of a test: the message names it', async () => {
    await using old = await start(['refuses_delete'])
    const error = await failure(contentServer.probe(old.target, context))
    const [key] = old.server.documents.keys()
    expect(error).toMatchObject({
      code: 'http_409',
      message: expect.stringContaining(`the document ${key!.slice(3)} of this test remains`) as string,
    })
  })
})

describe.each([403, 405, 409, 423])('a content server that answers %i to an overwrite', (status) => {
  const startWorm = async () => {
    const old = await start()
    const worm = await startWormStore(old.server.port, 'content-server', { status, code: 'component is write-once' })
    const target = {
      ...old.target,
      config: { ...old.target.config, url: old.server.url.replace(`:${old.server.port}/`, `:${worm.port}/`) },
    }
    const deliver = (payload: Payload) => contentServer.deliver(payload, target, context)
    const stop = async () => {
      await worm.stop()
      await old.server.stop()
    }
    return { worm, deliver, [Symbol.asyncDispose]: stop }
  }

  test('has the document whose answer was lost, and no other content', async () => {
    await using it = await startWorm()
    const payload = payloadOf(Buffer.from('content'), { docId: 'D1' })
    it.worm.loseAnswers(true)
    expect(await failure(it.deliver(payload))).toMatchObject({ code: 'connection_lost', permanent: false })
    it.worm.loseAnswers(false)
    expect(await it.deliver({ ...payload, attempt: 2 })).toMatchObject({ bytesSent: 0, answer: { status: 200 } })
    for (const bytes of ['c0ntent', 'content and more']) {
      const error = await failure(it.deliver(payloadOf(Buffer.from(bytes), { docId: 'D1', deliveryId: payload.deliveryId })))
      expect(error).toMatchObject({ code: `http_${status}`, message: expect.stringMatching(/is stored under its name$/) as string })
    }
  })
})

describe('the schema of a content server', () => {
  test('accepts a key with its certificate only', async () => {
    const [one, other] = [await createThrowAwayKey('rsa', 'A', 1), await createThrowAwayKey('rsa', 'B', 1)]
    const issues = (credentials: object) => contentServer.credentials.safeParse(credentials).error?.issues.map(({ message }) => message)
    expect(issues({})).toBeUndefined()
    expect(issues({ auth_id: 'CN=A', certificate: one.certificate, private_key: one.privateKey })).toBeUndefined()
    expect(issues({ auth_id: 'CN=A', certificate: one.certificate, private_key: other.privateKey })).toEqual([
      'the private key does not belong to the certificate',
    ])
    expect(issues({ auth_id: 'CN=A' })).toHaveLength(2)
  })

  test.each(['ftp://old.example/', 'http://old.example/?get', 'http://user:secret@old.example/', 'old.example'])(
    'refuses the url %s',
    (url) => {
      expect(contentServer.config.safeParse({ url, repository: 'Z1' }).success).toBe(false)
    },
  )
})
