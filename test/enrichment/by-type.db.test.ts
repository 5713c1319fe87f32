import { createDocuments } from '../../src/archive/document-list.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createInstallation } from '../../src/db/installation.ts'
import { createOnItsOwn } from '../../src/db/on-its-own.ts'
import { toCamelCase } from '../../src/domain/casing.ts'
import { createEnrich } from '../../src/enrichment/enrich.ts'
import { createEnrichments, enrichmentKind } from '../../src/enrichment/enrichments.ts'
import { createRunAgain } from '../../src/enrichment/run-again.ts'
import { newEnrichment } from '../../src/enrichment/settings.ts'
import { createReaderProcess } from '../../src/http/reader-process.ts'
import { createThreads } from '../../src/http/threads.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createWorkspaces } from '../../src/workspace/workspaces.ts'
import { createTestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { startODataSystem } from './odata-system.ts'

// A repository whose documents are of several types, and the enrichments for them.

const { db } = share(await createTestDatabase())
const config = testConfig()
const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
const threads = createThreads()
const reader = createReaderProcess()
share(disposable({}, async () => void (await Promise.all([threads.close(), reader.close(), outbound.close()]))))

const odata = share(
  await startODataSystem({
    "/Links('FI1')": { body: { type: 'BKPF', id: '100019000047112026' } },
    "/Links('MM1')": { body: { type: 'RMRP', id: '51056001012026' } },
    "/FI('100019000047112026')": { body: { vendor: '17300', reference: 'R-1' } },
    "/MM('51056001012026')": { body: { vendor: '4711', order: '4500000001' } },
    "/Orders('4500000001')": { body: { buyer: 'Meier' } },
    '/Currency': { body: { currency: 'EUR' } },
  }),
)

const run = createEnrich(
  {
    db,
    onItsOwn: createOnItsOwn().onItsOwn,
    findConnector: createConnectors().find,
    contents: createSegmentedStores(db, { postgres: createPostgresStore(db) }),
    workspaces: createWorkspaces(db),
    keyRing,
    outbound,
    installation: createInstallation(db),
    runOnThread: threads.run,
    runInProcess: reader.run,
    config,
  },
  { lingerMs: 0, runMs: 600_000 },
)

const http = (name: string, path: string, fields: string[], more: object = {}) => ({
  kind: 'http',
  name,
  path,
  fields: fields.map((each) => ({ name: each, path: `$.${each}` })),
  ...more,
})
const link = {
  kind: 'http',
  name: 'link',
  path: "/Links('{doc_id}')",
  fields: [
    { name: 'erp_object_type', path: '$.type' },
    { name: 'erp_object_id', path: '$.id' },
  ],
}
const fi = http('fi', "/FI('{erp_object_id}')", ['vendor', 'reference'], { when: { erp_object_type: ['BKPF'] } })
const mm = http('mm', "/MM('{erp_object_id}')", ['vendor', 'order'], { when: { erp_object_type: ['RMRP'] } })

/** Receives a document whose repository has these enrichments. */
const receive = async (docId: string, enrichments: { steps: object[]; [setting: string]: unknown }[], metadata: object = {}) => {
  const routes = await createRoutes(db, [{ name: 'archive' }], { settings: { path_template: '{meta.vendor}/{doc_id}-{comp_id}' } })
  const ids: string[] = []
  for (const [index, each] of enrichments.entries()) {
    const parts = { repository_ids: [routes.repositoryId], http: { url: odata.origin }, credentials: odata.credentials }
    const body = newEnrichment.parse({ name: `Enrichment ${index}`, ...parts, ...each })
    const values = toCamelCase(newEnrichment, body)
    ids.push((await createEnrichments(db, { outbound, keyRing, config }).insert(routes.workspaceId, values, systemActor)).id)
  }
  const received = await receivedDocument(routes, { data: 'hello' }, docId)
  const { documents, messages } = await createReceive(db, config)({ ...received, metadata: { ...received.metadata, ...metadata } })
  const id = documents[0]!.documentId
  const row = async (index: number) => (await db('document_enrichments').where({ document_id: id, enrichment_id: ids[index] }).first())!
  return {
    ...routes,
    id,
    ids,
    messages,
    row,
    /** Makes the next try of an enrichment now. */
    tryOnce: async (index: number) => {
      await db('document_enrichments')
        .where({ document_id: id, enrichment_id: ids[index], status: 'pending' })
        .update({ next_try_at: '-infinity' })
      await run({ queueId: ids[index]!, workspaceId: routes.workspaceId }, new AbortController().signal)
      return (await row(index)).status as string
    },
    find: () => createDocuments(db).find(routes.workspaceId, id),
    delivery: async () => (await db('deliveries').where({ document_id: id }).first())!,
  }
}

const paths = () => odata.arrivals.map(({ url }) => decodeURIComponent(url))

beforeEach(() => {
  odata.arrivals.length = 0
})

test('one enrichment has steps for each type: those of other types are skipped, and the enrichment is complete', async () => {
  const document = await receive('FI1', [{ steps: [link, mm, { ...fi, fields: [{ name: 'reference', path: '$.reference' }] }] }])
  expect(await document.tryOnce(0)).toBe('complete')
  expect(await document.row(0)).toMatchObject({
    fields: { reference: 'R-1' },
    steps: [
      { name: 'link', status: 'done', error: null },
      { name: 'mm', status: 'skipped', error: 'erp_object_type is BKPF' },
      { name: 'fi', status: 'done', error: null },
    ],
  })
  expect(paths()).toEqual(["/Links('FI1')", "/FI('100019000047112026')"])
})

test('a step waits until it is known whether it is for the document', async () => {
  const document = await receive('NEW', [{ steps: [mm] }])
  expect(await document.tryOnce(0)).toBe('pending')
  expect((await document.row(0)).steps).toMatchObject([{ status: 'waiting', error: 'erp_object_type is not known yet' }])
  await db('documents').where({ id: document.id }).update({ erp_object_type: 'BKPF', erp_object_id: '1' })
  expect(await document.tryOnce(0)).toBe('skipped')
  expect(paths()).toEqual([])
})

const order = http('order', "/Orders('{order}')", ['buyer'])

test.each([
  ['by its condition a field that a step has not found', {}, { when: { fields: ['order'] } }, 'complete', 'order has no value'],
  ['an optional field that a step has not found', {}, {}, 'complete', 'order has no value'],
  [
    'one field that was not found, and another that is not known yet',
    {},
    { path: "/O('{ar_object}{order}')" },
    'complete',
    'order has no value',
  ],
  [
    'a field of a step that was skipped',
    { when: { erp_object_type: ['RMRP'] } },
    {},
    'skipped',
    'order has no value, because its step was skipped',
  ],
])('a step that needs %s is skipped at once', async (_, ofOptional, ofOrder, ending, error) => {
  const optional = { ...fi, fields: [{ name: 'order', path: '$.order', optional: true }], ...ofOptional }
  const document = await receive('FI1', [{ steps: [link, optional, { ...order, ...ofOrder }] }])
  await document.tryOnce(0)
  const { status, steps } = await document.row(0)
  expect({ status, last: steps[2] }).toMatchObject({ status: ending, last: { name: 'order', status: 'skipped', error } })
  expect(paths()).not.toContain("/Orders('')")
})

test('of the enrichments of a repository, those for other documents are skipped, and make no call', async () => {
  const document = await receive('MM1', [{ steps: [link, fi] }, { steps: [link, mm, order] }])
  expect(document.messages).toEqual([])
  expect(await document.tryOnce(0)).toBe('skipped')
  // The other enrichment may find more.
  const waiting = await document.delivery()
  expect(waiting.begin_at).toEqual((await document.row(1)).waits_until)
  expect(await document.tryOnce(1)).toBe('complete')
  expect(paths()).toEqual(["/Links('MM1')", "/MM('51056001012026')", "/Orders('4500000001')"])
  const found = await document.find()
  expect(found.fields).toEqual({ vendor: '4711', order: '4500000001', buyer: 'Meier' })
  expect(found.enrichments).toMatchObject([
    { enrichmentName: 'Enrichment 0', status: 'skipped', steps: [{ status: 'done' }, { status: 'skipped' }] },
    { enrichmentName: 'Enrichment 1', status: 'complete' },
  ])
  const begun = await document.delivery()
  expect(begun.begin_at.getTime()).toBeLessThan(waiting.begin_at.getTime())
  expect(begun).toMatchObject({ path: '4711/MM1-data', status: 'pending', waiting: null })
})

test('a document that no enrichment is for is delivered, and none of them fails', async () => {
  const document = await receive('FI1', [{ steps: [link, mm] }, { steps: [link, { ...mm, when: { erp_object_type: ['VBAK'] } }] }])
  const { begin_at: before } = await document.delivery()
  expect([await document.tryOnce(0), await document.tryOnce(1)]).toEqual(['skipped', 'skipped'])
  expect((await document.delivery()).begin_at.getTime()).toBeLessThan(before.getTime())
  for (const id of document.ids) {
    const { isFailing, documents } = await enrichmentKind.find(db, document.workspaceId, id)
    expect({ isFailing, documents }).toEqual({
      isFailing: false,
      documents: { complete: 0, failed: 0, partial: 0, pending: 0, skipped: 1 },
    })
  }
})

test('deliveries wait for the longest wait, and for no enrichment that has ended', async () => {
  const unknown = http('unknown', '/unknown', ['nothing'])
  const document = await receive('FI1', [
    { steps: [unknown], wait_seconds: 60 },
    { steps: [http('currency', '/Currency', ['currency'])], wait_seconds: 3_000 },
    { steps: [unknown], wait_seconds: 0 },
  ])
  const ends = await Promise.all([0, 1].map(async (index) => (await document.row(index)).waits_until as Date))
  expect((await document.delivery()).begin_at).toEqual(ends[1])
  // One without a wait holds nothing up, and its end begins nothing.
  await document.tryOnce(2)
  expect((await document.delivery()).begin_at).toEqual(ends[1])
  expect(await document.tryOnce(1)).toBe('complete')
  expect(await document.delivery()).toMatchObject({ begin_at: ends[0], next_attempt_at: ends[0] })
  await db('document_enrichments').where({ document_id: document.id }).update({ ends_at: db.fn.now() })
  expect(await document.tryOnce(0)).toBe('failed')
  expect((await document.delivery()).begin_at.getTime()).toBeLessThan(ends[0]!.getTime())
})

test('of fields with the same name, that of the oldest enrichment counts, whichever was found first', async () => {
  const steps = (path: string) => ({ steps: [http('invoice', path, ['vendor'])] })
  const document = await receive('X', [steps("/FI('100019000047112026')"), steps("/MM('51056001012026')")])
  await document.tryOnce(1)
  expect((await document.find()).fields).toEqual({ vendor: '4711' })
  expect((await document.delivery()).path).toBe('4711/X-data')
  await document.tryOnce(0)
  expect((await document.find()).fields).toEqual({ vendor: '17300' })
  expect((await document.delivery()).path).toBe('17300/X-data')
  const { items } = await createDocuments(db).search(document.workspaceId, { q: '17300', perPage: 10 })
  expect(items).toMatchObject([{ id: document.id }])
})

test('documents for others do not hide that an enrichment fails', async () => {
  const broken = { ...mm, path: '/unknown' }
  const document = await receive('MM1', [{ steps: [link, broken] }])
  await db('document_enrichments').where({ document_id: document.id }).update({ ends_at: db.fn.now(), waits_until: db.fn.now() })
  expect(await document.tryOnce(0)).toBe('partial')
  for (let index = 0; index < 6; index += 1) {
    const received = await receivedDocument(document, { data: 'hello' })
    const metadata = { ...received.metadata, erpObjectType: 'BKPF', erpObjectId: '1' }
    await createReceive(db, config)({ ...received, metadata })
  }
  await run({ queueId: document.ids[0]!, workspaceId: document.workspaceId }, new AbortController().signal)
  const { isFailing, documents } = await enrichmentKind.find(db, document.workspaceId, document.ids[0]!)
  expect({ isFailing, documents }).toMatchObject({ isFailing: true, documents: { partial: 1, skipped: 6 } })
})

test('all enrichments of the repository are asked again', async () => {
  const document = await receive('MM1', [{ steps: [link, fi] }, { steps: [link, mm] }])
  await document.tryOnce(0)
  await document.tryOnce(1)
  await createRunAgain(db)({ workspaceId: document.workspaceId, documentId: document.id, actor: systemActor })
  for (const index of [0, 1]) expect(await document.row(index)).toMatchObject({ status: 'pending', steps: [], attempts: 0 })
  expect([await document.tryOnce(0), await document.tryOnce(1)]).toEqual(['skipped', 'complete'])
  expect(await db('audit_logs').where({ event: 'document.enriched', workspace_id: document.workspaceId }).first()).toMatchObject({
    metadata: { enrichment_ids: document.ids },
  })
})

test('an enrichment that is switched off ends for its documents, and the others go on', async () => {
  const document = await receive('MM1', [{ steps: [link, fi] }, { steps: [link, mm] }])
  await db('enrichments').where({ id: document.ids[0] }).update({ is_active: false })
  expect(await document.tryOnce(0)).toBe('failed')
  expect((await document.row(1)).status).toBe('pending')
  expect((await document.delivery()).begin_at).toEqual((await document.row(1)).waits_until)
  expect(await document.tryOnce(1)).toBe('complete')
})

test('a link that is known without its document type is asked for it, if a step depends on it', async () => {
  const withArObject = { ...link, fields: [...link.fields, { name: 'ar_object', path: '$.ar', optional: true }] }
  const known = { erpObjectType: 'RMRP', erpObjectId: '51056001012026' }
  const document = await receive('MM1', [{ steps: [withArObject, { ...mm, when: { ar_object: ['MMILOGINV'] } }] }], known)
  expect(await document.tryOnce(0)).toBe('skipped')
  expect((await document.row(0)).steps).toMatchObject([{ status: 'done' }, { status: 'skipped', error: 'ar_object has no value' }])
  expect(paths()).toEqual(["/Links('MM1')"])
})
