// Measures the cost of capture: the same receiver on the same database, with and without capture. The two are measured
// alternately, because the speed of a machine drifts; the ratio is the result to compare. Then measures the duration of
// GET /requests while a hundred requests per second are captured. DATABASE_URL names a server on which the benchmark
// may create a database.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import Koa from 'koa'
import { Agent, request } from 'undici'
import { createUseCases } from '../src/app/use-cases.ts'
import { newId } from '../src/base/ids.ts'
import { createLog } from '../src/base/log.ts'
import { createCaptureStore } from '../src/capture/capture-store.ts'
import { createCapturedRequests } from '../src/capture/captured-requests.ts'
import { createCaptureQueue, type CaptureQueue } from '../src/capture/queue.ts'
import { createSealedQueries } from '../src/capture/sealed-query.ts'
import { readConfig } from '../src/config/config.ts'
import { createPostgresStore } from '../src/content/postgres.ts'
import { openDatabase, type Database } from '../src/db/database.ts'
import { migrate } from '../src/db/migrations.ts'
import { createThreads } from '../src/http/threads.ts'
import { createReceiver } from '../src/receiver/app.ts'
import { createKeyRing } from '../src/security/seal.ts'
import { createRoutes } from '../test/support/factories.ts'

const { values: options } = parseArgs({ options: { requests: { type: 'string', default: '1000' } } })
const requests = Number(options.requests)
const config = readConfig()
const log = createLog('warn')
// No thread starts, because nothing is searched.
const threads = createThreads(config)

const startReceiver = async (db: Database, isCaptured: boolean, captures: CaptureQueue) => {
  const store = createPostgresStore(db)
  const { receive, update, ...useCases } = createUseCases(db, config)
  const { middleware } = createReceiver({
    ...useCases,
    receive: (document) => receive(isCaptured ? document : { ...document, capture: undefined }),
    update: (document) => update(isCaptured ? document : { ...document, capture: undefined }),
    captures,
    runOnThread: threads.run,
    sealedQueries: createSealedQueries(createKeyRing([`bench:${randomBytes(32).toString('base64')}`])),
    contents: { stores: { postgres: store, s3: undefined }, writeTo: store },
    launch: () => {},
    config,
    log,
  })
  const app = new Koa()
  app.use(middleware)
  const handle = app.callback()
  const server = createServer((incoming, outgoing) => void handle(incoming, outgoing)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

const median = (values: number[]) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!
const format = (ms: number) => `${ms.toFixed(2)} ms`

const admin = openDatabase(config, 'bench admin')
const name = `bench_${newId().toLowerCase()}`
await admin.raw('create database ??', [name])
const url = new URL(config.DATABASE_URL!)
url.pathname = `/${name}`
const db = openDatabase({ ...config, DATABASE_URL: url.href }, 'bench')
// Sequential requests use one connection. A hundred per second use as many as they need.
const agent = new Agent({ connections: 50 })
try {
  await migrate(db)
  const { workspaceId, workspaceSlug } = await createRoutes(db, [{ name: 'target' }])
  const path = `/receiver/acme/${workspaceSlug}`
  const captures = createCaptureQueue(createCaptureStore(db), config, log)
  const withoutCapture: CaptureQueue = {
    ...captures,
    add: () => {},
    complete: () => {},
    streamingBody: (sourceIp) => ({ ...captures.streamingBody(sourceIp), add: () => {}, whole: () => null }),
  }
  const receivers = { with: await startReceiver(db, true, captures), without: await startReceiver(db, false, withoutCapture) }

  const send = async (base: string, query: string, body?: Buffer) => {
    const startedAt = performance.now()
    const answer = await request(`${base}${path}?${query}`, { method: body ? 'PUT' : 'GET', body: body ?? null, dispatcher: agent })
    await answer.body.dump()
    if (answer.statusCode >= 300) throw new Error(`The receiver answered ${answer.statusCode}`)
    return performance.now() - startedAt
  }
  const create = (base: string, body: Buffer) => send(base, `create&pVersion=0045&contRep=Z1&docId=${newId()}&compId=data`, body)
  const compare = async (title: string, work: (base: string) => Promise<number>) => {
    const times = { with: [] as number[], without: [] as number[] }
    for (let sent = 0; sent < requests; sent += 1) {
      for (const kind of ['with', 'without'] as const) times[kind].push(await work(receivers[kind].url))
    }
    const [captured, plain] = [median(times.with), median(times.without)]
    console.log(`${title}: ${format(plain)} without, ${format(captured)} with capture: ${(100 * (captured / plain - 1)).toFixed(1)} % more`)
  }
  for (const sizeBytes of [10, 30, 100, 1_000].map((kilobytes) => kilobytes * 1_000)) {
    const body = randomBytes(sizeBytes)
    await compare(`create of ${sizeBytes / 1_000} KB`, (base) => create(base, body))
  }
  await send(receivers.without.url, 'create&pVersion=0045&contRep=Z1&docId=READ&compId=data', randomBytes(10_000))
  await compare('get of 10 KB', (base) => send(base, 'get&pVersion=0045&contRep=Z1&docId=READ&compId=data'))

  const stop = new AbortController()
  const sent: Promise<number>[] = []
  const sending = (async () => {
    for (let due = performance.now(); !stop.signal.aborted; due += 10) {
      await delay(Math.max(due - performance.now(), 0))
      sent.push(create(receivers.with.url, randomBytes(10_000)))
    }
  })()
  const startedAt = performance.now()
  const list = createCapturedRequests(db)
  const times: number[] = []
  while (performance.now() - startedAt < 20_000) {
    const listStartedAt = performance.now()
    await list.list(workspaceId, { perPage: 100, statusClass: 2 })
    times.push(performance.now() - listStartedAt)
    await delay(50)
  }
  stop.abort()
  await sending
  await Promise.all(sent)
  const sorted = times.toSorted((one, other) => one - other)
  const perSecond = (sent.length * 1_000) / (performance.now() - startedAt)
  console.log(
    `a page of 100 while ${perSecond.toFixed(0)} requests a second are captured: ${format(median(times))}, 99 % within ${format(sorted[Math.floor(sorted.length * 0.99)]!)}`,
  )
  await captures.close()
  for (const { server } of Object.values(receivers)) server.closeAllConnections()
  for (const { server } of Object.values(receivers)) server.close()
} finally {
  await agent.close()
  await db.destroy()
  await admin.raw('drop database ?? with (force)', [name])
  await admin.destroy()
}
