import { startHttpTarget } from '../support/http-target.ts'
import { startRelay, until, type Running } from '../support/relay.ts'
import { fault, result, startRfcSystem } from '../support/rfc-system.ts'
import { startS3Server } from '../support/s3-server.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal } from '../support/temporal.ts'
import { startODataSystem } from './odata-system.ts'

// These tests run against doubles built from the documented interfaces. No real source system was available.
const env = share(await createTimeSkippingTemporal())
const relay = share(await startRelay(env))
const s3 = share(await startS3Server())
const target = share(await startHttpTarget())
const odata = share(
  await startODataSystem({
    "/sap/A_SupplierInvoice(SupplierInvoice='5105600101',FiscalYear='2026')": {
      body: { d: { InvoicingParty: '17300001', InvoiceGrossAmount: '1190.00', DocumentDate: '/Date(1772409600000)/' } },
    },
    "/sap/A_Supplier('17300001')": { body: { d: { SupplierName: 'Müller & Söhne / GmbH' } } },
  }),
)

/** Returns the documents that were sent, without messages about late data. */
const documentsSent = () => target.arrivals.filter(({ headers }) => headers['x-relay-event-type'] === 'document')

/** The documents that the system has linked to an invoice. */
const linked = new Set<string>()
let isAway = false
const system = share(
  await startRfcSystem({
    ARCHIV_GET_CONNECTIONS: (parameters) => {
      if (isAway) return { status: 503, contentType: 'text/html', body: '<html>The system is being upgraded</html>' }
      if (!linked.has(String(parameters['ARC_DOC_ID']))) return fault('NOTHING_FOUND')
      const row = '<item><SAP_OBJECT>RMRP</SAP_OBJECT><OBJECT_ID>51056001012026</OBJECT_ID><AR_OBJECT>MMILOGINV</AR_OBJECT></item>'
      return result('ARCHIV_GET_CONNECTIONS', parameters, '<COUNT>1</COUNT>', { CONNECTIONS: row })
    },
  }),
)

const steps = [
  { kind: 'link' },
  {
    kind: 'http',
    name: 'invoice',
    path: "/A_SupplierInvoice(SupplierInvoice='{erp_object_id[0:10]}',FiscalYear='{erp_object_id[10:14]}')?$format=json",
    fields: [
      { name: 'vendor', path: '$.d.InvoicingParty' },
      { name: 'total', path: '$.d.InvoiceGrossAmount', type: 'number' },
      { name: 'document_date', path: '$.d.DocumentDate', type: 'date' },
    ],
  },
  { kind: 'http', name: 'vendor', path: "/A_Supplier('{vendor}')", fields: [{ name: 'vendor_name', path: '$.d.SupplierName' }] },
]

/** Creates a workspace whose repository has an enrichment, with a webhook and a bucket. */
const createScene = async ({ createRoutes }: Running, enrichment: object) => {
  const { endpoint, bucket, accessKeyId, secretAccessKey } = s3
  const routes = await createRoutes(
    [
      { name: 'dms', config: { url: `${target.origin}/in`, format: 'multipart' } },
      {
        name: 'bucket',
        connector: 'objstore',
        config: { endpoint, bucket, region: 'us-east-1' },
        credentials: { access_key_id: accessKeyId, secret_access_key: secretAccessKey },
      },
    ],
    { settings: { path_template: '{meta.vendor_name}/{erp_object_id}/{doc_id}-{comp_id}' } },
  )
  const { call, repositoryId } = routes
  const rfc = { url: system.url, client: '100', credentials: system.logon, allowed_functions: ['ARCHIV_GET_CONNECTIONS'] }
  expect((await call('PATCH', '/settings', { rfc })).status).toBe(200)
  const http = { url: `${odata.origin}/sap` }
  const body = { name: 'Invoices', repository_ids: [repositoryId], http, credentials: odata.credentials, steps, ...enrichment }
  expect((await call('POST', '/enrichments', body)).status).toBe(201)
  return routes
}

const readDocument = async ({ call, id }: Awaited<ReturnType<Awaited<ReturnType<typeof createScene>>['receive']>>) =>
  (await call('GET', `/documents/${id}`)).json.data.attributes

test('a document is delivered with the business data of an invoice that is linked after it was stored', async () => {
  await relay.run(async (running) => {
    const routes = await createScene(running, { wait_seconds: 60 })
    const arrived = documentsSent().length
    const document = await routes.receive('hello', 'LINKEDLATER')
    // Time is not skipped while nothing is awaited, so the first tries find no link.
    await until(env, 'the first try has ended', async () => (await readDocument(document)).enrichments[0].attempts > 0, 500)
    const before = await readDocument(document)
    expect(before).toMatchObject({ fields: {}, enrichments: [{ status: 'pending' }], metadata: { erp_object_id: null } })
    expect(before.enrichments[0].steps).toMatchObject([
      { name: 'link', status: 'failed', error: expect.stringContaining('NOTHING_FOUND') },
      { name: 'invoice', status: 'waiting', error: 'erp_object_id is not known yet' },
      { name: 'vendor', status: 'waiting' },
    ])
    expect(documentsSent()).toHaveLength(arrived)
    linked.add('LINKEDLATER')
    await until(env, 'the document is delivered', async () => (await document.status()) === 'delivered', 5_000)
    const [started] = (await document.handle().fetchHistory()).events!
    const [input] = started!.workflowExecutionStartedEventAttributes!.input!.payloads!
    expect(JSON.parse(Buffer.from(input!.data!).toString())).toMatchObject({ businessObject: 'RMRP/51056001012026' })

    const fields = { vendor: '17300001', total: '1190.00', document_date: '2026-03-02', vendor_name: 'Müller & Söhne / GmbH' }
    const after = await readDocument(document)
    expect(after).toMatchObject({
      status: 'delivered',
      fields,
      metadata: { erp_object_type: 'RMRP', erp_object_id: '51056001012026', ar_object: 'MMILOGINV' },
      enrichments: [{ status: 'complete', steps: [{ status: 'done' }, { status: 'done' }, { status: 'done' }] }],
    })
    // One request carries the bytes and the data.
    expect(documentsSent()).toHaveLength(arrived + 1)
    const { headers, body } = documentsSent().at(-1)!
    expect(headers).toMatchObject({ 'x-relay-object-id': '51056001012026', 'x-relay-field-vendor': '17300001' })
    expect(decodeURIComponent(String(headers['x-relay-field-vendor-name']))).toBe('Müller & Söhne / GmbH')
    expect(body.toString()).toContain(JSON.stringify(fields).slice(1, -1).split(',')[0])
    // The slash of the name is encoded once.
    const path = `s3://${s3.bucket}/Müller & Söhne %2F GmbH/51056001012026/LINKEDLATER-data`
    expect((await document.deliveries())['bucket']).toMatchObject({ status: 'delivered', attempts: 1, path })

    for (const query of ['field=vendor_name:müller %26 söhne / gmbh', 'field=total:1190.00', 'q=1730', 'q=müller']) {
      const { json } = await routes.call('GET', `/documents/search?${query}`)
      expect(json.data.map(({ id }: { id: string }) => id)).toEqual([document.id])
    }
    expect((await routes.call('GET', '/documents/search?field=vendor_name:17300001')).json.data).toEqual([])
  })
})

test('a system that is away delays deliveries by the wait at most, and its data are stored when it is back', async () => {
  await relay.run(async (running) => {
    const routes = await createScene(running, { wait_seconds: 3, late_days: 1 })
    const arrived = documentsSent().length
    isAway = true
    const document = await routes.receive('hello', 'AWAY')
    await until(env, 'the document is delivered', async () => (await document.status()) === 'delivered', 5_000)
    expect(documentsSent()).toHaveLength(arrived + 1)
    const delivered = await readDocument(document)
    expect(delivered).toMatchObject({ fields: {}, enrichments: [{ status: 'pending' }] })
    expect(delivered.enrichments[0].steps[0]).toMatchObject({ status: 'failed' })

    isAway = false
    linked.add('AWAY')
    const isFound = async () => {
      await document.makeTryDue()
      return (await readDocument(document)).enrichments[0].status === 'complete'
    }
    await until(env, 'the data is found', isFound, 500)
    expect(await readDocument(document)).toMatchObject({ fields: { vendor: '17300001' }, enrichments: [{ status: 'complete' }] })
    // The bytes were not sent again, and the name at the target stays.
    expect(documentsSent()).toHaveLength(arrived + 1)
    expect((await document.deliveries())['bucket']).toMatchObject({ attempts: 1, path: `s3://${s3.bucket}/unknown/unknown/AWAY-data` })
  })
})

test('an enrichment that finds nothing in its time has failed, and the document is delivered', async () => {
  await relay.run(async (running) => {
    const routes = await createScene(running, { wait_seconds: 3, late_days: 0 })
    const document = await routes.receive('hello', 'NEVERLINKED')
    await until(env, 'the enrichment has ended', async () => (await readDocument(document)).enrichments[0].status !== 'pending', 500)
    await until(env, 'the document is delivered', async () => (await document.status()) === 'delivered', 500)
    const [enrichment] = (await readDocument(document)).enrichments
    expect(enrichment.status).toBe('failed')
    expect(enrichment.attempts).toBeGreaterThan(2)

    // It has been linked since.
    linked.add('NEVERLINKED')
    const arrived = documentsSent().length
    const runAgain = async () => {
      const { status: answered, json } = await routes.call('POST', `/documents/${document.id}/enrich`)
      expect({ answered, status: json.data.attributes.enrichments[0].status }).toEqual({ answered: 202, status: 'pending' })
      const complete = async () => (await readDocument(document)).enrichments[0].status === 'complete'
      await until(env, 'the enrichment is complete', complete, 100)
      return (await readDocument(document)).fields
    }
    const fields = await runAgain()
    expect(fields).toMatchObject({ vendor: '17300001', vendor_name: 'Müller & Söhne / GmbH' })
    // Another run makes the calls again, and changes nothing.
    const calls = odata.arrivals.length
    expect(await runAgain()).toEqual(fields)
    expect(odata.arrivals).toHaveLength(calls + 2)
    expect(documentsSent()).toHaveLength(arrived)
  })
})

test('a document that is erased while it waits is delivered nowhere', async () => {
  await relay.run(async (running) => {
    const routes = await createScene(running, { wait_seconds: 3 })
    const arrived = documentsSent().length
    const document = await routes.receive('hello', 'ERASED')
    await until(env, 'the first try has ended', async () => (await readDocument(document)).enrichments[0].attempts > 0, 500)
    expect((await routes.call('DELETE', `/documents/${document.id}/content`)).status).toBe(204)
    const begins = () => relay.db('deliveries').where({ document_id: document.id }).whereNotNull('begin_at')
    expect(await begins()).toEqual([])
    expect((await document.deliveries())['dms']).toMatchObject({ status: 'cancelled', attempts: 0 })
    expect(documentsSent()).toHaveLength(arrived)
  })
})
