import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { dataDirMetricName } from '../../src/observe/metrics.ts'
import { createTestDatabase } from '../support/database.ts'
import { relayVariables, routeToWebhook, startRelayProcess } from '../support/relay-process.ts'
import { createSourceSystem } from '../support/source-system.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

let openRequests = 0

const database = await createTestDatabase()
const env = await startTemporalServer()
// Answers nothing, so an attempt lasts until the worker breaks it off.
const target = createServer(() => {
  openRequests += 1
}).listen(0, '127.0.0.1')
await once(target, 'listening')
const variables = { ...relayVariables(database, env), RELAY_SHUTDOWN_GRACE_MS: '300000' }
const api = await startRelayProcess('api', variables)
const worker = await startRelayProcess('worker', variables)
afterAll(async () => {
  await api.kill()
  await worker.kill()
  target.closeAllConnections()
  target.close()
  await env.teardown()
  await database.drop()
})

const ask = async (path: string, { probesUrl }: { probesUrl: string } = worker) => {
  const response = await fetch(probesUrl + path)
  return { status: response.status, text: await response.text() }
}

test('docs/operations.md describes every metric of the relay, and no other', async () => {
  const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')
  const described = page.matchAll(/^\| `(relay_[a-z_]+)/gm)
  const served = `${(await ask('/metrics', api)).text}${(await ask('/metrics')).text}`.matchAll(/^# HELP (relay_[a-z_]+)/gm)
  const names = (matches: Iterable<RegExpExecArray>) => new Set([...matches].map(([, name]) => name))
  // The embedded stack has one more.
  expect(names(described)).toEqual(names(served).add(dataDirMetricName))
})

test('the port of the receivers serves neither readiness nor metrics, and when it takes no more connections, the probes of the API answer', async () => {
  const small = await startRelayProcess('api', { ...variables, RELAY_HTTP_MAX_CONNECTIONS: '2' })
  const publicPort = { probesUrl: small.baseUrl }
  const sockets: Socket[] = []
  try {
    const statusesOf = async (address: { probesUrl: string }) => {
      const statuses = []
      for (const path of ['/healthz', '/readyz', '/metrics']) statuses.push((await ask(path, address)).status)
      return statuses
    }
    expect(await statusesOf(publicPort)).toEqual([200, 404, 404])
    const { port, hostname } = new URL(small.baseUrl)
    while (sockets.length < 4) {
      const socket = connect(Number(port), hostname)
      sockets.push(socket)
      socket.on('error', () => {}).resume()
      await once(socket, 'connect')
    }
    await until('the last connection is dropped', () => sockets.at(-1)!.destroyed)
    expect(await statusesOf(small)).toEqual([200, 200, 200])
    expect((await ask('/api/acme/none/documents', small)).status).toBe(404)
  } finally {
    for (const socket of sockets) socket.destroy()
    await small.kill()
  }
})

test('a worker answers probes and metrics, and is alive but not ready while it stops', async () => {
  const ready = await ask('/readyz')
  expect(ready.status).toBe(200)
  expect(JSON.parse(ready.text)).toMatchObject({
    status: 'ready',
    dependencies: { database: { ok: true }, schema: { ok: true }, temporal: { ok: true }, worker: { ok: true } },
  })
  expect(await ask('/metrics')).toMatchObject({ status: 200, text: expect.stringMatching(/^relay_build_info\{version="[^"]+"\} 1$/m) })
  // The worker serves nothing else.
  expect((await ask('/api/acme/invoices/documents')).status).toBe(404)

  const { workspaceSlug } = await routeToWebhook(database, `http://127.0.0.1:${(target.address() as AddressInfo).port}`)
  const source = createSourceSystem(`${api.baseUrl}/receiver/acme/${workspaceSlug}`)
  await source.create('D1', 'text')
  await source.close()
  await until('the attempt is under way', () => openRequests > 0)
  worker.child.kill('SIGTERM')

  const stopping = await until(
    'the worker is not ready',
    () => ask('/readyz'),
    ({ status }) => status === 503,
  )
  expect(JSON.parse(stopping.text)).toMatchObject({
    status: 'not ready',
    dependencies: { database: { ok: true }, worker: { ok: false, error: expect.stringMatching(/^The worker is (stopping|draining)\.$/) } },
  })
  expect((await ask('/healthz')).status).toBe(200)
})
