import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createDeflate } from 'node:zlib'
import { createReceive } from '../../src/archive/receive.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createInstallation } from '../../src/db/installation.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createToBegin } from '../../src/delivery/to-begin.ts'
import { toCamelCase } from '../../src/domain/casing.ts'
import { createReadEInvoice } from '../../src/enrichment/document-content.ts'
import { createEnrich } from '../../src/enrichment/enrich.ts'
import { createEnrichments } from '../../src/enrichment/enrichments.ts'
import { newEnrichment } from '../../src/enrichment/settings.ts'
import { createThreads } from '../../src/http/threads.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createWorkspaces } from '../../src/workspace/workspaces.ts'
import { createTestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { cii, pdfWith, ubl } from './invoices.ts'
import { startODataSystem } from './odata-system.ts'

const { db } = share(await createTestDatabase())
const config = testConfig({ RFC_ANSWER_MAX_BYTES: '100000' })
const { find: findConnector } = createConnectors()
const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
const threads = createThreads(config)
share(disposable({}, async () => void (await Promise.all([threads.close(), outbound.close()]))))

const deep = `${'['.repeat(40_000)}${']'.repeat(40_000)}`
const odata = share(
  await startODataSystem({
    "/Orders('O''Neil / 1')": { body: { d: { Customer: 'Café "Zur Post"', Net: '12.50-', Empty: '', Long: 'x'.repeat(201) } } },
    '/huge': { body: Buffer.from(`{"value":"${'x'.repeat(200_000)}"}`) },
    '/deep': { body: Buffer.from(`{"a":${deep}}`) },
    '/latin1': { body: Buffer.from('{"value":"Müller"}', 'latin1') },
    '/login': { contentType: 'text/html', body: Buffer.from('<html>Please log on</html>') },
    '/moved': { status: 302, body: {} },
    '/object': { body: { value: { a: 1 } } },
  }),
)
const service = odata.origin

const depsOf = (total = config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS) => ({
  db,
  findConnector,
  sendAll: async () => {},
  contents: createSegmentedStores(db, { postgres: createPostgresStore(db) }),
  workspaces: createWorkspaces(db),
  keyRing,
  outbound,
  installation: createInstallation(db),
  runOnThread: threads.run,
  config: { ...config, TEMPORAL_MAX_CONCURRENT_ATTEMPTS: total },
})
const enrich = createEnrich(depsOf())
const inTime = { waitMs: 60_000, lateMs: 86_400_000, elapsedMs: 0 }
const never = new AbortController().signal

/** Receives a document whose repository has an enrichment with these steps. */
const receive = async (
  steps: object[],
  { docId = 'DOC1', settings = {}, data = 'hello' }: { docId?: string; settings?: object; data?: string | Buffer } = {},
) => {
  const routes = await createRoutes(db, [{ name: 'archive' }], { settings })
  const body = newEnrichment.parse({
    name: 'Orders',
    repository_ids: [routes.repositoryId],
    http: { url: service },
    credentials: odata.credentials,
    steps,
  })
  const enrichment = await createEnrichments(db).insert(routes.workspaceId, toCamelCase(newEnrichment, body), systemActor, {
    outbound,
    keyRing,
    config: config,
  })
  const { documents, messages } = await createReceive(db, config)(await receivedDocument(routes, { data }, docId))
  const id = documents[0]!.documentId
  const row = async () => (await db('document_enrichments').where({ document_id: id }).first())!
  return { ...routes, id, enrichment, message: messages[0]!, row, tryOnce: (timing = inTime) => enrich(id, timing, never) }
}

const call = (path: string, ...fields: object[]) => ({ kind: 'http', name: 'order', path, fields })
const value = { name: 'value', path: '$.value' }

test('values are escaped for where they go, and only the named fields are kept, in one form', async () => {
  const order = call("/Orders('{doc_id}')", { name: 'customer', path: '$.d.Customer' }, { name: 'net', path: '$.d.Net', type: 'number' })
  const document = await receive([order], { docId: "O'Neil / 1", settings: { path_template: '{meta.net}/{doc_id}/{comp_id}' } })
  expect(document.message.input.enrichment).toEqual({ waitMs: 60_000, lateMs: 7 * 86_400_000 })
  expect(await document.tryOnce()).toEqual({ status: 'complete' })
  expect(odata.arrivals.at(-1)!.url).toBe("/Orders('O%27%27Neil%20%2F%201')")
  expect(await document.row()).toMatchObject({ status: 'complete', fields: { customer: 'Café "Zur Post"', net: '-12.50' }, attempts: 1 })
  const [delivery] = await db('deliveries').where({ document_id: document.id })
  expect(delivery.path).toBe("-12.50/O'Neil %2F 1/data")

  // A second run, for example after a worker was lost, changes nothing.
  const calls = odata.arrivals.length
  expect(await document.tryOnce()).toEqual({ status: 'complete' })
  expect(odata.arrivals).toHaveLength(calls)
})

test.each([
  ['an answer that is too large', call('/huge', value), 'failed', 'RFC_ANSWER_MAX_BYTES'],
  ['an answer that is nested too deeply', call('/deep', { name: 'value', path: '$..value' }), 'incomplete', 'nested too deeply'],
  ['an answer in another character set', call('/latin1', value), 'incomplete', 'is not in UTF-8'],
  ['a login page', call('/login', value), 'incomplete', 'is no JSON'],
  ['a redirect', call('/moved', value), 'failed', 'answered 302'],
  ['an unknown entity', call('/unknown', value), 'failed', 'answered 404'],
  ['an object in place of a value', call('/object', value), 'incomplete', 'is not a text'],
  ['a function that the workspace does not allow', { kind: 'link' }, 'failed', 'no system to call'],
])('%s gives no field, and says so', async (_, step, status, error) => {
  const document = await receive([step])
  expect(await document.tryOnce()).toMatchObject({ status: 'pending', delayMs: 1_000, error: expect.stringContaining(error) })
  const { fields, steps } = await document.row()
  expect({ fields, steps }).toMatchObject({ fields: {}, steps: [{ status, error: expect.stringContaining(error) }] })
  expect(JSON.stringify(steps)).not.toContain('canary-odata')
})

test('values that fit no field are refused, one by one', async () => {
  const fields = [
    { name: 'empty', path: '$.d.Empty' },
    { name: 'long', path: '$.d.Long' },
    { name: 'day', path: '$.d.Net', type: 'date' },
    { name: 'customer', path: '$.d.Customer' },
  ]
  const document = await receive([call("/Orders('{doc_id}')", ...fields)], { docId: "O'Neil / 1" })
  await document.tryOnce()
  const row = await document.row()
  expect(row.fields).toEqual({ customer: 'Café "Zur Post"' })
  expect(row.steps[0].error).toBe('empty is empty; long has more than 200 characters; day is no date')
  // What is known when the time is over.
  expect(await document.tryOnce({ ...inTime, elapsedMs: inTime.waitMs + inTime.lateMs })).toEqual({ status: 'partial' })
})

test('a value cannot lead a call elsewhere', async () => {
  const document = await receive([call('/a/{doc_id}/b', value)], { docId: '..' })
  const calls = odata.arrivals.length
  await document.tryOnce()
  expect(odata.arrivals).toHaveLength(calls)
  expect((await document.row()).steps[0]).toMatchObject({ status: 'failed', error: 'a value would lead the request to another path' })
})

test('the dispatcher leaves a document that is enriched to its workflow, and begins it with what is left of the wait after a loss', async () => {
  const document = await receive([call('/unknown', value)])
  const due = () => createToBegin(db).findOldest([{ workspaceId: document.workspaceId, beginAs: 'document', documents: 1 }], [])
  await db('deliveries').where({ document_id: document.id }).update({ begin_at: db.fn.now() })
  expect((await due())[0]!.enrichment!.waitMs).toBeGreaterThan(50_000)
  await document.tryOnce()
  expect(await due()).toEqual([])
  const [{ begin_at: beginAt, next_attempt_at: nextAttemptAt }] = await db('deliveries').where({ document_id: document.id })
  expect(nextAttemptAt).toEqual((await document.row()).waits_until)
  expect(beginAt.getTime()).toBe(nextAttemptAt.getTime() + 30_000)
})

test('too many enrichments at a time, a deleted enrichment and an erased document end or wait without a call', async () => {
  const document = await receive([call('/unknown', value)])
  const calls = odata.arrivals.length
  const one = createEnrich(depsOf(1))
  const [first, second] = await Promise.all([one(document.id, inTime, never), one(document.id, inTime, never)])
  expect([first, second].map(({ status }) => status)).toEqual(['pending', 'pending'])
  expect(odata.arrivals).toHaveLength(calls + 1)

  await createEnrichments(db).delete(document.workspaceId, document.enrichment.id, systemActor)
  expect(await document.tryOnce()).toEqual({ status: 'failed' })
  await createErase(db)(document.workspaceId, document.id, systemActor)
  expect(await document.tryOnce()).toEqual({ status: 'gone' })
})

describe('an electronic invoice', () => {
  const step = { kind: 'e_invoice' }

  test('gives its fields, and its bytes stay as they are', async () => {
    const data = pdfWith(Buffer.from(cii))
    const document = await receive([step], { data, settings: { path_template: '{meta.seller}/{meta.invoice_number}/{doc_id}-{comp_id}' } })
    expect(await document.tryOnce()).toEqual({ status: 'complete' })
    expect((await document.row()).fields).toEqual({
      invoice_number: 'FX-0815',
      seller: 'Acme Ltd',
      total: '238.00',
      currency: 'EUR',
      profile: 'urn:factur-x.eu:1p0:basicwl',
    })
    const [delivery] = await db('deliveries').where({ document_id: document.id })
    expect(delivery.path).toBe('Acme Ltd/FX-0815/DOC1-data')
    const { content_id } = await db('documents').where({ id: document.id }).first('content_id')
    const content = await db('contents').where({ id: content_id }).first('sha256')
    expect(content.sha256).toEqual(createHash('sha256').update(data).digest())
  })

  test('is nothing that other documents miss', async () => {
    const document = await receive([step])
    expect(await document.tryOnce()).toEqual({ status: 'complete' })
    expect(await document.row()).toMatchObject({ fields: {}, steps: [{ name: 'e_invoice', status: 'done' }] })
  })

  test('that expands to gigabytes ends its thread and nothing else', async () => {
    const compressed = async (source: Iterable<Buffer>) => buffer(Readable.from(source).pipe(createDeflate({ level: 1 })))
    const zeros = Buffer.alloc(64_000_000)
    const once = await compressed(Array.from({ length: 32 }, () => zeros))
    const data = pdfWith(await compressed([once]), { filter: '/Filter [/FlateDecode /FlateDecode]' })
    expect(data.length).toBeLessThan(1_000_000)
    const { workspaceId, id } = await receive([step], { data })
    // A busy machine would reach the usual limit of time first.
    const read = createReadEInvoice({ ...depsOf(), readMaxMs: 110_000 })
    expect(JSON.parse(await read(workspaceId, id, never))).toEqual({ problem: 'the document takes too much memory to read' })
    const next = await receive([step], { data: ubl })
    expect(await next.tryOnce()).toEqual({ status: 'complete' })
    expect((await next.row()).fields).toMatchObject({ invoice_number: 'RE-4711' })
  })
})

test('a document of a repository without an enrichment has no row, and its workflow no enrichment', async () => {
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const { documents, messages } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
  expect(messages[0]!.input).not.toHaveProperty('enrichment')
  expect(await db('document_enrichments').where({ document_id: documents[0]!.documentId })).toEqual([])
})
