import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { dataDirMetricName } from '../../src/observe/metrics.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startInstallation } from '../support/installation.ts'
import { routeToWebhook } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { createSourceSystem } from '../support/source-system.ts'
import { until } from '../support/until.ts'

const target = share(await startHttpTarget())
// Answers nothing, so an attempt lasts until the worker breaks it off.
target.answerWith(() => {})
const { database, api, worker, start } = share(await startInstallation({ RELAY_SHUTDOWN_GRACE_MS: '300000' }))

const ask = async (path: string, { probesUrl }: { probesUrl: string } = worker) => {
  const response = await fetch(probesUrl + path)
  return { status: response.status, text: await response.text() }
}

test('docs/observability.md describes every metric of the relay, and no other', async () => {
  const page = await readFile(new URL('../../docs/observability.md', import.meta.url), 'utf8')
  const described = page.matchAll(/^\| `(relay_[a-z_]+)/gm)
  const served = `${(await ask('/metrics', api)).text}${(await ask('/metrics')).text}`.matchAll(/^# HELP (relay_[a-z_]+)/gm)
  const names = (matches: Iterable<RegExpExecArray>) => new Set([...matches].map(([, name]) => name))
  // The embedded stack has one more.
  expect(names(described)).toEqual(names(served).add(dataDirMetricName))
})

test('the port of the receivers serves neither readiness nor metrics, and when it takes no more connections, the probes of the API answer', async () => {
  await using small = await start('api', { RELAY_HTTP_MAX_CONNECTIONS: '2' })
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

  const { workspaceSlug } = await routeToWebhook(database, target.origin)
  const source = createSourceSystem(`${api.baseUrl}/receiver/acme/${workspaceSlug}`)
  await source.create('D1', 'text')
  await source.close()
  await until('the attempt is under way', () => target.arrivals.length > 0)
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
