import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import Koa, { type Middleware } from 'koa'
import { ulid } from 'ulid'
import { request } from 'undici'
import { createAttemptSpans } from '../../../src/app/tracing/attempts.ts'
import { traceConnections } from '../../../src/app/tracing/connections.ts'
import { parseTraceparent } from '../../../src/app/tracing/open-telemetry.ts'
import { openTracing } from '../../../src/app/tracing/open-tracing.ts'
import { traceRequests } from '../../../src/app/tracing/requests.ts'
import { inSpan, type Tracing } from '../../../src/app/tracing/tracing.ts'
import { newId } from '../../../src/base/ids.ts'
import type { RecordAttempt } from '../../../src/delivery/record-attempt.ts'
import { findFreePort } from '../../../src/programs/ports.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import type { AttemptInput } from '../../../workflows/messages.ts'
import { testConfig } from '../../support/factories.ts'
import { startOtlpCollector, type ReceivedSpan } from '../../support/otlp-collector.ts'
import { share } from '../../support/share.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const parent = `00-${traceId}-${spanId}-01`

const collector = share(await startOtlpCollector())
beforeEach(() => {
  collector.spans.length = 0
})

/** Runs a scenario with traces. @returns the spans that it has exported, in the order in which they ended */
const record = async (
  scenario: (tracing: Tracing) => Promise<unknown>,
  variables: Record<string, string> = {},
): Promise<ReceivedSpan[]> => {
  const reports: string[] = []
  const config = testConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, ...variables })
  const tracing = (await openTracing(config, (reason) => reports.push(reason)))!
  try {
    await scenario(tracing)
  } finally {
    await tracing.stop()
  }
  expect(reports).toEqual([])
  return [...collector.spans]
}

describe('traces', () => {
  test.each<Record<string, string>>([
    {},
    { OTEL_TRACES_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
    { OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
    { OTEL_SDK_DISABLED: 'true', OTEL_TRACES_EXPORTER: 'otlp' },
  ])('are not recorded with %j', async (variables) => {
    expect(await openTracing(testConfig(variables), () => {})).toBeUndefined()
  })

  test('are sent to the endpoint for traces, if there is one', async () => {
    const variables = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9/other',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.endpoint}/v1/traces`,
    }
    expect(await record(async (tracing) => tracing.start('step', { kind: 'client' }).end(), variables)).toMatchObject([{ name: 'step' }])
  })

  test.each<[string, string | undefined, string[]]>([
    ['always_on', undefined, ['root', 'unsampled', 'sampled']],
    ['always_off', undefined, []],
    ['traceidratio', '0', []],
    ['traceidratio', '1', ['root', 'unsampled', 'sampled']],
    ['parentbased_always_on', undefined, ['root', 'sampled']],
    ['parentbased_always_off', undefined, ['sampled']],
    ['parentbased_traceidratio', '0', ['sampled']],
  ])('with the sampler %s and the argument %s', async (sampler, argument, expected) => {
    const spans = await record(
      async (tracing) => {
        tracing.start('root', { kind: 'server' }).end()
        tracing.start('unsampled', { kind: 'server', parent: `00-${traceId}-${spanId}-00` }).end()
        tracing.start('sampled', { kind: 'server', parent }).end()
      },
      { OTEL_TRACES_SAMPLER: sampler, ...(argument !== undefined && { OTEL_TRACES_SAMPLER_ARG: argument }) },
    )
    expect(new Set(spans.map(({ name }) => name))).toEqual(new Set(expected))
  })

  test('that are not recorded stay so in their later steps', async () => {
    let later: string | undefined
    await record(async (tracing) => inSpan(tracing, 'root', { kind: 'server' }, async () => (later = tracing.traceparent())), {
      OTEL_TRACES_SAMPLER: 'parentbased_always_off',
    })
    expect(later).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
  })

  test('fail a step with the code of an error, and without its message', async () => {
    const [span] = await record(async (tracing) => {
      const failing = inSpan(tracing, 'step', { kind: 'client' }, () =>
        Promise.reject(Object.assign(new Error('canary'), { code: 'ECONNREFUSED' })),
      )
      await expect(failing).rejects.toThrow('canary')
    })
    expect(span).toMatchObject({ isError: true, message: '', attributes: { 'error.type': 'ECONNREFUSED' } })
    expect(String(collector.requests.at(-1)!.body)).not.toContain('canary')
  })
})

describe('a traceparent', () => {
  test.each([parent, `00-${traceId}-${spanId}-00`, `cc-${traceId}-${spanId}-01-what-the-future-brings`])('%s is valid', (text) => {
    expect(parseTraceparent(text)).toMatchObject({ traceId, spanId, isRemote: true })
  })

  test.each([
    '',
    'x',
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01-more`,
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `${parent}, ${parent}`,
    `${parent}\n`,
  ])('%j is ignored', async (text) => {
    expect(parseTraceparent(text)).toBeUndefined()
    const [span] = await record(async (tracing) => tracing.start('step', { kind: 'server', parent: text }).end())
    expect(span).toMatchObject({ parentSpanId: '', traceId: expect.not.stringMatching(traceId) })
  })
})

describe('a request', () => {
  /** Serves requests with traces. @returns the span of one request */
  const serve = async (handle: Middleware, call: (url: string) => Promise<unknown>): Promise<ReceivedSpan> => {
    const [span, ...others] = await record(async (tracing) => {
      const app = new Koa().use(traceRequests(tracing)).use(handle)
      app.silent = true
      const server = app.listen(0, '127.0.0.1')
      await once(server, 'listening')
      await call(`http://127.0.0.1:${(server.address() as AddressInfo).port}/canary-path?canary-query`)
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    })
    expect(others).toEqual([])
    expect(String(collector.requests.at(-1)!.body)).not.toContain('canary')
    return span!
  }
  const get = async (url: string) => (await request(url, { headers: { connection: 'close', traceparent: parent } })).body.dump()

  test('continues the trace of its client, and is named by its route', async () => {
    const span = await serve((context) => {
      Object.assign(context.state, { route: '/receiver', command: 'info' })
      context.status = 404
    }, get)
    expect(span).toMatchObject({ name: 'GET /receiver info', traceId, parentSpanId: spanId, isError: false })
  })

  test('without a route is named by its method', async () => {
    const span = await serve(
      () => {},
      (url) => request(url, { method: 'PURGE' as 'GET' }).then(({ body }) => body.dump()),
    )
    expect(span).toMatchObject({ name: 'HTTP', attributes: { 'http.request.method': 'HTTP', 'http.response.status_code': '404' } })
  })

  test('that the relay could not serve has failed, with the code of the answer', async () => {
    const span = await serve((context) => {
      context.state['errorCode'] = 'unavailable'
      context.status = 503
    }, get)
    expect(span).toMatchObject({ isError: true, attributes: { 'error.type': 'unavailable', 'http.response.status_code': '503' } })
  })

  test('whose client has disconnected before the answer has failed', async () => {
    const span = await serve(
      async ({ req, res }) => {
        req.socket.destroy()
        await once(res, 'close')
      },
      (url) => expect(get(url)).rejects.toThrow('other side closed'),
    )
    expect(span).toMatchObject({ isError: true, attributes: { 'error.type': 'client_gone' } })
    expect(span.attributes).not.toHaveProperty('http.response.status_code')
  })
})

describe('an outbound call', () => {
  test('by either HTTP client has a span with the host only, and none outside a trace', async () => {
    const server = createServer((incoming, response) => {
      incoming.resume()
      if (incoming.url!.startsWith('/broken')) incoming.socket.destroy()
      else response.writeHead(incoming.url!.startsWith('/refused') ? 403 : 200, { connection: 'close' }).end('ok')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const url = (path: string) => `http://127.0.0.1:${port}/${path}/canary-path?sig=canary-query`
    const headers = { authorization: 'Bearer canary-header' }
    const byUndici = async (path: string) => {
      const { body } = await request(url(path), { method: 'PUT', headers })
      await body.text()
    }
    const byNode = async (path: string) => {
      const [response] = await once(httpRequest(url(path), { headers }).end(), 'response')
      response.resume()
    }
    const spans = await record(async (tracing) => {
      await byUndici('outside')
      await byNode('outside')
      await inSpan(tracing, 'attempt', { kind: 'consumer', parent }, async () => {
        await byUndici('stored')
        await byUndici('refused')
        await expect(byUndici('broken')).rejects.toThrow('other side closed')
        await byNode('stored')
        await expect(byNode('broken')).rejects.toThrow('socket hang up')
      })
    })
    server.close()
    const [calls, attempt] = [spans.slice(0, -1), spans.at(-1)]
    const target = { 'url.scheme': 'http', 'server.address': '127.0.0.1', 'server.port': String(port) }
    expect(calls.map(({ name, attributes }) => [name, attributes])).toEqual([
      ['PUT', { ...target, 'http.request.method': 'PUT', 'http.response.status_code': '200' }],
      ['PUT', { ...target, 'http.request.method': 'PUT', 'http.response.status_code': '403', 'error.type': '403' }],
      ['PUT', { ...target, 'http.request.method': 'PUT', 'error.type': 'UND_ERR_SOCKET' }],
      ['GET', { ...target, 'http.request.method': 'GET', 'http.response.status_code': '200' }],
      ['GET', { ...target, 'http.request.method': 'GET', 'error.type': 'ECONNRESET' }],
    ])
    expect(calls.every((call) => call.parentSpanId === attempt!.spanId && call.kind === 'client')).toBe(true)
    expect(calls.map(({ isError }) => isError)).toEqual([false, true, true, false, true])
  })

  test('by a connector with a protocol of its own has a span for its connection', async () => {
    const port = await findFreePort()
    const server = createTcpServer((socket) => void socket.resume().end('hello')).listen(port, '127.0.0.1')
    await once(server, 'listening')
    const guard = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
    const spans = await record(async (tracing) => {
      const outbound = traceConnections(tracing, guard)
      await inSpan(tracing, 'attempt', { kind: 'consumer' }, async () => {
        const socket = await outbound.unencryptedPrivate.connect({ host: '127.0.0.1', port, timeoutMs: 60_000 })
        socket.resume().end('ab')
        await once(socket, 'close')
        server.close()
        await once(server, 'close')
        await expect(outbound.connect({ host: '127.0.0.1', port, timeoutMs: 60_000 })).rejects.toThrow('ECONNREFUSED')
        await expect(outbound.connect({ host: '10.0.0.1', port, timeoutMs: 60_000 })).rejects.toThrow('must not reach')
      })
    })
    await guard.close()
    const address = { 'network.transport': 'tcp', 'server.address': '127.0.0.1', 'server.port': String(port) }
    expect(spans.map(({ name, attributes }) => [name, attributes])).toEqual([
      ['connection', { ...address, 'relay.sent_bytes': '2', 'relay.received_bytes': '5' }],
      ['connection', { ...address, 'error.type': 'ECONNREFUSED' }],
      ['connection', { ...address, 'server.address': '10.0.0.1', 'error.type': 'blocked_address' }],
      ['attempt', {}],
    ])
  })
})

describe('an attempt', () => {
  const input = { documentId: 'DOC', destinationId: 'DST', traceparent: parent } as AttemptInput
  const job = {
    workspace: 'acme/in',
    repoId: 'Z1',
    docId: 'D1',
    compId: 'data',
    requestId: 'R1',
    destination: { connector: 'sftp' },
  } as Parameters<RecordAttempt>[1]
  const end = { operation: 'attemptRetryable', outcome: 'retryable', durationMs: 5, bytesSent: 3 } as const
  const recorded: RecordAttempt = async () => ({ status: 'retrying', superseded: false, attempts: 2 })

  const run = (act: (record: RecordAttempt) => Promise<unknown>, traceparent: string | undefined = parent) =>
    record(async (tracing) => {
      const spans = createAttemptSpans(tracing)
      const activities = {
        attemptDelivery: async (_input: AttemptInput) => {
          await act(spans.reporting(recorded))
          return { status: 'delivered' } as const
        },
      }
      await spans
        .around(activities)
        .attemptDelivery({ ...input, traceparent })
        .catch(() => {})
    })

  test('has a span that says how it ended', async () => {
    const error = { code: 'http_503', message: 'the target answered 503' }
    expect(await run((recordAttempt) => recordAttempt(input, job, { ...end, id: newId(), error }))).toMatchObject([
      {
        name: 'delivery.attempt',
        kind: 'consumer',
        traceId,
        parentSpanId: spanId,
        isError: true,
        message: 'the target answered 503',
        attributes: {
          'relay.document_id': 'DOC',
          'relay.destination_id': 'DST',
          'relay.connector': 'sftp',
          'relay.attempt': '2',
          'relay.outcome': 'retryable',
          'relay.status': 'retrying',
          'error.type': 'http_503',
        },
      },
    ])
  })

  test('that was not made has no span', async () => {
    expect(await run(async () => {})).toEqual([])
  })

  test('of a document that was received without a trace has a trace of its own', async () => {
    const spans = await record(async (tracing) => {
      const { around, reporting } = createAttemptSpans(tracing)
      const attemptDelivery = async (_input: AttemptInput) => {
        await reporting(recorded)(input, job, { ...end, id: newId() })
        return { status: 'delivered' } as const
      }
      const { traceparent: _traceparent, ...untraced } = input
      await around({ attemptDelivery }).attemptDelivery(untraced)
    })
    expect(spans).toMatchObject([{ parentSpanId: '', isError: false, traceId: expect.not.stringMatching(traceId) }])
  })

  test('that fails in the relay itself has a span', async () => {
    const failure = Object.assign(new Error('canary'), { code: '08006' })
    expect(await run(() => Promise.reject(failure))).toMatchObject([{ isError: true, message: '', attributes: { 'error.type': '08006' } }])
  })

  test('whose worker was lost has a span since its start, beside that of the attempt which found it', async () => {
    const lostSince = Date.now() - 60_000
    const spans = await run(async (recordAttempt) => {
      const error = { code: 'interrupted', message: 'the worker was lost during the attempt' }
      await recordAttempt(input, job, { ...end, id: ulid(lostSince), outcome: 'interrupted', error })
      await recordAttempt(input, job, { ...end, id: newId(), outcome: 'delivered' })
    })
    expect(spans).toMatchObject([
      { parentSpanId: spanId, isError: true, attributes: { 'error.type': 'interrupted' } },
      { parentSpanId: spanId, isError: false, attributes: { 'relay.outcome': 'delivered' } },
    ])
    expect(spans[0]!.startedAt).toBe(BigInt(lostSince) * 1_000_000n)
  })
})
