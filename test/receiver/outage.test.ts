import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { createTestDatabase, databaseConfig, type TestDatabase } from '../support/database.ts'
import { createWiring } from '../support/factories.ts'
import { createSourceSystem, multipartBody, partOf, type SourceAnswer, type SourceSystem } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { startReceiver } from './receiver.ts'

/** The way to the database, which can be cut and mended. */
const startLine = async (databaseUrl: string) => {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((client) => {
    if (isCut) return client.destroy()
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
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: url.href,
    cut,
    mend: () => {
      isCut = false
    },
    stop: async () => {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}

let database: TestDatabase
let line: Awaited<ReturnType<typeof startLine>>
let throughLine: Database
let receiver: Awaited<ReturnType<typeof startReceiver>>
let source: SourceSystem

beforeAll(async () => {
  database = await createTestDatabase()
  line = await startLine(database.url)
  throughLine = openDatabase({ ...databaseConfig(line.url), DATABASE_ACQUIRE_TIMEOUT_MS: 1_000 }, 'test line')
  receiver = await startReceiver(throughLine)
  const { workspaceSlug } = await createWiring(database.db, [{ name: 'archive' }])
  source = createSourceSystem(`${receiver.baseUrl}/receiver/acme/${workspaceSlug}`)
})
afterAll(async () => {
  await source.close()
  await receiver.stop()
  await throughLine.destroy()
  await line.stop()
  await database.drop()
})

/** A pooled connection may take a moment to learn that it is dead. */
const untilServed = (ask: () => Promise<SourceAnswer>) => until('it is served', ask, ({ status }) => status !== 503)

beforeEach(() => line.mend())

const unavailable = {
  status: 503,
  headers: { 'x-errordescription': expect.stringMatching(/^unavailable/), 'retry-after': expect.any(String) },
}

describe('while the database is away', () => {
  it('every command is answered 503, and served again once it is back', async () => {
    expect((await source.create('D1', 'hello')).status).toBe(201)
    line.cut()
    for (const answer of [await source.create('D2', 'x'), await source.get('D1'), await source.info('D1'), await source.serverInfo()]) {
      expect(answer).toMatchObject(unavailable)
    }
    line.mend()
    expect(String((await untilServed(() => source.get('D1'))).body)).toBe('hello')
    expect((await source.create('D2', 'x')).status).toBe(201)
  })

  it('a document that was under way is not half there, and can be sent again', async () => {
    const piece = Buffer.alloc(600_000, 'x')
    async function* body() {
      for (let sent = 0; sent < 6; sent += 1) {
        yield piece
        await delay(20)
        if (sent === 3) line.cut()
      }
    }
    expect(await source.create('D3', Readable.from(body()))).toMatchObject(unavailable)
    line.mend()
    expect(await database.db('documents').where({ doc_id: 'D3' })).toEqual([])
    expect((await untilServed(() => source.info('D3'))).status).toBe(404)
    expect((await source.create('D3', 'again')).status).toBe(201)
  })

  it('an update leaves what was there before', async () => {
    await source.create('U1', 'before')
    async function* body() {
      yield Buffer.from('af')
      await delay(50)
      line.cut()
      yield Buffer.from('ter')
    }
    expect(await source.update('U1', Readable.from(body()))).toMatchObject(unavailable)
    line.mend()
    expect(String((await untilServed(() => source.get('U1'))).body)).toBe('before')
    expect((await source.update('U1', 'after')).status).toBe(200)
    expect(String((await source.get('U1')).body)).toBe('after')
  })

  it('many documents are given up at the first one, and not each after a wait of its own', async () => {
    const parts = Array.from({ length: 100 }, (_, index) => partOf(`M${index}`, 'data', 'x'))
    const bytes = multipartBody('MB7', parts)
    async function* body() {
      yield bytes.subarray(0, -5)
      await delay(50)
      line.cut()
      yield bytes.subarray(-5)
    }
    const headers = { 'content-type': 'multipart/form-data; boundary=MB7' }
    const query = 'mCreate&pVersion=0045&contRep=Z1&docId=M0'
    const began = performance.now()
    expect(await source.call(query, { method: 'POST', headers, body: Readable.from(body()) })).toMatchObject(unavailable)
    expect(performance.now() - began).toBeLessThan(10_000)
    line.mend()
    expect(await database.db('archive_documents').where('doc_id', 'like', 'M%')).toEqual([])
    const again = await untilServed(() => source.call(query, { method: 'POST', headers, body: bytes }))
    expect(again.status).toBe(201)
  })

  it('a document whose commit fails is not half there either', async () => {
    async function* body() {
      yield Buffer.from('small')
      await delay(50)
      line.cut()
      yield Buffer.from('er')
    }
    expect(await source.create('D4', Readable.from(body()))).toMatchObject(unavailable)
    line.mend()
    expect(await database.db('archive_documents').where({ doc_id: 'D4' })).toEqual([])
    expect((await untilServed(() => source.create('D4', 'again'))).status).toBe(201)
  })
})
