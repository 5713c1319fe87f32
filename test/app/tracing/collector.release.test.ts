import { fileURLToPath } from 'node:url'
import { findFreePort } from '../../../src/programs/ports.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { createInstallation } from '../../support/installation.ts'
import { startOtlpCollector } from '../../support/otlp-collector.ts'
import { routeToWebhook } from '../../support/relay-process.ts'
import { share } from '../../support/share.ts'
import { createSourceSystem } from '../../support/source-system.ts'
import { until } from '../../support/until.ts'

const preload = fileURLToPath(new URL('../../support/imported-packages.mjs', import.meta.url))

// Each test starts two processes.
const testTimeoutMs = 300_000

const target = share(await startHttpTarget())
const { database, start } = share(await createInstallation())

/** Starts an api and a worker, delivers a document, and stops both. */
const deliver = async (variables: Record<string, string>) => {
  // One after the other, so that a busy machine starts each in time.
  const api = await start('api', variables, { preload })
  const worker = await start('worker', variables, { preload })
  let log = ''
  const imported = new Set<string>()
  for (const { child } of [api, worker]) {
    child.stderr!.on('data', (data: Buffer) => (log += String(data)))
    child.on('message', (name: string) => imported.add(name))
  }
  const arrived = target.arrivals.length
  const { workspaceSlug, workspaceId } = await routeToWebhook(database, `${target.origin}/inbox`)
  const source = createSourceSystem(`${api.baseUrl}/receiver/acme/${workspaceSlug}`)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  expect((await source.create('D1', 'text', { headers: { traceparent } })).status).toBe(201)
  await source.close()
  await until('the document has arrived', () => target.arrivals.length > arrived)
  const [document] = await database.db('documents').where({ workspace_id: workspaceId }).select('traceparent')
  const stopped = await Promise.all([api.stop(), worker.stop()])
  return { log, imported: [...imported], stopped, traceparent: document.traceparent as string | null }
}

test(
  'unless traces are configured, no package of OpenTelemetry is loaded, and nothing is traced',
  async () => {
    const { log, imported, stopped, traceparent } = await deliver({})
    // prom-client and the SDKs of Azure load the interface, which does nothing by itself.
    expect(imported.filter((name) => name !== '@opentelemetry/api')).toEqual([])
    expect({ stopped, traceparent }).toEqual({ stopped: [0, 0], traceparent: null })
    expect(log).toContain('"event":"document.received"')
    expect(log).toContain('"event":"delivery.attempted"')
    expect(log).not.toContain('trace_id')
  },
  testTimeoutMs,
)

test(
  'without a collector, documents are delivered, the log says once per process that spans are lost, and the processes stop',
  async () => {
    const { log, imported, stopped, traceparent } = await deliver({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await findFreePort()}`,
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=canary-header',
      OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
    })
    expect(imported).toContain('@opentelemetry/sdk-trace')
    expect(stopped).toEqual([0, 0])
    expect(traceparent).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/)
    expect(log.match(/"msg":"spans were lost"/g)).toHaveLength(2)
    expect(log).toContain('ECONNREFUSED')
    expect(log).not.toContain('canary-header')
  },
  testTimeoutMs,
)

test(
  'a collector that never answers does not keep the processes from stopping',
  async () => {
    await using collector = await startOtlpCollector()
    collector.answerWith(() => {})
    const { log, stopped } = await deliver({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
      OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
    })
    expect(stopped).toEqual([0, 0])
    expect(collector.spans.length).toBeGreaterThan(0)
    expect(log).toContain('"msg":"spans were lost"')
  },
  testTimeoutMs,
)

test(
  'the answer of a collector that refuses spans is not logged',
  async () => {
    await using collector = await startOtlpCollector()
    collector.answerWith((response) => void response.writeHead(401, 'canary-status').end('canary-answer'))
    const { log, stopped } = await deliver({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint })
    expect(stopped).toEqual([0, 0])
    expect(log).toContain('the collector answered 401')
    expect(log).not.toContain('canary')
  },
  testTimeoutMs,
)
