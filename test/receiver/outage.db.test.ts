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
import { createSourceSystem, multipartBody, partOf, type SourceAnswer } from '../support/source-system.ts'
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
const { workspaceSlug } = await createRoutes(database.db, [{ name: 'archive' }])
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
