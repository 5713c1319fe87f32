import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { createDeflate, deflateSync } from 'node:zlib'
import { createReceive } from '../../src/archive/receive.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createInstallation } from '../../src/db/installation.ts'
import { createOnItsOwn } from '../../src/db/on-its-own.ts'
import { beginsAtOnce } from '../../src/db/starts.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createToBegin } from '../../src/delivery/to-begin.ts'
import { toCamelCase } from '../../src/domain/casing.ts'
import { createReadEInvoice } from '../../src/enrichment/document-content.ts'
import { createEnrich, createFindEnrichments } from '../../src/enrichment/enrich.ts'
import { createEnrichments, enrichmentKind } from '../../src/enrichment/enrichments.ts'
import { createRunAgain } from '../../src/enrichment/run-again.ts'
import { newEnrichment } from '../../src/enrichment/settings.ts'
import { createReaderProcess } from '../../src/http/reader-process.ts'
import type { RunTask } from '../../src/http/task-limits.ts'
import { createThreads } from '../../src/http/threads.ts'
import { systemAnswerMaxBytes } from '../../src/rfc/rfc-client.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createWorkspaces } from '../../src/workspace/workspaces.ts'
import { blockTask, createGate } from '../support/blocking-task.ts'
import { createAuthority } from '../support/certificates.ts'
import { createTestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { startDouble } from '../support/double.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { wrongInside } from '../support/hostile-text.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { copyWaitingDocument } from '../support/waiting-documents.ts'
import { cii, pdfWith, ubl } from './invoices.ts'
import { startODataSystem } from './odata-system.ts'

const { db } = share(await createTestDatabase())
const config = testConfig()
const { find: findConnector } = createConnectors()
const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
const threads = createThreads()
const reader = createReaderProcess()
share(disposable({}, async () => void (await Promise.all([threads.close(), reader.close(), outbound.close()]))))

const deep = `${'['.repeat(40_000)}${']'.repeat(40_000)}`
const odata = share(
  await startODataSystem({
    "/Orders('O''Neil / 1')": { body: { d: { Customer: 'Café "Zur Post"', Net: '12.50-', Empty: '', Long: 'x'.repeat(201) } } },
    '/huge': { body: Buffer.from(`{"value":"${'x'.repeat(systemAnswerMaxBytes)}"}`) },
    '/deep': { body: Buffer.from(`{"a":${deep}}`) },
    '/latin1': { body: Buffer.from('{"value":"Müller"}', 'latin1') },
    '/login': { contentType: 'text/html', body: Buffer.from('<html>Please log on</html>') },
    '/moved': { status: 302, body: {} },
    '/object': { body: { value: { a: 1 } } },
  }),
)
const service = odata.origin

const deps = {
  db,
  onItsOwn: createOnItsOwn().onItsOwn,
  findConnector,
  contents: createSegmentedStores(db, { postgres: createPostgresStore(db) }),
  workspaces: createWorkspaces(db),
  keyRing,
  outbound,
  installation: createInstallation(db),
  runOnThread: threads.run,
  runInProcess: reader.run,
  config,
}
beforeEach(async () => {
  await db('document_enrichments').delete()
  await db('side_queues').delete()
})

/** Creates runs that end as soon as nothing is due. */
const enrichWith = (parts: Partial<Parameters<typeof createEnrich>[0]> = {}) =>
  createEnrich({ ...deps, ...parts }, { lingerMs: 0, runMs: 600_000 })
const enrich = enrichWith()
const never = new AbortController().signal

interface Row {
  status: string
  steps: { name: string; status: string; error: string }[]
  updated_at: Date
  next_try_at: Date
}

const outcomeOf = ({
  status,
  steps,
  updated_at: triedAt,
  next_try_at: nextTryAt,
}: Row): { status: string; delayMs?: number; error?: string } => {
  if (status !== 'pending') return { status }
  const problem = steps.find((step) => step.status !== 'done')
  return { status, delayMs: nextTryAt.getTime() - triedAt.getTime(), ...(problem && { error: `${problem.name}: ${problem.error}` }) }
}

/** Receives a document whose repository has an enrichment with these steps. */
const receive = async (
  steps: object[],
  {
    docId = 'DOC1',
    settings = {},
    data = 'hello',
    credentials = odata.credentials,
    url = service,
  }: { docId?: string; settings?: object; data?: string | Buffer; credentials?: object; url?: string } = {},
) => {
  const routes = await createRoutes(db, [{ name: 'archive' }], { settings })
  const body = newEnrichment.parse({
    name: 'Orders',
    repository_ids: [routes.repositoryId],
    http: { url },
    credentials,
    steps,
  })
  const enrichment = await createEnrichments(db, { outbound, keyRing, config }).insert(
    routes.workspaceId,
    toCamelCase(newEnrichment, body),
    systemActor,
  )
  const { documents, messages } = await createReceive(db, config)(await receivedDocument(routes, { data }, docId))
  const id = documents[0]!.documentId
  const rows = () => db('document_enrichments').where({ document_id: id })
  const row = async () => (await rows().first())!
  const queue = { queueId: enrichment.id, workspaceId: routes.workspaceId }
  /** Makes the next try now. @returns how it has ended, as the row says */
  const tryOnce = async (run = enrich) => {
    await db('side_queues').delete()
    await rows().where({ status: 'pending' }).update({ next_try_at: '-infinity' })
    await run(queue, never)
    return outcomeOf(await row())
  }
  /** The time of the enrichment is over. */
  const expire = () => rows().update({ waits_until: db.raw('least(waits_until, now())'), ends_at: db.fn.now() })
  return { ...routes, id, enrichment, messages, rows, row, queue, tryOnce, expire }
}

const call = (path: string, ...fields: object[]) => ({ kind: 'http', name: 'order', path, fields })
const value = { name: 'value', path: '$.value' }

test('values are escaped for where they go, and only the named fields are kept, in one form', async () => {
  const order = call("/Orders('{doc_id}')", { name: 'customer', path: '$.d.Customer' }, { name: 'net', path: '$.d.Net', type: 'number' })
  const document = await receive([order], { docId: "O'Neil / 1", settings: { path_template: '{meta.net}/{doc_id}/{comp_id}' } })
  // Its deliveries are not begun before the end of the wait.
  expect(document.messages).toEqual([])
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
  ['an answer that is too large', call('/huge', value), 'failed', 'exceeds 2097152 bytes'],
  ['an answer that is nested too deeply', call('/deep', { name: 'value', path: '$..value' }), 'incomplete', 'nested too deeply'],
  ['an answer in another character set', call('/latin1', value), 'incomplete', 'is not in UTF-8'],
  ['a login page', call('/login', value), 'incomplete', 'is no JSON'],
  ['a redirect', call('/moved', value), 'failed', 'answered 302'],
  ['an unknown entity', call('/unknown', value), 'failed', 'answered 404'],
  ['an object in place of a value', call('/object', value), 'incomplete', 'is not a text'],
  ['a function that the workspace does not allow', { kind: 'link' }, 'failed', 'no system to call'],
])('%s gives no field, and says so', async (_, step, status, error) => {
  const document = await receive([step])
  const outcome = await document.tryOnce()
  expect(outcome).toMatchObject({ status: 'pending', error: expect.stringContaining(error) })
  // The delay has jitter.
  expect(outcome.delayMs).toBeGreaterThanOrEqual(1_000)
  expect(outcome.delayMs).toBeLessThanOrEqual(1_250)
  const { fields, steps } = await document.row()
  expect({ fields, steps }).toMatchObject({ fields: {}, steps: [{ status, error: expect.stringContaining(error) }] })
  expect(JSON.stringify(steps)).not.toContain('canary-odata')
})

test.each([
  ['partial', [call("/Orders('{doc_id}')", { name: 'customer', path: '$.d.Customer' }), call('/unknown', value)]],
  ['failed', [call('/unknown', value)]],
])('a try whose answer was lost asks nobody again once the enrichment is %s', async (status, steps) => {
  const document = await receive(
    steps.map((step, index) => ({ ...step, name: `step${index}` })),
    { docId: "O'Neil / 1" },
  )
  await document.expire()
  expect(await document.tryOnce()).toEqual({ status })
  const [calls, row] = [odata.arrivals.length, await document.row()]
  expect(await document.tryOnce()).toEqual({ status })
  expect([odata.arrivals.length, await document.row()]).toEqual([calls, row])
})

test.each(['\ud83d', '\0', 'no\u001b[2J\n\nWhat to do: \u202eexe'])(
  'a token server that says %j does not keep an enrichment from its tries',
  async (said) => {
    await using authority = await createAuthority()
    const json = { error: said, error_description: said }
    const double = await startDouble(await authority.issue('IP:127.0.0.1'), async () => ({ status: 400, json }))
    const token = { token_url: `https://127.0.0.1:${double.port}/token`, client_id: 'relay', client_secret: 'canary-secret' }
    const document = await receive([call('/order', value)], { credentials: { ...token, token_ca_certificate: authority.certificate } })
    const outcome = await document.tryOnce()
    expect(outcome).toMatchObject({ status: 'pending', error: expect.stringContaining('issued no token') })
    const row = await document.row()
    expect(row).toMatchObject({ attempts: 1, status: 'pending', steps: [{ status: 'failed' }] })
    expect(wrongInside([outcome, row.steps])).toEqual([])
    await double.stop()
  },
)

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
  await document.expire()
  expect(await document.tryOnce()).toEqual({ status: 'partial' })
})

test('optional fields say why they are missing, beside required ones and alone', async () => {
  const optional = [
    { name: 'empty', path: '$.d.Empty', optional: true },
    { name: 'long', path: '$.d.Long', optional: true },
    { name: 'day', path: '$.d.Net', type: 'date', optional: true },
    { name: 'object', path: '$.d', optional: true },
    { name: 'matched', path: "$.d[?match(@, '[0-9]{9}')]", optional: true },
    { name: 'customer', path: '$.d.Customer', optional: true },
  ]
  const why =
    'empty is empty; long has more than 200 characters; day is no date; object is not a text, a number or a truth value; ' +
    'matched is not in the answer'
  const path = "/Orders('{doc_id}')"
  const alone = await receive([call(path, ...optional)], { docId: "O'Neil / 1" })
  expect(await alone.tryOnce()).toEqual({ status: 'complete' })
  expect((await alone.row()).steps).toMatchObject([{ status: 'done', error: why }])
  const beside = await receive([call(path, ...optional, { name: 'city', path: '$.d.City' })], { docId: "O'Neil / 1" })
  expect(await beside.tryOnce()).toMatchObject({ status: 'pending', error: expect.stringContaining('city is not in the answer') })
  expect((await beside.row()).steps).toMatchObject([{ status: 'incomplete', error: `city is not in the answer; ${why}` }])
})

test('a value cannot lead a call elsewhere', async () => {
  const document = await receive([call('/a/{doc_id}/b', value)], { docId: '..' })
  const calls = odata.arrivals.length
  await document.tryOnce()
  expect(odata.arrivals).toHaveLength(calls)
  expect((await document.row()).steps[0]).toMatchObject({ status: 'failed', error: 'a value would lead the request to another path' })
})

test('deliveries begin at the end of the wait, or when the data is complete, and other documents of the workspace do not wait for them', async () => {
  const begin = async (id: string) => (await db('deliveries').where({ document_id: id }).first('begin_at', 'next_attempt_at'))!
  const waiting = await receive([call('/unknown', value)])
  const { waits_until: waitsUntil } = await waiting.row()
  expect(await begin(waiting.id)).toEqual({ begin_at: waitsUntil, next_attempt_at: waitsUntil })
  await waiting.tryOnce()
  expect(await begin(waiting.id)).toEqual({ begin_at: waitsUntil, next_attempt_at: waitsUntil })
  const { rows } = await db.raw(`select ${beginsAtOnce(':id')} as "atOnce"`, { id: waiting.workspaceId })
  expect(rows).toEqual([{ atOnce: true }])
  // The end, without data.
  await waiting.rows().update({ ends_at: db.fn.now() })
  expect(await waiting.tryOnce()).toEqual({ status: 'failed' })
  expect((await begin(waiting.id)).begin_at.getTime()).toBeLessThan(waitsUntil.getTime() - 30_000)

  const found = await receive([call("/Orders('{doc_id}')", { name: 'customer', path: '$.d.Customer' })], { docId: "O'Neil / 1" })
  await found.tryOnce()
  const due = await createToBegin(db).findOldest([{ workspaceId: found.workspaceId, beginAs: 'document', documents: 1 }], [])
  expect(due).toMatchObject([{ documentId: found.id, beginAs: 'document' }])
})

test('an append postpones the next revision, whatever the enrichment of the document finds', async () => {
  const document = await receive([call("/Orders('{doc_id}')", { name: 'customer', path: '$.d.Customer' })], { docId: "O'Neil / 1" })
  const later = new Date(Date.now() + 600_000)
  await db('deliveries').where({ document_id: document.id }).update({ begin_at: later })
  await document.tryOnce()
  expect((await db('deliveries').where({ document_id: document.id }).first('begin_at'))!.begin_at).toEqual(later)
})

test('many documents wait for a system that hangs: ten calls at a time, and after five failures one call after a pause', async () => {
  await using slow = await startHttpTarget()
  const held: ServerResponse[] = []
  slow.answerWith((_, response) => void held.push(response))
  const { repositoryId: _, ...first } = await receive([call('/slow', value)], { url: slow.origin })
  await copyWaitingDocument(
    db,
    { id: first.id, workspaceId: first.workspaceId, enrichmentId: first.enrichment.id },
    { copies: 999, waitsUntil: 'now()' },
  )
  const dispatch = createFindEnrichments(db)
  expect(await dispatch()).toMatchObject([{ queueId: first.enrichment.id, name: 'Orders' }])
  // It is being started.
  expect(await dispatch()).toEqual([])
  const run = () => enrich(first.queue, never)
  const running = run()
  await until('the calls are made', () => held.length === 10)
  await delay(300)
  expect(held).toHaveLength(10)
  for (const response of held.splice(0)) response.writeHead(503).end()
  const error = 'order: the system answered 503 Service Unavailable'
  expect(await running).toEqual({ status: 'retrying', error })
  expect(slow.arrivals).toHaveLength(10)
  const gate = async () => (await db('side_queues').first('failures', db.raw('extract(epoch from opens_at - now())::float8 as "opensIn"')))!
  expect((await gate()).failures).toBe(5)
  expect((await gate()).opensIn).toBeLessThanOrEqual(5)
  // Nothing is due, so a run that comes all the same makes no call.
  expect(await dispatch()).toEqual([])
  expect(await run()).toEqual({ status: 'retrying', error })
  expect(slow.arrivals).toHaveLength(10)

  // A try fails: the pause doubles.
  const open = () => db('side_queues').update({ opens_at: db.fn.now() })
  await open()
  expect(await dispatch()).toHaveLength(1)
  slow.answerWith((__, response) => void response.writeHead(503).end())
  expect(await run()).toMatchObject({ status: 'retrying' })
  expect(slow.arrivals).toHaveLength(11)
  expect((await gate()).failures).toBe(6)
  expect((await gate()).opensIn).toBeGreaterThan(5)
  // Most of the latest documents are never tried.
  const isFailing = async () => (await enrichmentKind.find(db, first.workspaceId, first.enrichment.id)).isFailing
  expect(await isFailing()).toBe(true)
  await db('document_enrichments')
    .where({ attempts: 0 })
    .update({ updated_at: db.raw(`now() - interval '2 minutes'`) })
  expect(await isFailing()).toBe(true)
  // Documents whose time is over end without a call.
  await db.raw(
    `update document_enrichments set ends_at = now() where document_id in ('COPY0000000000000000000900', 'COPY0000000000000000000901')`,
  )
  await open()
  await run()
  expect(slow.arrivals).toHaveLength(12)
  const over = await db('document_enrichments').where('document_id', 'like', 'COPY%90_').whereNot({ status: 'pending' })
  expect(over).toMatchObject([
    { status: 'failed', steps: [{ error: `the system was not asked, because it fails: ${error}` }] },
    { status: 'failed' },
  ])

  // The system is back: one call first, and then the others.
  slow.answerWith((__, response) => void response.end('{"value":"1"}'))
  await open()
  expect(await run()).toEqual({ status: 'idle' })
  expect(await db('side_queues')).toEqual([])
  const left = await db('document_enrichments').where({ enrichment_id: first.enrichment.id, status: 'pending' })
  expect(left.every(({ attempts }) => attempts > 0)).toBe(true)
})

test('a document in whose try the relay itself fails is postponed, and the others go on', async () => {
  const steps = [call('/unknown', value)]
  const [bad, good] = [await receive(steps), await receive(steps)]
  await db('document_enrichments').where({ document_id: good.id }).update({ enrichment_id: bad.enrichment.id })
  await db.raw(`alter table document_enrichments add constraint refused check (document_id <> '${bad.id}' or attempts = 0) not valid`)
  try {
    expect(await enrich(bad.queue, never)).toEqual({ status: 'idle' })
  } finally {
    await db.raw('alter table document_enrichments drop constraint refused')
  }
  expect((await good.row()).attempts).toBe(1)
  const { attempts, next_try_at: nextTryAt } = await bad.row()
  expect([attempts, nextTryAt.getTime() > Date.now() + 30_000]).toEqual([0, true])
})

test('an enrichment that is switched off or deleted ends its documents, whenever they are due, and their deliveries begin', async () => {
  for (const end of ['off', 'deleted'] as const) {
    const document = await receive([call('/unknown', value)])
    await document.tryOnce()
    await document.rows().update({ next_try_at: new Date(Date.now() + 10_800_000) })
    await db('side_queues').insert({
      kind: 'enrichment',
      id: document.enrichment.id,
      workspace_id: document.workspaceId,
      failures: 7,
      opens_at: new Date(Date.now() + 300_000),
    })
    const enrichments = createEnrichments(db, { outbound, keyRing, config })
    const { workspaceId, enrichment } = document
    if (end === 'off') await enrichments.update(workspaceId, enrichment.id, { isActive: false }, systemActor)
    else await enrichments.delete(workspaceId, enrichment.id, systemActor)
    expect(await createFindEnrichments(db)()).toMatchObject([{ queueId: enrichment.id }])
    const calls = odata.arrivals.length
    expect(await enrich(document.queue, never)).toEqual({ status: 'idle' })
    expect(odata.arrivals).toHaveLength(calls)
    expect(await document.row()).toMatchObject({
      status: 'failed',
      steps: [{ name: 'enrichment', status: 'failed', error: 'the enrichment was deleted, or is inactive' }],
    })
    const [delivery] = await db('deliveries').where({ document_id: document.id })
    expect(delivery.begin_at.getTime()).toBeLessThan((await document.row()).waits_until.getTime())
    expect(await createFindEnrichments(db)()).toEqual([])
  }
})

test('a workspace gets four enrichments at a time, and another one its own', async () => {
  const steps = [call('/unknown', value)]
  const documents: Awaited<ReturnType<typeof receive>>[] = []
  for (let number = 0; number < 7; number += 1) documents.push(await receive(steps))
  const { workspaceId } = documents[0]!
  await db('document_enrichments').whereNot({ document_id: documents[6]!.id }).update({ workspace_id: workspaceId })
  await db('enrichments').whereNot({ id: documents[6]!.enrichment.id }).update({ workspace_id: workspaceId })
  const dispatch = createFindEnrichments(db)
  const idOf = (number: number) => documents[number]!.enrichment.id
  const claimed = async () => (await dispatch()).map(({ queueId }) => queueId).toSorted()
  expect(await claimed()).toEqual([idOf(0), idOf(1), idOf(2), idOf(3), idOf(6)])
  expect(await claimed()).toEqual([])
  // The first run ends with more to do, and another one with nothing: those that have waited come first.
  const short = createEnrich(deps, { lingerMs: 0, runMs: 0, drainMs: 600_000 })
  expect(await short({ queueId: idOf(0), workspaceId }, never)).toEqual({ status: 'more' })
  expect(await claimed()).toEqual([idOf(4)])
  await enrich({ queueId: idOf(1), workspaceId }, never)
  expect(await claimed()).toEqual([idOf(5)])
  await enrich({ queueId: idOf(2), workspaceId }, never)
  expect(await claimed()).toEqual([idOf(0)])
})

test('a run whose worker is lost leaves its documents due', async () => {
  await using slow = await startHttpTarget()
  slow.answerWith(() => {})
  const document = await receive([call('/slow', value)], { url: slow.origin })
  const lost = new AbortController()
  const running = enrich(document.queue, lost.signal)
  await until('the call is made', () => slow.arrivals.length === 1)
  lost.abort(new Error('the worker stops'))
  await expect(running).rejects.toThrow('the worker stops')
  expect((await document.row()).attempts).toBe(0)
  slow.answerWith((_, response) => void response.end('{"value":"1"}'))
  expect(await enrich(document.queue, never)).toEqual({ status: 'idle' })
  expect(await document.row()).toMatchObject({ status: 'complete', attempts: 1 })
})

test('an erased document has no enrichment, and one that is asked for again is tried before the others', async () => {
  const document = await receive([call('/unknown', value)])
  await document.tryOnce()
  await document.rows().update({ next_try_at: new Date(Date.now() + 10_800_000) })
  await createRunAgain(db)({ workspaceId: document.workspaceId, documentId: document.id, actor: systemActor })
  expect(await createFindEnrichments(db)()).toHaveLength(1)
  await enrich(document.queue, never)
  expect((await document.row()).attempts).toBe(2)
  await createErase(db)(document.workspaceId, document.id, systemActor)
  expect(await enrich(document.queue, never)).toEqual({ status: 'idle' })
  expect(await document.row()).toBeUndefined()
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

  const withSeller = (seller: string) => ubl.replace(/(<cbc:RegistrationName>)[^<]*/, `$1${seller}`)
  const encrypted = pdfWith(Buffer.from(cii), {
    trailer: `/ID [<00><00>] /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 /O <${'11'.repeat(32)}> /U <${'22'.repeat(32)}> >>`,
  })

  test.each<[string, string | Buffer, string, number]>([
    ['another document', 'hello', 'the document is neither XML nor a PDF', 0],
    ['another XML', '<order><ID>1</ID></order>', 'the XML is no invoice of a known format: its root is the element order', 0],
    ['a PDF without an invoice', pdfWith(Buffer.from(cii), { names: '' }), 'the PDF contains no electronic invoice', 0],
    ['an invoice that is only named', '<CrossIndustryInvoice/>', 'the invoice has no number, seller, total, currency and profile', 0],
    ['an encrypted PDF', encrypted, 'the PDF is encrypted', 0],
    ['a damaged PDF', pdfWith(Buffer.from(cii)).subarray(0, 250), 'the PDF is damaged, and contains no electronic invoice', 0],
    ['a PDF of noise', `%PDF-1.7\n${'x'.repeat(2_000)}`, 'the PDF cannot be read: ', 0],
    ['a document type', `<!DOCTYPE i>${ubl}`, 'the XML has a document type declaration', 0],
    ['XML that ends early', ubl.slice(0, -20), 'the XML cannot be read', 0],
    [
      'XML that is too large',
      pdfWith(deflateSync(Buffer.alloc(15_000_001, '<')), { filter: '/Filter /FlateDecode' }),
      'the XML has more than 15000000 bytes',
      0,
    ],
    ['a document that is too large', Buffer.alloc(30_000_001, '<'), 'the document has more than 30000000 bytes', 0],
    ['a long number', ubl.replace('RE-4711', 'x'.repeat(501)), 'invoice_number has more than 500 characters', 4],
    ['a seller in another character set', Buffer.from(withSeller('Müller'), 'latin1'), 'seller is not in UTF-8', 4],
    ['a total that is no number', ubl.replace('>1190.00<', '>1.190,00<'), 'total is no number', 4],
    [
      'an invoice without a currency and a total',
      ubl.replace(/<cbc:DocumentCurrencyCode>.*?<\/cbc:DocumentCurrencyCode>/, '').replace('>1190.00<', '><'),
      'total is not in the answer; currency is not in the answer',
      3,
    ],
  ])('says why fields are missing: %s', async (_, data, error, found) => {
    const document = await receive([step], { data })
    expect(await document.tryOnce()).toEqual({ status: 'complete' })
    const { fields, steps } = await document.row()
    expect(steps).toMatchObject([{ name: 'e_invoice', status: 'done', error: expect.stringContaining(error) }])
    expect(steps[0].error.length).toBeLessThan(500)
    expect(Object.keys(fields)).toHaveLength(found)
  })

  test('has a long seller, whose end is cut off, and is found by its beginning', async () => {
    const document = await receive([step], { data: withSeller(`Lang ${'😀'.repeat(20_000)}`) })
    expect(await document.tryOnce()).toEqual({ status: 'complete' })
    expect((await document.row()).fields.seller).toHaveLength(499)
  })

  test('with all fields has nothing to say', async () => {
    const document = await receive([step], { data: ubl })
    await document.tryOnce()
    expect((await document.row()).steps).toMatchObject([{ status: 'done', error: null }])
  })

  test('of a batch behind slow work is not begun, and read later', async () => {
    const own = createThreads(1)
    const gate = createGate()
    try {
      const documents = await Promise.all(Array.from({ length: 20 }, () => receive([step], { data: ubl })))
      const slow = documents.slice(0, 2).map(({ workspaceId }) => own.run(blockTask, workspaceId, gate.input))
      await until('the slow work has begun', () => gate.begun() === 1)
      const read = enrichWith({ runInProcess: own.run, waitMaxMs: 100, readMaxMs: 60_000 })
      // While nothing else gets a thread, no document gets a verdict.
      await Promise.all(documents.map(({ queue }) => read(queue, never)))
      for (const each of await Promise.all(documents.map(async ({ row }) => outcomeOf(await row())))) {
        expect(each).toMatchObject({ status: 'pending', error: 'e_invoice: not begun: no thread became free within 0.1 s' })
        expect(each.delayMs).toBeLessThanOrEqual(40_000)
      }
      for (const each of documents)
        expect(await each.row()).toMatchObject({ fields: {}, status: 'pending', steps: [{ status: 'waiting' }] })
      gate.open()
      await Promise.all(slow)
      const patient = enrichWith({ runInProcess: own.run, readMaxMs: 60_000, waitMaxMs: 100_000 })
      expect(await Promise.all(documents.map(({ tryOnce }) => tryOnce(patient)))).toEqual(documents.map(() => ({ status: 'complete' })))
      for (const each of documents) expect((await each.row()).fields).toMatchObject({ invoice_number: 'RE-4711', total: '1190.00' })
    } finally {
      gate.open()
      await own.close()
    }
  })

  test('that takes too long is tried again, before that is a verdict', async () => {
    const own = createThreads(1)
    try {
      // To the caller, the reading seems to hang.
      const runInProcess: RunTask = async (_, workspace, __, signal, limits) =>
        (await own.run(blockTask, workspace, createGate().input, signal, limits)) as never
      const hasty = enrichWith({ runInProcess, readMaxMs: 20 })
      const [document, other] = [await receive([step], { data: ubl }), await receive([step], { data: ubl })]
      const error = 'the document takes too long to read'
      for (let attempts = 1; attempts <= 3; attempts += 1) {
        expect(await document.tryOnce(hasty)).toMatchObject({ status: 'pending', error: `e_invoice: ${error}` })
        expect(await document.row()).toMatchObject({ attempts, steps: [{ status: 'failed', error }] })
        await other.tryOnce(hasty)
      }
      expect(await document.tryOnce(hasty)).toEqual({ status: 'complete' })
      expect((await document.row()).steps).toMatchObject([{ status: 'done', error }])
      // The machine has become faster.
      expect(await other.tryOnce()).toEqual({ status: 'complete' })
      expect(await other.row()).toMatchObject({ fields: { invoice_number: 'RE-4711' }, steps: [{ error: null }] })
    } finally {
      await own.close()
    }
  })

  test('whose content cannot be read, or whose reading is broken off, is tried again', async () => {
    const document = await receive([step], { data: ubl })
    const broken = {
      ...deps.contents.postgres!,
      read: () =>
        new Readable({
          read() {
            this.destroy(new Error('the disk is gone'))
          },
        }),
    }
    const without = enrichWith({ contents: { postgres: broken } })
    expect(await document.tryOnce(without)).toMatchObject({ status: 'pending' })
    expect((await document.row()).steps).toMatchObject([
      { status: 'failed', error: 'the stored document could not be read: the disk is gone' },
    ])

    const own = createThreads(1)
    const gate = createGate()
    const runInProcess: RunTask = async (_, workspace, __, signal, limits) =>
      (await own.run(blockTask, workspace, gate.input, signal, limits)) as never
    const stopped = document.tryOnce(enrichWith({ runInProcess }))
    await until('the reading has begun', () => gate.begun() === 1)
    // Ends like a process.
    await own.close()
    expect(await stopped).toMatchObject({ status: 'pending' })
    expect((await document.row()).steps).toMatchObject([{ status: 'failed', error: expect.stringContaining('the document was not read') }])
    expect(await document.tryOnce()).toEqual({ status: 'complete' })
  })

  test('that expands to gigabytes ends the process that reads it and nothing else', async () => {
    const compressed = async (source: Iterable<Buffer>) => buffer(Readable.from(source).pipe(createDeflate({ level: 1 })))
    const zeros = Buffer.alloc(64_000_000)
    const once = await compressed(Array.from({ length: 32 }, () => zeros))
    const data = pdfWith(await compressed([once]), { filter: '/Filter [/FlateDecode /FlateDecode]' })
    expect(data.length).toBeLessThan(1_000_000)
    const { workspaceId, id } = await receive([step], { data })
    // A busy machine would reach the usual limit of time first.
    const read = createReadEInvoice({ ...deps, readMaxMs: 110_000 })
    expect(JSON.parse(await read(workspaceId, id, never))).toEqual({ problem: 'the document takes too much memory to read' })
    const next = await receive([step], { data: ubl })
    expect(await next.tryOnce()).toEqual({ status: 'complete' })
    expect((await next.row()).fields).toMatchObject({ invoice_number: 'RE-4711' })
  })
})

test('a document of a repository without an enrichment has no row, and begins at once', async () => {
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const { documents, messages } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
  expect(messages).toHaveLength(1)
  expect(await db('document_enrichments').where({ document_id: documents[0]!.documentId })).toEqual([])
})
