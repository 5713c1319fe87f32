import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { GetObjectTaggingCommand } from '@aws-sdk/client-s3'
import { startHttpTarget } from '../support/http-target.ts'
import { startRelay, until, type Running } from '../support/relay.ts'
import { fault, result, startRfcSystem } from '../support/rfc-system.ts'
import { startS3Server } from '../support/s3-server.ts'
import { share } from '../support/share.ts'
import { startMailServer } from '../support/smtp-server.ts'
import { startSshd } from '../support/sshd.ts'
import { createTimeSkippingTemporal } from '../support/temporal.ts'

// The source system is a double, because none can be run for tests. The destinations are real servers.
const env = share(await createTimeSkippingTemporal())
const relay = share(await startRelay(env))
const s3 = share(await startS3Server())
const dms = share(await startHttpTarget())
const mails = share(await startMailServer({ authOptional: true }))
const sshd = share(await startSshd())

/** Passes requests on to the store and counts them. */
const store = share(await startHttpTarget())
let storeIsAway = false
store.answerWith(({ method, url, headers, body }, response) => {
  if (storeIsAway && url.includes('tagging')) {
    response.writeHead(503).end()
    return
  }
  const passed = request({ host: '127.0.0.1', port: s3.port, method, path: url, headers }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers)
    answer.pipe(response)
  })
  passed.end(body)
})
const requestsToStore = () =>
  store.arrivals.map(({ method, url }) => `${method} ${url.replace(/^\/documents\/[^?]*/, '').replace(/[?&]x-id=\w+/, '')}`)

/** The documents that the system has linked to an invoice. */
const linked = new Set<string>()
const system = share(
  await startRfcSystem({
    ARCHIV_GET_CONNECTIONS: (parameters) => {
      if (!linked.has(String(parameters['ARC_DOC_ID']))) return fault('NOTHING_FOUND')
      const row = '<item><SAP_OBJECT>RMRP</SAP_OBJECT><OBJECT_ID>51056001012026</OBJECT_ID><AR_OBJECT>MMILOGINV</AR_OBJECT></item>'
      return result('ARCHIV_GET_CONNECTIONS', parameters, '<COUNT>1</COUNT>', { CONNECTIONS: row })
    },
    BAPI_INCOMINGINVOICE_GETDETAIL: (parameters) =>
      result('BAPI_INCOMINGINVOICE_GETDETAIL', parameters, '<HEADERDATA><DIFF_INV>Müller &amp; Söhne</DIFF_INV></HEADERDATA>'),
  }),
)

const steps = [
  { kind: 'link' },
  {
    kind: 'rfc',
    name: 'invoice',
    function: 'BAPI_INCOMINGINVOICE_GETDETAIL',
    imports: { INVOICEDOCNUMBER: '{erp_object_id[0:10]}', FISCALYEAR: '{erp_object_id[10:14]}' },
    fields: [{ name: 'vendor', path: '$.exports.HEADERDATA.DIFF_INV' }],
  },
]

const createScene = async ({ createRoutes }: Running, enrichment: object) => {
  const routes = await createRoutes(
    [
      {
        name: 'bucket',
        connector: 'objstore',
        config: { endpoint: store.origin, bucket: s3.bucket, region: 'us-east-1', path_style: true },
        credentials: { access_key_id: s3.accessKeyId, secret_access_key: s3.secretAccessKey },
      },
      {
        name: 'folder',
        connector: 'sftp',
        config: { host: '127.0.0.1', port: sshd.port, host_key_sha256: sshd.hostKeyFingerprint },
        credentials: { username: sshd.username, private_key: sshd.privateKey },
      },
      { name: 'dms', config: { url: `${dms.origin}/in` } },
      {
        name: 'mailbox',
        connector: 'email',
        config: { host: '127.0.0.1', port: mails.port, tls: 'none', from: 'relay@acme.example', to: ['in@acme.example'] },
      },
    ],
    { settings: { properties: { Vendor: '{meta.vendor}', Invoice: '{erp_object_id}', Source: '{repo_id}' } } },
  )
  const { call, repositoryId } = routes
  const functions = ['ARCHIV_GET_CONNECTIONS', 'BAPI_INCOMINGINVOICE_GETDETAIL']
  const rfc = { url: system.url, client: '100', credentials: system.logon, allowed_functions: functions }
  expect((await call('PATCH', '/settings', { rfc })).status).toBe(200)
  const body = { name: 'Invoices', repository_ids: [repositoryId], steps, ...enrichment }
  expect((await call('POST', '/enrichments', body)).status).toBe(201)
  return routes
}

type Delivery = Record<'status' | 'attempts' | 'path' | 'late_data', never>

test('data that is found after a delivery is brought to every copy, and the bytes are sent once', async () => {
  await relay.run(async (running) => {
    const routes = await createScene(running, { wait_seconds: 3, late_days: 1 })
    const document = await routes.receive('hello', 'LATE')
    const deliveries = async () => (await document.deliveries()) as unknown as Record<string, Delivery>
    await until(env, 'the document is delivered', async () => (await document.status()) === 'delivered', 5_000)
    const tags = async () => {
      const { TagSet } = await s3.client.send(new GetObjectTaggingCommand({ Bucket: s3.bucket, Key: 'Z1/LATE/data' }))
      return Object.fromEntries(TagSet!.map(({ Key, Value }) => [Key, Value]))
    }
    const sidecar = async () => JSON.parse(await readFile(join(sshd.directory, 'Z1/LATE/data.meta.json'), 'utf8')) as unknown
    expect([await tags(), await sidecar()]).toEqual([{ Source: 'Z1' }, { Source: 'Z1' }])
    expect(requestsToStore()).toEqual(['PUT '])
    for (const { late_data: lateData } of Object.values(await deliveries())) expect(lateData).toBeNull()
    expect([dms.arrivals.length, mails.mails.length]).toEqual([1, 1])

    // The store is away when the data is found.
    storeIsAway = true
    linked.add('LATE')
    const untilLate = (name: string, status: string) => {
      const isLate = async () => {
        await document.makeTryDue()
        return (await deliveries())[name]!.late_data?.['status'] === status
      }
      return until(env, `${name} is ${status}`, isLate, 2_000)
    }
    for (const name of ['folder', 'dms']) await untilLate(name, 'updated')
    await until(env, 'a try has failed', async () => (await deliveries())['bucket']!.late_data?.['error'] !== null, 500)
    expect((await deliveries())['bucket']!.late_data).toMatchObject({
      status: 'pending',
      updated_at: null,
      error: expect.stringMatching(/^http_503: /),
    })
    storeIsAway = false
    await untilLate('bucket', 'updated')

    const properties = { Vendor: 'Müller & Söhne', Invoice: '51056001012026', Source: 'Z1' }
    expect(await sidecar()).toEqual(properties)
    expect(await tags()).toEqual({ ...properties, Vendor: 'Müller _ Söhne' })
    expect(requestsToStore().filter((each) => each === 'PUT ')).toHaveLength(1)
    expect(requestsToStore().filter((each) => each.startsWith('PUT ?tagging'))).toHaveLength(1)
    const late = await deliveries()
    expect(late['bucket']).toMatchObject({ attempts: 1, late_data: { status: 'updated', error: null, updated_at: expect.any(String) } })
    expect(late['mailbox']).toMatchObject({ attempts: 1, late_data: { status: 'not_possible', updated_at: null } })

    expect(dms.arrivals).toHaveLength(2)
    const { headers, body } = dms.arrivals[1]!
    expect(headers).toMatchObject({ 'x-relay-event-type': 'document.metadata', 'content-type': 'application/json' })
    const event = JSON.parse(body.toString())
    expect(event).toEqual({
      type: 'document.metadata',
      timestamp: late['dms']!.late_data?.['found_at'],
      data: {
        file_name: null,
        description: null,
        delivery_id: dms.arrivals[0]!.headers['x-relay-delivery-id'],
        document_id: document.id,
        repo_id: 'Z1',
        doc_id: 'LATE',
        comp_id: 'data',
        erp_object_type: 'RMRP',
        erp_object_id: '51056001012026',
        ar_object: 'MMILOGINV',
        fields: { vendor: 'Müller & Söhne' },
        path: 'Z1/LATE/data',
        received_at: expect.any(String),
      },
    })
    expect(mails.mails).toHaveLength(1)

    // A second run changes nothing.
    const counts = () => [store.arrivals.filter(({ method }) => method === 'PUT').length, dms.arrivals.length, mails.mails.length]
    const before = [counts(), await deliveries()]
    const rows = () => relay.db('late_data').where({ document_id: document.id })
    await rows().where({ status: 'updated' }).update({ status: 'pending', next_try_at: new Date() })
    await until(env, 'the copies are looked at', async () => (await rows().where({ status: 'pending' })).length === 0, 500)
    expect([counts(), await deliveries()]).toEqual(before)

    const { json } = await routes.call('GET', '/audit-logs?event=document.copy_updated')
    const entries = json.data.map(({ attributes }: { attributes: { description: string } }) => attributes.description)
    for (const name of ['bucket', 'folder', 'dms']) {
      expect(entries).toContain(`Business data of document Z1/LATE/data was brought to destination ${name}.`)
    }
  })
})

test('copies that were delivered with the data are not updated', async () => {
  await relay.run(async (running) => {
    const routes = await createScene(running, { wait_seconds: 60 })
    linked.add('INTIME')
    const before = { store: store.arrivals.length, dms: dms.arrivals.length }
    const document = await routes.receive('hello', 'INTIME')
    await until(env, 'the document is delivered', async () => (await document.status()) === 'delivered', 5_000)
    const { TagSet } = await s3.client.send(new GetObjectTaggingCommand({ Bucket: s3.bucket, Key: 'Z1/INTIME/data' }))
    expect(TagSet).toEqual(expect.arrayContaining([{ Key: 'Vendor', Value: 'Müller _ Söhne' }]))
    for (const delivery of Object.values(await document.deliveries())) expect(delivery).toMatchObject({ attempts: 1, late_data: null })
    expect({ store: store.arrivals.length, dms: dms.arrivals.length }).toEqual({ store: before.store + 1, dms: before.dms + 1 })
  })
})
