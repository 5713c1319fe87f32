import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { pino } from 'pino'
import { createBridge } from '../../src/bridge/app.ts'
import { createCaptureQueue } from '../../src/capture/queue.ts'
import { createKey } from '../../src/commands/key.ts'
import { createWorkspace } from '../../src/commands/workspace.ts'
import { upsertCaptures } from '../../src/db/captures.ts'
import { createDocuments } from '../../src/db/documents.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createSources } from '../../src/db/sources.ts'
import { newId } from '../../src/ids.ts'
import { createLog } from '../../src/log.ts'
import { openAuthenticator } from '../../src/http/authenticator.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing, rfcCredentialsOf } from '../../src/security/seal.ts'
import { tablesWith } from '../support/canary.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { exception, fault, result, startRfcSystem, type RfcSystem } from '../support/rfc-system.ts'
import { openSocket } from '../support/source-system.ts'
import { until } from '../support/until.ts'

// against a contract double: no source system can be had
let database: TestDatabase
let system: RfcSystem
const closers: (() => Promise<void>)[] = []

const connection = '<item><SAP_OBJECT>BKPF</SAP_OBJECT><OBJECT_ID>100019000000012026</OBJECT_ID><AR_OBJECT>FIIINVOICE</AR_OBJECT></item>'

beforeAll(async () => {
  database = await createTestDatabase()
  system = await startRfcSystem({
    ARCHIV_GET_CONNECTIONS: (called) =>
      called['ARC_DOC_ID'] === 'UNKNOWN'
        ? fault('NOTHING_FOUND')
        : result('ARCHIV_GET_CONNECTIONS', called, '<COUNT>1</COUNT>', { CONNECTIONS: connection }),
    BAPI_BARCODE_SENDLIST: (called) =>
      result('BAPI_BARCODE_SENDLIST', called, '', {
        RETURN: '<item><TYPE>E</TYPE><ID>OA</ID><NUMBER>220</NUMBER><MESSAGE>No barcode</MESSAGE></item>',
      }),
    Z_CHANGE: (called) => result('Z_CHANGE', called, `<CV_COUNT>${Number(called['CV_COUNT']) + 1}</CV_COUNT>`),
    Z_OTHER: () => exception('Z_OTHER', 'NO_AUTHORITY', 'You are not allowed'),
    Z_SLOW: () => ({ body: '', delayMs: 2_000 }),
    Z_LARGE: (called) => result('Z_LARGE', called, `<TEXT>${'x'.repeat(300_000)}</TEXT>`),
    Z_LOGIN: () => ({ contentType: 'text/html', body: '<html>Please log on</html>' }),
    ARCHIV_CONNECTION_INSERT: (called) =>
      called['OBJECT_ID'] === 'WRONG' ? fault('ERROR_CONNECTIONTABLE') : result('ARCHIV_CONNECTION_INSERT', called, ''),
    Z_SECRET: (called) =>
      result('Z_SECRET', called, '<API_TOKEN>canary-answer</API_TOKEN><LOGON><PASSWORD>canary-answer</PASSWORD></LOGON>'),
    Z_BROKEN: () => fault('Deserialization of canary-rfc failed'),
  })
})
afterAll(async () => {
  for (const close of closers) await close()
  await system.stop()
  await database.drop()
})

const allowed = [
  'ARCHIV_GET_CONNECTIONS',
  'ARCHIV_CONNECTION_INSERT',
  'BAPI_BARCODE_SENDLIST',
  'RFC_PING',
  'Z_CHANGE',
  'Z_OTHER',
  'Z_SLOW',
  'Z_LARGE',
  'Z_LOGIN',
  'Z_SECRET',
  'Z_BROKEN',
]
let workspaces = 0

/** The bridge on a socket, and a workspace that calls the system through it. */
const startBridge = async (rfc: object | null = {}, credentials: object = system.logon, cidrs = '127.0.0.0/8') => {
  const { db } = database
  const config = testConfig({
    RFC_TIMEOUT_MS: '500',
    RFC_ANSWER_MAX_BYTES: '200000',
    RELAY_API_BODY_MAX_BYTES: '1024',
    RELAY_ALLOWED_PRIVATE_CIDRS: cidrs,
  })
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const log: string[] = []
  const captures = createCaptureQueue((batch) => upsertCaptures(db, batch), config, createLog('silent'))
  const app = new Koa()
  // a client that hangs up, as in src/serve.ts
  app.silent = true
  app.use(
    createBridge({
      db,
      config,
      keyRing,
      captures,
      outbound,
      authenticator: openAuthenticator(db, config),
      log: pino({}, { write: (line: string) => void log.push(line) }),
    }),
  )
  app.use((context) => {
    context.body = 'not the bridge'
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(async () => {
    server.close()
    server.closeAllConnections()
    await captures.close()
    await outbound.close()
  })

  workspaces += 1
  const name = `acme/bridge-${workspaces}`
  const { id } = await createWorkspace(db, name)
  const settings = rfc && { rfc: { url: system.url, client: '100', language: 'EN', allowed_functions: allowed, ...rfc } }
  await db('workspaces')
    .where({ id })
    .update({ settings: JSON.stringify(settings ?? {}), rfc_credentials_sealed: keyRing.seal(credentials, rfcCredentialsOf(id)) })
  const { key } = await createKey(db, { workspace: name, level: 'member' })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    id,
    name,
    /** What has been captured, once all of it is written. */
    captured: async () => {
      await captures.close()
      return db('captured_requests').where({ workspace_id: id }).orderBy('id')
    },
    /** The same, once there are so many. */
    capturedOf: async (count: number) => {
      const captured = () => db('captured_requests').where({ workspace_id: id }).orderBy('id')
      return until(`${count} captured requests`, captured, (rows) => rows.length >= count)
    },
    /** A call by hand, of RFC_PING. */
    send: async (header: string, body: string) => {
      const opened = await openSocket((server.address() as AddressInfo).port)
      await opened.send(`POST /bridge/${name}/rfc/RFC_PING HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n${header}\r\n\r\n${body}`)
      return opened
    },
    base,
    log,
    call: async (functionName: string, body: unknown = {}, options: { key?: string; method?: string; signal?: AbortSignal } = {}) => {
      const method = options.method ?? 'POST'
      const response = await fetch(`${base}/bridge/${name}/rfc/${functionName}`, {
        method,
        headers: { authorization: `Bearer ${options.key ?? key}`, 'content-type': 'application/json' },
        ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        ...(options.signal && { signal: options.signal }),
      })
      const json = (await response.json()) as { error?: { code: string; message: string; request_id: string; details?: unknown } }
      return { status: response.status, headers: response.headers, json, code: json.error?.code }
    },
  }
}

describe('a remote function call', () => {
  it('goes as SOAP and comes back as JSON', async () => {
    const bridge = await startBridge()
    const { status, json, headers } = await bridge.call('ARCHIV_GET_CONNECTIONS', {
      imports: { ARCHIV_ID: 'Z1', ARC_DOC_ID: '005056B5A3F21EEFA9C1D04F7B6E8C11' },
      tables: { CONNECTIONS: [] },
    })
    expect(status).toBe(200)
    expect(json).toEqual({
      exports: { COUNT: '1' },
      tables: { CONNECTIONS: [{ SAP_OBJECT: 'BKPF', OBJECT_ID: '100019000000012026', AR_OBJECT: 'FIIINVOICE' }] },
    })
    expect(headers.get('x-relay-request-id')).toMatch(/^[0-9A-Z]{26}$/)
    expect(system.calls.at(-1)).toMatchObject({
      url: '/sap/bc/soap/rfc?sap-client=100&sap-language=EN',
      headers: { 'content-type': 'text/xml; charset=utf-8', soapaction: '"urn:sap-com:document:sap:rfc:functions"' },
      parameters: { ARCHIV_ID: 'Z1', CONNECTIONS: '' },
    })
  })

  it('brings back only the tables that it names, as the system drops the others', async () => {
    const { json } = await (await startBridge()).call('ARCHIV_GET_CONNECTIONS', { imports: { ARC_DOC_ID: 'D1' } })
    expect(json).toEqual({ exports: { COUNT: '1' }, tables: {} })
  })

  it('passes changing parameters there and back', async () => {
    const { json } = await (await startBridge()).call('z_change', { imports: { cv_count: 41 } })
    expect(json).toEqual({ exports: { CV_COUNT: '42' }, tables: {} })
  })

  it.each([
    ['ARCHIV_GET_CONNECTIONS', { imports: { ARC_DOC_ID: 'UNKNOWN' } }, 'NOTHING_FOUND'],
    ['BAPI_BARCODE_SENDLIST', { tables: { RETURN: [] } }, 'OA-220'],
    ['Z_OTHER', {}, 'NO_AUTHORITY'],
  ])('answers 422 where %s says no, with the name of its exception', async (functionName, body, name) => {
    const { status, json } = await (await startBridge()).call(functionName, body)
    expect(status).toBe(422)
    expect(json.error).toMatchObject({ code: 'abap_exception', details: [{ path: 'exception', message: name }] })
    expect(json.error!.message).toMatch(new RegExp(`^${name}`))
  })

  it.each([
    ['Z_SLOW', 504, 'rfc_timeout', 'RFC_TIMEOUT_MS|500 ms'],
    ['Z_LARGE', 502, 'rfc_failed', 'RFC_ANSWER_MAX_BYTES'],
    ['Z_LOGIN', 502, 'rfc_failed', 'did not answer in SOAP'],
    ['Z_BROKEN', 502, 'rfc_failed', 'Deserialization'],
    ['RFC_PING', 502, 'rfc_failed', 'not found'],
  ])('answers %s with %i', async (functionName, status, code, words) => {
    const answer = await (await startBridge()).call(functionName)
    expect(answer).toMatchObject({ status, code })
    expect(answer.json.error!.message).toMatch(new RegExp(words))
  })

  it('says what to mend where the system lets nobody in, and shows no password', async () => {
    const bridge = await startBridge({}, { user: 'RELAY', password: 'wrong-canary' })
    const { status, json, code } = await bridge.call('RFC_PING')
    expect([status, code]).toEqual([502, 'rfc_failed'])
    expect(json.error!.message).toContain('rfc.credentials')
    const broken = await (await startBridge()).call('Z_BROKEN')
    for (const said of [JSON.stringify(json), JSON.stringify(broken.json), ...bridge.log]) expect(said).not.toContain('canary')
  })

  it('reaches nothing that is not to be reached', async () => {
    expect(await (await startBridge({}, system.logon, '')).call('RFC_PING')).toMatchObject({ status: 502, code: 'rfc_failed' })
    expect(await (await startBridge({ url: 'http://127.0.0.1:1' })).call('RFC_PING')).toMatchObject({ status: 502, code: 'rfc_failed' })
  })

  it.each([
    ['a function that is not allowed', 'Z_FORBIDDEN', {}, 403, 'forbidden'],
    ['an address that ends in no name', 'a%20b', {}, 404, 'not_found'],
    ['a body that is no JSON', 'RFC_PING', '{', 400, 'invalid_request'],
    ['an unknown key', 'RFC_PING', { exports: {} }, 400, 'invalid_request'],
    ['a table that is none', 'RFC_PING', { tables: { T: 'x' } }, 400, 'invalid_request'],
    ['a parameter that is no name', 'RFC_PING', { imports: { 'A><B': 'x' } }, 422, 'validation_failed'],
    ['a field that is no name', 'RFC_PING', { imports: { A: { '@_xmlns': 'x' } } }, 400, 'invalid_request'],
    ['a character that XML cannot carry', 'RFC_PING', { imports: { A: '\u0007' } }, 422, 'validation_failed'],
  ])('refuses %s before the system hears of it', async (_, functionName, body, status, code) => {
    const before = system.calls.length
    expect(await (await startBridge()).call(functionName, body)).toMatchObject({ status, code })
    expect(system.calls).toHaveLength(before)
  })

  it('needs a key of level member, and POST', async () => {
    const bridge = await startBridge()
    const { key } = await createKey(database.db, { workspace: bridge.name, level: 'viewer' })
    expect(await bridge.call('RFC_PING', {}, { key })).toMatchObject({ status: 403, code: 'forbidden' })
    expect(await bridge.call('RFC_PING', {}, { key: 'relay_no' })).toMatchObject({ status: 401, code: 'unauthorized' })
    const got = await bridge.call('RFC_PING', {}, { method: 'GET' })
    expect(got).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect(got.headers.get('allow')).toBe('POST')
  })

  it('is a conflict where no system is named', async () => {
    expect(await (await startBridge(null)).call('RFC_PING')).toMatchObject({ status: 409, code: 'conflict' })
  })

  it('is in the audit log, with who called it, before anybody knows what came of it', async () => {
    const bridge = await startBridge()
    const { headers } = await bridge.call('Z_SLOW')
    await bridge.call('Z_FORBIDDEN')
    const requestId = headers.get('x-relay-request-id')
    expect(await database.db('audit_logs').where({ workspace_id: bridge.id, event: 'rfc.call' })).toMatchObject([
      {
        subject_type: 'RfcCall',
        subject_id: requestId,
        actor_type: 'api_key',
        description: 'The function Z_SLOW was called.',
        metadata: { function: 'Z_SLOW', request_id: requestId },
      },
    ])
  })

  it('is captured with its answer, refused or not, and without what is secret', async () => {
    const bridge = await startBridge()
    const called = await bridge.call('Z_CHANGE', { imports: { cv_count: 1, api_token: 'canary-token' } })
    await bridge.call('Z_FORBIDDEN', { imports: { PASSWORD: 'canary-password' } })
    await bridge.call('RFC_PING', '{"PASSWORD": "canary-broken', { key: 'relay_no' })
    await bridge.call('RFC_PING', {}, { method: 'GET' })
    const { json } = await bridge.call('Z_SECRET')
    expect(json).toEqual({ exports: { API_TOKEN: 'canary-answer', LOGON: { PASSWORD: 'canary-answer' } }, tables: {} })

    const captured = await bridge.captured()
    expect(captured.map(({ status_code }) => status_code)).toEqual([200, 403, 401, 405, 200])
    expect(captured[0]).toMatchObject({
      id: called.headers.get('x-relay-request-id'),
      channel: 'bridge',
      http_method: 'POST',
      uri: `/bridge/${bridge.name}/rfc/Z_CHANGE`,
      request_content_type: 'application/json',
      request_body_truncated: false,
      response_body_truncated: false,
    })
    const bodies = await database.db('captured_bodies').where({ request_id: captured[0].id }).orderBy('kind')
    expect(bodies.map(({ data }) => JSON.parse(data.toString()))).toEqual([
      { imports: { cv_count: 1, api_token: '[REDACTED]' } },
      { exports: { CV_COUNT: '2' }, tables: {} },
    ])
    // of whatever was called so far: none of what was sent, answered or signed in with
    for (const secret of ['canary', 'Bearer relay_']) expect([secret, await tablesWith(database.db, secret)]).toEqual([secret, []])
    expect(bridge.log.join('')).not.toContain('canary')
  })

  it('is captured where its address leads to no function, as with a namespace that is not encoded', async () => {
    const bridge = await startBridge()
    const paths = ['', '/', '/rfc', '/rfc/', '/rfc//ACME/PING', '/rfc/RFC_PING/', '/soap/RFC_PING']
    for (const path of paths) {
      const response = await fetch(`${bridge.base}/bridge/${bridge.name}${path}`, { method: 'POST', body: '{}' })
      expect([path, response.status]).toEqual([path, 404])
    }
    expect((await bridge.captured()).map(({ uri, status_code }) => [uri, status_code])).toEqual(
      paths.map((path) => [`/bridge/${bridge.name}${path}`, 404]),
    )
  })

  it('is captured where its body is too large, announced or not', async () => {
    const bridge = await startBridge()
    const before = system.calls.length
    expect(await bridge.call('RFC_PING', 'x'.repeat(2_000))).toMatchObject({ status: 413, code: 'payload_too_large' })
    const { untilClosed } = await bridge.send('Transfer-Encoding: chunked', `7d0\r\n${'x'.repeat(2_000)}\r\n0\r\n\r\n`)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 413 /)
    expect(await bridge.captured()).toMatchObject([
      { channel: 'bridge', status_code: 413, request_content_length: 2_000, request_body_truncated: true, response_body_truncated: false },
      { channel: 'bridge', status_code: 413, request_body_truncated: true, response_body_truncated: false },
    ])
    expect(await database.db('captured_bodies').where({ workspace_id: bridge.id, kind: 'request' })).toEqual([])
    expect(system.calls).toHaveLength(before)
  })

  it('is captured as 499 where its caller hangs up, in mid-body or before the system has answered, and that is no failure of ours', async () => {
    const bridge = await startBridge()
    const { socket } = await bridge.send('Content-Length: 100', '{"imports": {')
    socket.destroy()
    await expect(bridge.call('Z_SLOW', {}, { signal: AbortSignal.timeout(200) })).rejects.toThrow(/timeout/)
    const captured = await bridge.capturedOf(2)
    const gone = { channel: 'bridge', status_code: 499, response_content_length: 0, response_body_truncated: false }
    expect(captured).toMatchObject([
      { ...gone, request_content_length: 100, request_body_truncated: true },
      { ...gone, request_content_length: 2, request_body_truncated: false },
    ])
    expect(await database.db('audit_logs').where({ workspace_id: bridge.id, event: 'rfc.call' })).toHaveLength(1)
    expect(bridge.log).toEqual([])
  })

  it('that links a document to a business object sets the metadata of the document', async () => {
    const { db } = database
    const bridge = await startBridge()
    await db('repositories').insert({ id: newId(), workspace_id: bridge.id, repo_id: 'Z1', name: 'Inbox' })
    const source = (await createSources(db).find('acme', bridge.name.split('/')[1]!, 'Z1'))!
    const config = testConfig()
    const receipt = {
      source,
      docId: 'D1',
      docProt: null,
      metadata: { erpObjectType: null, erpObjectId: null, arObject: null },
      receivedAt: new Date(),
    }
    const components = [{ compId: 'data', contentType: 'text/plain', sizeBytes: 1, content: null }]
    await createReceipts(db, config).receive({ ...receipt, components })
    const documentOf = async () => (await createDocuments(db).list(bridge.id, { page: 1, perPage: 1 })).items[0]
    expect(await documentOf()).toMatchObject({ docId: 'D1', erpObjectType: null })

    const link = { archiv_id: 'Z1', arc_doc_id: 'D1', sap_object: 'BKPF', object_id: '100019000000012026', ar_object: 'FIIINVOICE' }
    expect(await bridge.call('ARCHIV_CONNECTION_INSERT', { imports: { ...link, object_id: 'WRONG' } })).toMatchObject({ status: 422 })
    expect(await documentOf()).toMatchObject({ erpObjectType: null })
    for (let time = 0; time < 2; time += 1) {
      expect(await bridge.call('ARCHIV_CONNECTION_INSERT', { imports: link })).toMatchObject({ status: 200 })
      expect(await documentOf()).toMatchObject({ erpObjectType: 'BKPF', erpObjectId: '100019000000012026', arObject: 'FIIINVOICE' })
    }
    expect(await bridge.call('ARCHIV_CONNECTION_INSERT', { imports: { ...link, arc_doc_id: 'UNKNOWN' } })).toMatchObject({ status: 200 })
  })
})
