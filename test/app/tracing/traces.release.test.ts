import { createInterface } from 'node:readline'
import { createCertificates } from '../../../src/access/certificates.ts'
import { readCertificate } from '../../../src/security/certificate.ts'
import { openClient } from '../../support/client.ts'
import { createRoutes } from '../../support/factories.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { createInstallation } from '../../support/installation.ts'
import { startOtlpCollector, type ReceivedSpan } from '../../support/otlp-collector.ts'
import { saveTarget } from '../../support/relay-process.ts'
import { share } from '../../support/share.ts'
import { expirationIn, signedQuery } from '../../support/signed-query.ts'
import { createSigner } from '../../support/signer.ts'
import { createSourceSystem } from '../../support/source-system.ts'
import { until } from '../../support/until.ts'

const authId = 'CN%3DTST'
const collectorKey = 'canary-collector-11d0'
const credential = 'canary-credential-5b7e'
const inPath = 'canary-path-8a21'
const inQuery = 'canary-query-c3f9'
const bytes = 'canary-bytes-77aa'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const clientSpanId = 'b7ad6b7169203331'

const target = share(await startHttpTarget())
const collector = share(await startOtlpCollector())
const signer = share(await createSigner('RSA 2048'))
const { db, start } = share(
  await createInstallation({
    RELAY_LOG_LEVEL: 'trace',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: `api-key=${collectorKey}`,
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test%20bench',
  }),
)
// One after the other, so that a busy machine starts each in time.
const api = await start('api')
const worker = await start('worker', { OTEL_SERVICE_NAME: 'relay-worker' })
const lines: string[] = []
for (const { child } of [api, worker]) createInterface({ input: child.stderr! }).on('line', (line) => lines.push(line))

const routes = await createRoutes(db, [{ name: 'good' }, { name: 'failing' }], { workspaceSettings: { retry_initial_interval_seconds: 1 } })
const workspace = `acme/${routes.workspaceSlug}`
const { call, keys } = await openClient(db, api.baseUrl, { id: routes.workspaceId, name: workspace })
for (const [name, id] of Object.entries(routes.destinations)) {
  const config = { url: `${target.origin}/${name}/${inPath}?key=${inQuery}` }
  await saveTarget(db, { workspaceId: routes.workspaceId, id }, 'webhook', config, { bearer_token: credential })
}

/** Makes the repository accept requests with a signature of the signer only. */
const activate = async () => {
  const { workspaceId, repositoryId } = routes
  await db('repositories').where({ id: repositoryId }).update({ signature_verification: true })
  const source = createSourceSystem(`${api.baseUrl}/receiver/${workspace}`)
  const query = `putCert&pVersion=0046&authId=${authId}&contRep=Z1`
  expect((await source.call(query, { method: 'PUT', body: signer.der })).status).toBe(200)
  await source.close()
  const certificates = createCertificates(db)
  const { fingerprintSha256 } = readCertificate(signer.der)!
  const found = (await certificates.listAll(repositoryId)).find((each) => each.fingerprintSha256 === fingerprintSha256)!
  await certificates.setStatus({ workspaceId, repositoryId, actor: { type: 'system', userId: null } }, found.id, 'active')
}

const createSigned = async (docId: string) => {
  const query = await signedQuery(
    signer,
    'create',
    [
      ['pVersion', '0045'],
      ['contRep', 'Z1'],
      ['docId', docId],
      ['compId', 'data'],
      ['accessMode', 'c'],
      ['authId', authId],
      ['expiration', expirationIn(7_200)],
    ],
    { signed: ['contRep', 'docId', 'compId', 'accessMode', 'authId', 'expiration'], digest: 'sha256' },
  )
  const source = createSourceSystem(`${api.baseUrl}/receiver/${workspace}`)
  const headers = { 'content-type': 'text/plain', traceparent: `00-${traceId}-${clientSpanId}-01` }
  const { status } = await source.call(query, { method: 'PUT', headers, body: bytes })
  await source.close()
  return { docId, secKey: /secKey=(.*)$/.exec(query)![1]!, status }
}

const failures = () => target.arrivals.filter(({ url }) => url.startsWith('/failing/')).length
target.answerWith(({ url, headers }, response) => {
  const isFailure = url.startsWith('/failing/') && failures() === 1
  response.writeHead(isFailure ? 503 : 200).end(`you sent ${headers.authorization}`)
})
await activate()
const document = await createSigned('D1')

const untilExported = (isDone: (spans: ReceivedSpan[]) => boolean) =>
  until('the spans are exported', () => collector.spans, isDone, 120_000)

const ofTrace = (spans: ReceivedSpan[]) => spans.filter((span) => span.traceId === traceId)
const attemptsIn = (spans: ReceivedSpan[]) => ofTrace(spans).filter(({ name }) => name === 'delivery.attempt')
// The dispatcher of the worker starts a workflow again if its first attempt has not begun in time.
const isStartOfWorker = ({ name, resource }: ReceivedSpan) => name === 'workflow.start' && resource['service.name'] === 'relay-worker'
const childrenOf = (spans: ReceivedSpan[], { spanId }: ReceivedSpan) => spans.filter(({ parentSpanId }) => parentSpanId === spanId)

test('a signed create with two destinations, one of which fails first, is one trace', async () => {
  expect(document.status).toBe(201)
  const isComplete = (all: ReceivedSpan[]) =>
    attemptsIn(all).length === 3 && ofTrace(all).filter((span) => !isStartOfWorker(span)).length >= 9
  const spans = ofTrace(await untilExported(isComplete))
  const byName = (name: string) => spans.filter((span) => span.name === name)

  const [request] = byName('PUT /receiver/:userSlug/:workspaceSlug create')
  expect(request).toMatchObject({
    kind: 'server',
    parentSpanId: clientSpanId,
    isError: false,
    attributes: {
      'http.request.method': 'PUT',
      'http.route': '/receiver/:userSlug/:workspaceSlug',
      'http.response.status_code': '201',
      'relay.command': 'create',
      'relay.request_id': expect.stringMatching(/^[0-9A-Z]{26}$/),
    },
    resource: {
      'service.name': 'document-relay',
      'deployment.environment.name': 'test bench',
      'telemetry.sdk.name': 'opentelemetry',
    },
  })
  expect(byName('document.commit')).toMatchObject([
    { kind: 'client', parentSpanId: request!.spanId, isError: false, attributes: { 'relay.operation': 'create', 'relay.doc_id': 'D1' } },
  ])
  const starts = byName('workflow.start')
  for (const span of starts) {
    expect(span).toMatchObject({
      kind: 'producer',
      parentSpanId: request!.spanId,
      isError: false,
      attributes: { 'relay.message': 'startDocument' },
    })
  }
  expect(starts.filter((span) => !isStartOfWorker(span))).toMatchObject([{ resource: { 'service.name': 'document-relay' } }])

  const attempts = attemptsIn(spans).toSorted((one, other) => Number(one.startedAt - other.startedAt))
  expect(attempts.every(({ parentSpanId, kind }) => parentSpanId === request!.spanId && kind === 'consumer')).toBe(true)
  expect(new Set(attempts.map(({ resource }) => resource['service.name']))).toEqual(new Set(['relay-worker']))
  const failed = attempts.filter(({ isError }) => isError)
  expect(failed).toMatchObject([
    {
      message: expect.stringContaining('503'),
      attributes: {
        'relay.connector': 'webhook',
        'relay.attempt': '1',
        'relay.outcome': 'retryable',
        'relay.status': 'retrying',
        'error.type': 'http_503',
        'relay.request_id': request!.attributes['relay.request_id'],
      },
    },
  ])
  const again = attempts.find(({ attributes }) => attributes['relay.attempt'] === '2')!
  expect(again.attributes).toMatchObject({
    'relay.outcome': 'delivered',
    'relay.status': 'delivered',
    'relay.destination_id': failed[0]!.attributes['relay.destination_id'],
  })
  expect(again.startedAt).toBeGreaterThan(failed[0]!.endedAt)
  for (const attempt of attempts) {
    expect(childrenOf(spans, attempt)).toMatchObject([
      {
        name: 'POST',
        kind: 'client',
        isError: attempt.isError,
        attributes: {
          'server.address': '127.0.0.1',
          'server.port': String(target.port),
          'http.response.status_code': attempt.isError ? '503' : '200',
        },
      },
    ])
  }
  for (const span of spans) expect(span.endedAt).toBeGreaterThanOrEqual(span.startedAt)
})

test('log lines have the ids of the span in which they were written', async () => {
  const spans = ofTrace(collector.spans)
  const ids = (event: string) =>
    lines
      .filter((line) => line.includes(`"event":"${event}"`) && line.includes('"doc_id":"D1"'))
      .map((line) => JSON.parse(line) as { trace_id: string; span_id: string })
      .map(({ trace_id, span_id }) => [trace_id, span_id])
  const request = spans.find(({ kind }) => kind === 'server')!
  const commit = spans.find(({ name }) => name === 'document.commit')!
  expect(ids('document.received')).toEqual([[traceId, request.spanId]])
  expect(commit.spanId).not.toBe(request.spanId)
  expect(new Set(ids('delivery.attempted'))).toEqual(new Set(attemptsIn(spans).map(({ spanId }) => [traceId, spanId])))
})

test('a manual retry joins the trace of the document, and links to the request that asked for it', async () => {
  await until('the document is delivered', async () => (await call('GET', '/documents')).json.data[0]?.attributes.status === 'delivered')
  const { id } = (await call('GET', '/documents')).json.data[0]
  // Nothing is wrong with the delivery, but only a failed one can be retried.
  const [delivery] = await db('deliveries').where({ document_id: id }).limit(1)
  await db('deliveries')
    .where({ document_id: id, destination_id: delivery.destination_id })
    .update({ status: 'failed', delivered_at: null })
  await call('POST', `/documents/${id}/retry`)

  const spans = await untilExported(
    (all) =>
      attemptsIn(all).length === 4 && all.some(({ name, links }) => name === 'workflow.start' && links.length > 0) && all.some(isRetry),
  )
  const request = spans.find(isRetry)!
  expect(request).toMatchObject({ kind: 'server', parentSpanId: '', attributes: { 'http.response.status_code': '200' } })
  expect(request.traceId).not.toBe(traceId)
  const logged = lines.filter((line) => line.includes('"event":"http.request"') && line.includes(`/documents/${id}/retry"`))
  expect(logged.map((line) => JSON.parse(line) as object)).toMatchObject([{ trace_id: request.traceId, span_id: request.spanId }])
  expect(spans.filter(({ links }) => links.length > 0)).toMatchObject([
    {
      name: 'workflow.start',
      traceId,
      attributes: { 'relay.message': 'retryDelivery', 'relay.document_id': id },
      links: [{ traceId: request.traceId, spanId: request.spanId }],
    },
  ])
})

const isRetry = ({ name }: ReceivedSpan) => name === 'POST /api/:userSlug/:workspaceSlug/documents/:id/retry'

test('no secret is in a span or in a log line', async () => {
  const { docId, secKey } = document
  // A client that writes nonsense into the header gets a trace of its own.
  const nonsense = `00-${'f'.repeat(31)}-canary`
  const refused = await fetch(`${api.baseUrl}/download/${inPath}?token=${inQuery}`, { headers: { traceparent: nonsense } })
  expect(refused.status).toBe(404)
  expect((await fetch(`${api.baseUrl}/${inPath}?${inQuery}`)).status).toBe(404)
  const spans = await untilExported((all) => all.some(({ name }) => name === 'GET /download') && all.some(({ name }) => name === 'GET'))
  expect(spans.find(({ name }) => name === 'GET /download')).toMatchObject({ parentSpanId: '', traceId: expect.not.stringMatching(/^f+$/) })

  // Everything was in use.
  expect(target.arrivals[0]).toMatchObject({ url: expect.stringContaining(inQuery), headers: { authorization: `Bearer ${credential}` } })
  expect(collector.requests.every(({ headers }) => headers['api-key'] === collectorKey)).toBe(true)
  const exported = collector.requests.map(({ body }) => body.toString('latin1')).join('\n')
  expect(exported).toContain(docId)
  const log = lines.join('\n')
  const canaries = {
    collectorKey,
    credential,
    inPath,
    inQuery,
    bytes,
    secKey,
    decodedSecKey: decodeURIComponent(secKey),
    apiKey: keys.admin,
    nonsense,
  }
  for (const [name, canary] of Object.entries(canaries)) {
    expect({ name, isExported: exported.includes(canary) }).toEqual({ name, isExported: false })
  }
  expect(log.includes(collectorKey)).toBe(false)
})

test('the last spans are exported when the processes stop', async () => {
  const before = collector.spans.length
  await call('GET', '/destinations')
  expect(await Promise.all([api.stop(), worker.stop()])).toEqual([0, 0])
  const last = collector.spans.slice(before)
  expect(last.map(({ name }) => name)).toContain('GET /api/:userSlug/:workspaceSlug/destinations')
})
