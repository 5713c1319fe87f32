import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase } from '../../src/db/database.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { createSourceSystem, multipartBody, openSocket, partOf, type SourceAnswer } from '../support/source-system.ts'
import { startLossyPath } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

/** Starts a TCP proxy to the database that can be interrupted and restored. */
const startDatabaseProxy = async (databaseUrl: string) => {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let isInterrupted = false
  const server = createServer((client) => {
    if (isInterrupted) return client.destroy()
    const upstream = connect(Number(target.port), target.hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    client.pipe(upstream).pipe(client)
    return undefined
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const interrupt = () => {
    isInterrupted = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: url.href,
    interrupt,
    restore: () => {
      isInterrupted = false
    },
    stop: async () => {
      interrupt()
      server.close()
      await once(server, 'close')
    },
  }
}

const acquireTimeoutMs = 1_000

const database = share(await createTestDatabase())
const proxy = share(disposable(await startDatabaseProxy(database.url), (each) => each.stop()))
const proxiedDb = share(
  disposable(openDatabase({ ...databaseConfig(proxy.url), acquireTimeoutMs }, 'test proxy'), (each) => each.destroy()),
)
const receiver = share(await startApi(proxiedDb))
const { workspaceSlug, workspaceId } = await createRoutes(database.db, [{ name: 'archive' }])
const source = share(disposable(createSourceSystem(`${receiver.baseUrl}/receiver/acme/${workspaceSlug}`), (each) => each.close()))

/** Repeats a request until it is not answered with 503. A pooled connection may not have noticed yet that it is closed. */
const untilServed = (ask: () => Promise<SourceAnswer>) => until('the request succeeds', ask, ({ status }) => status !== 503)

beforeEach(() => proxy.restore())

const unavailable = {
  status: 503,
  headers: { 'x-errordescription': expect.stringMatching(/^unavailable/), 'retry-after': expect.any(String) },
}

describe('while the database is unreachable', () => {
  test('every command is answered with 503, and succeeds again afterwards', async () => {
    expect((await untilServed(() => source.create('D1', 'hello'))).status).toBe(201)
    proxy.interrupt()
    for (const answer of [await source.create('D2', 'x'), await source.get('D1'), await source.info('D1'), await source.serverInfo()]) {
      expect(answer).toMatchObject(unavailable)
    }
    proxy.restore()
    expect(String((await untilServed(() => source.get('D1'))).body)).toBe('hello')
    expect((await untilServed(() => source.create('D2', 'x'))).status).toBe(201)
  })

  test('a document that is being received is not stored, and can be sent again', async () => {
    const chunk = Buffer.alloc(600_000, 'x')
    async function* body() {
      for (let sent = 0; sent < 6; sent += 1) {
        yield chunk
        await delay(20)
        if (sent === 3) proxy.interrupt()
      }
    }
    expect(await source.create('D3', Readable.from(body()))).toMatchObject(unavailable)
    proxy.restore()
    expect(await database.db('documents').where({ doc_id: 'D3' })).toEqual([])
    expect((await untilServed(() => source.info('D3'))).status).toBe(404)
    expect((await untilServed(() => source.create('D3', 'again'))).status).toBe(201)
  })

  test('an update does not change the document', async () => {
    expect((await untilServed(() => source.create('U1', 'before'))).status).toBe(201)
    async function* body() {
      yield Buffer.from('af')
      await delay(50)
      proxy.interrupt()
      yield Buffer.from('ter')
    }
    expect(await source.update('U1', Readable.from(body()))).toMatchObject(unavailable)
    proxy.restore()
    expect(String((await untilServed(() => source.get('U1'))).body)).toBe('before')
    expect((await untilServed(() => source.update('U1', 'after'))).status).toBe(200)
    expect(String((await untilServed(() => source.get('U1'))).body)).toBe('after')
  })

  test('mCreate fails at the first document, instead of waiting for a connection for each', async () => {
    const parts = Array.from({ length: 100 }, (_, index) => partOf(`M${index}`, 'data', 'x'))
    const bytes = multipartBody('MB7', parts)
    async function* body() {
      yield bytes.subarray(0, -5)
      await delay(50)
      proxy.interrupt()
      yield bytes.subarray(-5)
    }
    const headers = { 'content-type': 'multipart/form-data; boundary=MB7' }
    const query = 'mCreate&pVersion=0045&contRep=Z1&docId=M0'
    const began = performance.now()
    expect(await source.call(query, { method: 'POST', headers, body: Readable.from(body()) })).toMatchObject(unavailable)
    expect(performance.now() - began).toBeLessThan((parts.length * acquireTimeoutMs) / 2)
    proxy.restore()
    expect(await database.db('archive_documents').where('doc_id', 'like', 'M%')).toEqual([])
    const again = await untilServed(() => source.call(query, { method: 'POST', headers, body: bytes }))
    expect(again.status).toBe(201)
  })

  test('a document whose commit fails is not stored, and can be sent again', async () => {
    async function* body() {
      yield Buffer.from('small')
      await delay(50)
      proxy.interrupt()
      yield Buffer.from('er')
    }
    expect(await source.create('D4', Readable.from(body()))).toMatchObject(unavailable)
    proxy.restore()
    expect(await database.db('archive_documents').where({ doc_id: 'D4' })).toEqual([])
    expect((await untilServed(() => source.create('D4', 'again'))).status).toBe(201)
  })
})

describe('while PostgreSQL is silent', () => {
  const answerMaxMs = 5_000
  // Twice that on a busy machine. Without the limit it is half a minute.
  const measuredMaxMs = 2 * answerMaxMs
  const noAnswer: { status: number; headers: Record<string, string> } = { status: 0, headers: {} }

  test('every surface answers 503 within 5 seconds, and works again afterwards', async () => {
    const url = new URL(database.url)
    const path = await startLossyPath(Number(url.port))
    url.port = String(path.port)
    const db = openDatabase({ ...databaseConfig(url.href), acquireTimeoutMs: answerMaxMs, answersRequests: true }, 'test silence')
    const api = await startApi(db)
    const tenant = await api.openTenant({ id: workspaceId, name: `acme/${workspaceSlug}` })
    const system = createSourceSystem(`${api.baseUrl}/receiver/acme/${workspaceSlug}`)
    const ask = async (send: () => Promise<{ status: number; headers: Headers | Record<string, string> }>) => {
      const startedAt = performance.now()
      const { status, headers } = await Promise.race([send(), delay(15_000, noAnswer)])
      const retryAfter = headers instanceof Headers ? headers.get('retry-after') : headers['retry-after']
      return { status, isInTime: performance.now() - startedAt < measuredMaxMs, isRetryable: Number(retryAfter) > 0 }
    }
    const get = (to: string) => ask(() => fetch(`${api.baseUrl}${to}`, { headers: { authorization: `Bearer ${tenant.keys.admin}` } }))
    const base = `/acme/${workspaceSlug}`
    const askAll = () =>
      Promise.all([
        ...Array.from({ length: 20 }, (_, turn) => ask(() => system.create(`S${turn}`, 'x'))),
        ask(() => system.get('S0')),
        ...Array.from({ length: 20 }, () => get(`/api${base}/documents`)),
        get(`/api${base}/audit-logs.csv`),
        ask(() => tenant.call('POST', '/documents/acknowledge', {})),
      ])
    try {
      expect((await system.create('S', 'x')).status).toBe(201)
      expect((await get(`/api${base}/documents`)).status).toBe(200)
      path.lose()
      // The second time, the relay knows already that PostgreSQL is silent.
      for (const answers of [await askAll(), await askAll()]) {
        expect(answers).toEqual(answers.map(() => ({ status: 503, isInTime: true, isRetryable: true })))
      }
      expect(api.log.join('\n')).not.toMatch(/Knex|transacting/)
      path.heal()
      await until('documents are accepted again', async () => (await system.create('AFTER', 'x')).status === 201)
    } finally {
      await system.close()
      await api.stop()
      await db.destroy()
      await path.stop()
    }
  })
})

test('a create that was sent completely, and whose client has gone before the relay read it, is captured as not read', async () => {
  const one = openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 1 }, 'test')
  const api = await startApi(one)
  try {
    const busy = await one.transaction()
    const socket = await openSocket(api.port)
    const query = `create&pVersion=0045&contRep=Z1&docId=GONE&compId=data`
    await socket.send(`PUT /receiver/acme/${workspaceSlug}?${query} HTTP/1.1\r\nHost: relay\r\nContent-Length: 1\r\n\r\nx`)
    await until('the create waits', () => (one.client as { pool: { numPendingAcquires(): number } }).pool.numPendingAcquires() > 0)
    socket.socket.destroy()
    await delay(100)
    await busy.rollback()
    const captured = await until(
      'the request is captured',
      () => database.db('captured_requests').where({ doc_id: 'GONE' }).first('status_code', 'request_body_truncation_reason as reason'),
      (row) => row !== undefined,
    )
    expect(captured).toEqual({ status_code: 499, reason: 'unread' })
  } finally {
    await api.stop()
    await one.destroy()
  }
})
