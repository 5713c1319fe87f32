import { createReceive } from '../../src/archive/receive.ts'
import { insertDocument } from '../api/insert-document.ts'
import { receivedDocument, testConfig } from '../support/factories.ts'
import { startRfcSystem, result } from '../support/rfc-system.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { startODataSystem } from './odata-system.ts'

// Doubles built from the documented interfaces. No real source system was available.
const { api, db, acme, workspace } = share(await startScene())
const long = 'x'.repeat(30_000)
const odata = share(
  await startODataSystem({
    "/A_Supplier('17300001')": { body: { d: { SupplierName: 'Acme', Note: long } } },
    '/echo': { body: { d: { Note: 'the password is canary-odata' } } },
  }),
)
const system = share(
  await startRfcSystem({
    ARCHIV_GET_CONNECTIONS: (parameters) => {
      const row = `<item><SAP_OBJECT>RMRP</SAP_OBJECT><OBJECT_ID>17300001</OBJECT_ID><AR_OBJECT>canary-rfc</AR_OBJECT></item>`
      return result('ARCHIV_GET_CONNECTIONS', parameters, '<COUNT>1</COUNT>', { CONNECTIONS: row })
    },
  }),
)
const rfc = { url: system.url, client: '100', credentials: system.logon, allowed_functions: ['ARCHIV_GET_CONNECTIONS'] }

const createEnrichment = async (steps: object[], tenant: Pick<typeof acme, 'call'> = acme) => {
  const body = { name: 'Invoices', repository_ids: [], http: { url: odata.origin }, credentials: odata.credentials, steps }
  return (await tenant.call('POST', '/enrichments', body)).json.data.id as string
}
const createDocument = async (tenant = acme) => {
  const repoId = `T${Math.random().toString(36).slice(2, 8)}`
  const repositoryId = (await tenant.call('POST', '/repositories', { repo_id: repoId, name: 'A' })).json.data.id
  return insertDocument(db, { workspaceId: tenant.id, repositoryId, repoId, docId: 'DOC1' })
}
const supplier = {
  kind: 'http',
  name: 'vendor',
  path: "/A_Supplier('{erp_object_id}')",
  fields: [
    { name: 'vendor_name', path: '$.d.SupplierName' },
    { name: 'city', path: '$.d.CityName' },
  ],
}

test('a try shows what was sent, what came back and what each path finds, and stores nothing', async () => {
  await acme.call('PATCH', '/settings', { rfc })
  const document_id = await createDocument()
  const before = await acme.call('GET', `/documents/${document_id}`)
  const id = await createEnrichment([
    { kind: 'link' },
    supplier,
    { ...supplier, name: 'next', path: '/{city}', fields: [{ name: 'x', path: '$' }] },
  ])
  const { status, json } = await acme.call('POST', `/enrichments/${id}/try`, { document_id })
  expect(status).toBe(200)
  const [link, vendor, next] = json.data.steps
  expect(link).toMatchObject({
    name: 'link',
    status: 'done',
    error: null,
    request: { kind: 'rfc', function: 'ARCHIV_GET_CONNECTIONS', imports: { ARC_DOC_ID: 'DOC1' } },
    answer_truncated: false,
  })
  expect(link.answer).toContain('"OBJECT_ID":"17300001"')
  expect(link.answer).not.toContain('canary-rfc')
  expect(vendor).toMatchObject({
    status: 'incomplete',
    error: 'city is not in the answer',
    request: { kind: 'http', method: 'GET', url: `${odata.origin}/A_Supplier('17300001')` },
    answer_truncated: true,
    fields: [
      { name: 'vendor_name', value: 'Acme', problem: null },
      { name: 'city', value: null, problem: 'is not in the answer' },
    ],
  })
  expect(vendor.answer).toHaveLength(20_000)
  expect(next).toMatchObject({ status: 'waiting', error: 'city is not known yet', request: null, answer: null, fields: [] })
  expect((await acme.call('GET', `/documents/${document_id}`)).json).toEqual(before.json)
})

test('a try shows no credentials, and a failure without an answer', async () => {
  const document_id = await createDocument()
  const echo = { kind: 'http', name: 'echo', path: '/echo', fields: [{ name: 'note', path: '$.d.Note' }] }
  const id = await createEnrichment([echo, { ...echo, name: 'unknown', path: '/unknown', fields: [{ name: 'x', path: '$' }] }])
  const { json, text } = await acme.call('POST', `/enrichments/${id}/try`, { document_id })
  expect(text).not.toContain('canary-odata')
  expect(json.data.steps).toMatchObject([
    { status: 'done', answer: expect.stringContaining('[REDACTED]') },
    { status: 'failed', error: 'the system answered 404 Not Found', request: { url: `${odata.origin}/unknown` }, answer: null },
  ])
})

test('a try, and the document afterwards, say why optional fields have no value', async () => {
  const own = await workspace()
  const { documents } = await createReceive(db, testConfig())(await receivedDocument(own, { data: 'hello' }))
  const document_id = documents[0]!.documentId
  const optional = { kind: 'http', name: 'echo', path: '/echo', fields: [{ name: 'city', path: '$.d.City', optional: true }] }
  const id = await createEnrichment([{ kind: 'e_invoice' }, optional], own)
  const { json } = await own.call('POST', `/enrichments/${id}/try`, { document_id })
  const noInvoice = 'the document is neither XML nor a PDF'
  const steps = [
    { name: 'e_invoice', status: 'done', error: noInvoice },
    { name: 'echo', status: 'done', error: 'city is not in the answer' },
  ]
  expect(json.data.steps).toMatchObject(steps)
  const fields = ['invoice_number', 'seller', 'total', 'currency', 'profile'].map((name) => ({ name, value: null, problem: noInvoice }))
  expect(json.data.steps.map((step: { fields: unknown }) => step.fields)).toEqual([
    fields,
    [{ name: 'city', value: null, problem: 'is not in the answer' }],
  ])
  const stored = json.data.steps.map(({ name, status, error, at }: Record<string, string>) => ({ name, status, error, at }))
  await db('document_enrichments').insert({
    document_id,
    workspace_id: own.workspaceId,
    enrichment_id: id,
    status: 'complete',
    steps: JSON.stringify(stored),
    waits_until: new Date(),
    ends_at: new Date(),
  })
  const read = await own.call('GET', `/documents/${document_id}`)
  expect(read.json.data.attributes.enrichments).toMatchObject([{ status: 'complete', steps }])
})

test('a try takes a document of the workspace, a key of level member, and functions that the workspace allows', async () => {
  const document_id = await createDocument()
  const id = await createEnrichment([{ kind: 'link' }])
  const viewer = await acme.call('POST', `/enrichments/${id}/try`, { document_id }, { key: acme.keys.viewer })
  expect(viewer.status).toBe(403)
  const foreign = await createDocument(await api.tenant('acme/elsewhere'))
  const refused = await acme.call('POST', `/enrichments/${id}/try`, { document_id: foreign })
  expect(refused.json.error).toMatchObject({ code: 'validation_failed', details: [{ path: 'document_id' }] })
  await acme.call('PATCH', '/settings', { rfc: { ...rfc, allowed_functions: ['RFC_PING'] } })
  const { json } = await acme.call('POST', `/enrichments/${id}/try`, { document_id })
  expect(json.data.steps).toMatchObject([{ status: 'failed', error: expect.stringContaining('is not allowed') }])
})

test('business data is asked for again only if an enrichment serves the repository, and the content is kept', async () => {
  const id = await createDocument()
  const refused = await acme.call('POST', `/documents/${id}/enrich`)
  expect(refused.json.error).toMatchObject({ code: 'conflict', message: 'The repository of the document has no active enrichment.' })
  const { repository_id } = await db('documents').where({ id }).first('repository_id')
  const body = { name: 'Invoices', repository_ids: [repository_id], steps: [{ kind: 'link' }] }
  await acme.call('POST', '/enrichments', body)
  const asked = await acme.call('POST', `/documents/${id}/enrich`)
  expect(asked.status).toBe(202)
  expect(asked.json.data.attributes.enrichments).toMatchObject([{ status: 'pending', attempts: 0, steps: [] }])
  await acme.call('DELETE', `/documents/${id}/content`)
  expect((await acme.call('POST', `/documents/${id}/enrich`)).status).toBe(409)
})
