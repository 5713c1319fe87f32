import { createDocuments } from '../../src/archive/document-list.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createReceivingRepositories } from '../../src/archive/receiving-repository.ts'
import { newId } from '../../src/base/ids.ts'
import { rfcBoundValues } from '../../src/domain/settings.ts'
import { noMetadata } from '../../src/domain/template.ts'
import { systemAnswerMaxBytes } from '../../src/rfc/rfc-client.ts'
import { rfcCredentialsOf } from '../../src/security/seal.ts'
import { startApi } from '../support/api.ts'
import { blockTask, createGate } from '../support/blocking-task.ts'
import { tablesWith } from '../support/canary.ts'
import { createTestDatabase } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { startForwardProxy } from '../support/forward-proxy.ts'
import { exception, fault, result, startRfcSystem } from '../support/rfc-system.ts'
import { share } from '../support/share.ts'
import { openSocket } from '../support/source-system.ts'
import { until } from '../support/until.ts'

// These tests run against a test double built from the documented interface. No real source system was available.
const connection = '<item><SAP_OBJECT>BKPF</SAP_OBJECT><OBJECT_ID>100019000000012026</OBJECT_ID><AR_OBJECT>FIIINVOICE</AR_OBJECT></item>'

const nameXml = (encoding: string) =>
  `<?xml version="1.0" encoding="${encoding}"?>${String(result('Z_NAME', {}, '<NAME>M\u00fcller</NAME>').body).replace(/^<\?xml.*?\?>/, '')}`

// A name as systems in several code pages answer it.
const encodedName: Record<string, { body: string | Buffer; contentType?: string }> = {
  'charset in the header': { body: Buffer.from(nameXml('iso-8859-1'), 'latin1'), contentType: 'text/xml; charset=iso-8859-1' },
  'charset in quotation marks': { body: Buffer.from(nameXml('iso-8859-1'), 'latin1'), contentType: 'text/xml; charset="ISO-8859-1"' },
  'declaration only': { body: Buffer.from(nameXml('iso-8859-1'), 'latin1'), contentType: 'text/xml' },
  'UTF-16 with a mark': { body: Buffer.from(`\ufeff${nameXml('utf-16')}`, 'utf16le'), contentType: 'text/xml; charset=utf-16' },
  'UTF-16 without a mark': { body: Buffer.from(nameXml('utf-16'), 'utf16le'), contentType: 'text/xml' },
  'UTF-8 with a mark': { body: `\ufeff${nameXml('utf-8')}` },
  'empty charset': { body: nameXml('utf-8'), contentType: 'text/xml; charset=' },
}

const database = share(await createTestDatabase())
const system = share(
  await startRfcSystem({
    ARCHIV_GET_CONNECTIONS: (parameters) =>
      parameters['ARC_DOC_ID'] === 'UNKNOWN'
        ? fault('NOTHING_FOUND')
        : result('ARCHIV_GET_CONNECTIONS', parameters, '<COUNT>1</COUNT>', { CONNECTIONS: connection }),
    BAPI_BARCODE_SENDLIST: (parameters) =>
      result('BAPI_BARCODE_SENDLIST', parameters, '', {
        RETURN: '<item><TYPE>E</TYPE><ID>OA</ID><NUMBER>220</NUMBER><MESSAGE>No barcode</MESSAGE></item>',
      }),
    Z_CHANGE: (parameters) => result('Z_CHANGE', parameters, `<CV_COUNT>${Number(parameters['CV_COUNT']) + 1}</CV_COUNT>`),
    Z_OTHER: () => exception('Z_OTHER', 'NO_AUTHORITY', 'You are not allowed'),
    Z_SLOW: () => ({ body: '', delayMs: 2_000 }),
    Z_HANGING: () => ({ body: '', delayMs: 600_000 }),
    Z_LARGE: (parameters) => result('Z_LARGE', parameters, `<TEXT>${'x'.repeat(systemAnswerMaxBytes)}</TEXT>`),
    Z_LOGIN: () => ({ contentType: 'text/html', body: '<html>Please log on</html>' }),
    ARCHIV_CONNECTION_INSERT: (parameters) =>
      parameters['OBJECT_ID'] === 'WRONG' ? fault('ERROR_CONNECTIONTABLE') : result('ARCHIV_CONNECTION_INSERT', parameters, ''),
    Z_SECRET: (parameters) =>
      result('Z_SECRET', parameters, '<API_TOKEN>canary-answer</API_TOKEN><LOGON><PASSWORD>canary-answer</PASSWORD></LOGON>'),
    Z_NAME: ({ FORM: form }) => encodedName[String(form)]!,
    Z_GROUP: () =>
      fault('RFC_NO_AUTHORITY', '<message>User RELAY has no RFC authorization for function group ZGROUP (canary-rfc)</message>'),
    Z_FORBIDDEN_PAGE: () => ({ status: 403, contentType: 'text/html', body: '<html>Forbidden</html>' }),
    Z_BROKEN: () => fault('Deserialization of canary-rfc failed'),
  }),
)

const allowed = [
  'ARCHIV_GET_CONNECTIONS',
  'ARCHIV_CONNECTION_INSERT',
  'BAPI_BARCODE_SENDLIST',
  'RFC_PING',
  'Z_CHANGE',
  'Z_OTHER',
  'Z_SLOW',
  'Z_HANGING',
  'Z_LARGE',
  'Z_LOGIN',
  'Z_SECRET',
  'Z_BROKEN',
  'Z_NAME',
  'Z_GROUP',
  'Z_FORBIDDEN_PAGE',
]

/** Starts a bridge on a free port and creates a workspace that calls the test system through it. */
const startBridge = async (
  rfc: object | null = {},
  credentials: object = system.logon,
  cidrs = '127.0.0.0/8',
  {
    variables = {},
    maxConcurrentPerWorkspace = 16,
    limits = {},
  }: { variables?: Record<string, string>; maxConcurrentPerWorkspace?: number; limits?: { threadWaitMaxMs?: number } } = {},
) => {
  const { db } = database
  const api = share(
    await startApi(db, {
      variables: { RELAY_ALLOWED_PRIVATE_CIDRS: cidrs, ...variables },
      limits: { bridge: { maxBytes: 1_024, maxValues: 100, maxConcurrentPerWorkspace, ...limits } },
    }),
  )
  const { baseUrl: base, port, log, captures, keyRing } = api

  const { id, name, keys } = await api.tenant(`acme/bridge-${newId().toLowerCase()}`)
  const settings = rfc && { rfc: { url: system.url, client: '100', language: 'EN', allowed_functions: allowed, ...rfc } }
  await db('workspaces')
    .where({ id })
    .update({
      settings: JSON.stringify(settings ?? {}),
      rfc_credentials_sealed: keyRing.seal(credentials, rfcCredentialsOf(id, rfcBoundValues(settings ?? {}))),
    })
  return {
    id,
    name,
    keys,
    /** Returns the captured requests after all of them have been written. */
    captured: async () => {
      await captures.close()
      return db('captured_requests').where({ workspace_id: id }).orderBy('id')
    },
    /** Waits until `count` requests have been captured. */
    capturedOf: async (count: number) => {
      const captured = () => db('captured_requests').where({ workspace_id: id }).orderBy('id')
      return until(`${count} captured requests`, captured, (rows) => rows.length >= count)
    },
    /** Sends a call of RFC_PING with a hand-written header and body. */
    send: async (header: string, body: string) => {
      const opened = await openSocket(port)
      const lines = [
        `POST /bridge/${name}/rfc/RFC_PING HTTP/1.1`,
        'Host: relay',
        'Connection: close',
        `Authorization: Bearer ${keys.member}`,
        header,
      ]
      await opened.send(`${lines.join('\r\n')}\r\n\r\n${body}`)
      return opened
    },
    base,
    log,
    runOnThread: api.runOnThread,
    call: async (
      functionName: string,
      body: unknown = {},
      options: { key?: string; method?: string; signal?: AbortSignal; headers?: Record<string, string> } = {},
    ) => {
      const method = options.method ?? 'POST'
      const response = await fetch(`${base}/bridge/${name}/rfc/${functionName}`, {
        method,
        headers: { authorization: `Bearer ${options.key ?? keys.member}`, 'content-type': 'application/json', ...options.headers },
        ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        ...(options.signal && { signal: options.signal }),
      })
      const json = (await response.json()) as { error?: { code: string; message: string; request_id: string; details?: unknown } }
      return { status: response.status, headers: response.headers, json, code: json.error?.code }
    },
  }
}

/** Starts a bridge that does not wait for Z_SLOW. */
const startImpatientBridge = () => startBridge({}, system.logon, '127.0.0.0/8', { variables: { RFC_TIMEOUT_MS: '500' } })

test('a call for which no thread becomes free is not sent, and may be sent again', async () => {
  const bridge = await startBridge({}, system.logon, '127.0.0.0/8', { limits: { threadWaitMaxMs: 20 } })
  const gate = createGate()
  const held = bridge.runOnThread(blockTask, bridge.id, gate.input)
  await until('the thread of the workspace is held', () => gate.begun() === 1)
  const calls = system.calls.length
  const { status, code, headers } = await bridge.call('RFC_PING')
  expect({ status, code, retryAfter: headers.get('retry-after') }).toEqual({ status: 503, code: 'unavailable', retryAfter: '5' })
  expect(system.calls).toHaveLength(calls)
  gate.open()
  await held
  await until('a call finds a thread', async () => (await bridge.call('ARCHIV_GET_CONNECTIONS')).status === 200)
})

describe('a remote function call', () => {
  test('is sent as SOAP and answered as JSON', async () => {
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

  test('reaches the system through the proxy of the operator, and says so if that refuses it', async () => {
    const proxy = await startForwardProxy()
    const through = (RELAY_OUTBOUND_PROXY: string) =>
      startBridge({}, system.logon, '127.0.0.0/8', { variables: { RELAY_OUTBOUND_PROXY, RELAY_OUTBOUND_NO_PROXY: 'none.invalid' } })

    const bridge = await through(proxy.urlWithLogin)
    expect(await bridge.call('ARCHIV_GET_CONNECTIONS', { imports: { ARC_DOC_ID: 'D1' } })).toMatchObject({ status: 200 })
    expect(proxy.targets).toEqual([new URL(system.url).host])

    const refused = await (await through(proxy.url.replace('//', '//relay:canary@'))).call('ARCHIV_GET_CONNECTIONS')
    expect(refused).toMatchObject({ status: 502, code: 'rfc_failed' })
    expect(refused.json.error!.message).toContain('the proxy of RELAY_OUTBOUND_PROXY refuses the user and password of the variable (407)')
    expect(JSON.stringify(refused.json)).not.toContain('canary')
    await proxy.stop()
  })

  test('that the relay has sent itself is refused and captured, and reaches no system', async () => {
    const bridge = await startBridge()
    const { id } = await database.db('installation').first('id')
    const calls = system.calls.length
    const refused = await bridge.call('RFC_PING', {}, { headers: { 'x-relay-hops': `01K9R4B6ZD8M2V7X0QF3N5T1CE,${id}` } })
    expect([refused.status, refused.code, system.calls.length]).toEqual([508, 'loop_detected', calls])
    const other = await bridge.call('ARCHIV_GET_CONNECTIONS', {}, { headers: { 'x-relay-hops': '01K9R4B6ZD8M2V7X0QF3N5T1CE' } })
    expect(other.status).toBe(200)
    expect((await bridge.captured()).map(({ status_code }) => status_code)).toEqual([508, 200])
  })

  test('returns only the tables that it names', async () => {
    const { json } = await (await startBridge()).call('ARCHIV_GET_CONNECTIONS', { imports: { ARC_DOC_ID: 'D1' } })
    expect(json).toEqual({ exports: { COUNT: '1' }, tables: {} })
  })

  test.each(Object.keys(encodedName))('returns text of an answer as it was written: %s', async (form) => {
    const { json } = await (await startBridge()).call('Z_NAME', { imports: { FORM: form } })
    expect(json).toEqual({ exports: { NAME: 'Müller' }, tables: {} })
  })

  test('sends and returns changing parameters', async () => {
    const { json } = await (await startBridge()).call('z_change', { imports: { cv_count: 41 } })
    expect(json).toEqual({ exports: { CV_COUNT: '42' }, tables: {} })
  })

  test.each([
    ['ARCHIV_GET_CONNECTIONS', { imports: { ARC_DOC_ID: 'UNKNOWN' } }, 'NOTHING_FOUND'],
    ['BAPI_BARCODE_SENDLIST', { tables: { RETURN: [] } }, 'OA-220'],
    ['Z_OTHER', {}, 'NO_AUTHORITY'],
  ])('is answered with 422 and the name of the exception that %s raises', async (functionName, body, name) => {
    const { status, json } = await (await startBridge()).call(functionName, body)
    expect(status).toBe(422)
    expect(json.error).toMatchObject({ code: 'abap_exception', details: [{ path: 'exception', message: name }] })
    expect(json.error!.message).toMatch(new RegExp(`^${name}`))
  })

  test.each([
    ['Z_LARGE', 502, 'rfc_failed', 'exceeds 2097152 bytes'],
    ['Z_LOGIN', 502, 'rfc_failed', 'did not answer in SOAP'],
    ['Z_BROKEN', 502, 'rfc_failed', 'Deserialization'],
    ['Z_GROUP', 502, 'rfc_failed', 'S_RFC.*function group ZGROUP'],
    ['Z_FORBIDDEN_PAGE', 502, 'rfc_failed', 'S_RFC'],
    ['RFC_PING', 502, 'rfc_failed', 'not found'],
  ])('of %s is answered with %i', async (functionName, status, code, words) => {
    const answer = await (await startBridge()).call(functionName)
    expect(answer).toMatchObject({ status, code })
    expect(answer.json.error!.message).toMatch(new RegExp(words))
  })

  test('of a function that takes longer than RFC_TIMEOUT_MS is answered with 504', async () => {
    const answer = await (await startImpatientBridge()).call('Z_SLOW')
    expect(answer).toMatchObject({ status: 504, code: 'rfc_timeout' })
    expect(answer.json.error!.message).toMatch(/RFC_TIMEOUT_MS|500 ms/)
  })

  test('names the setting to correct if the logon fails, and does not reveal the password', async () => {
    const bridge = await startBridge({}, { user: 'RELAY', password: 'wrong-canary' })
    const { status, json, code } = await bridge.call('RFC_PING')
    expect([status, code]).toEqual([502, 'rfc_failed'])
    expect(json.error!.message).toContain('rfc.credentials')
    const broken = await (await startBridge()).call('Z_BROKEN')
    for (const text of [JSON.stringify(json), JSON.stringify(broken.json), ...bridge.log]) expect(text).not.toContain('canary')
  })

  test('fails with 502 if the address is blocked or refuses connections', async () => {
    expect(await (await startBridge({}, system.logon, '')).call('RFC_PING')).toMatchObject({ status: 502, code: 'rfc_failed' })
    expect(await (await startBridge({ url: 'http://127.0.0.1:1' })).call('RFC_PING')).toMatchObject({ status: 502, code: 'rfc_failed' })
  })

  test('sends no credentials without encryption outside of the private networks that the operator allows', async () => {
    const { json, status } = await (await startBridge({ url: 'http://8.8.8.8:1' })).call('RFC_PING')
    expect({ status, code: json.error!.code }).toEqual({ status: 502, code: 'rfc_failed' })
    expect(json.error!.message).toContain('the relay sends no credentials to 8.8.8.8 without TLS')
  })

  test.each([
    ['url', 'http://127.0.0.1:1'],
    ['client', '200'],
    ['ca_certificate', 'PEM'],
  ])('sends no credentials if the %s was changed in the database', async (key, value) => {
    const { id, call } = await startBridge()
    const calls = system.calls.length
    await database
      .db('workspaces')
      .where({ id })
      .update({ settings: database.db.raw(`jsonb_set(settings, ?, to_jsonb(?::text))`, [`{rfc,${key}}`, value]) })
    const { json, status } = await call('ARCHIV_GET_CONNECTIONS')
    expect({ status, code: json.error!.code, calls: system.calls.length }).toEqual({ status: 409, code: 'conflict', calls })
    expect(json.error!.message).toContain('rfc.credentials')
  })

  test.each([
    ['a function that is not allowed', 'Z_FORBIDDEN', {}, 403, 'forbidden'],
    ['a path without a valid name', 'a%20b', {}, 404, 'not_found'],
    ['a body that is not JSON', 'RFC_PING', '{', 400, 'invalid_request'],
    ['an unknown key', 'RFC_PING', { exports: {} }, 400, 'invalid_request'],
    ['too many values', 'RFC_PING', { tables: { T: Array(100).fill(0) } }, 413, 'payload_too_large'],
    ['a table that is not an array', 'RFC_PING', { tables: { T: 'x' } }, 400, 'invalid_request'],
    ['an invalid parameter name', 'RFC_PING', { imports: { 'A><B': 'x' } }, 422, 'validation_failed'],
    ['an invalid field name', 'RFC_PING', { imports: { A: { '@_xmlns': 'x' } } }, 400, 'invalid_request'],
    ['a character that XML does not allow', 'RFC_PING', { imports: { A: '\u0007' } }, 422, 'validation_failed'],
  ])('with %s is refused before the system is called', async (_, functionName, body, status, code) => {
    const before = system.calls.length
    expect(await (await startBridge()).call(functionName, body)).toMatchObject({ status, code })
    expect(system.calls).toHaveLength(before)
  })

  test('beyond the limit of the workspace is refused with Retry-After while another one is running', async () => {
    const patient = { variables: { RFC_TIMEOUT_MS: '600000' }, maxConcurrentPerWorkspace: 1 }
    const bridge = await startBridge({}, system.logon, '127.0.0.0/8', patient)
    const abort = new AbortController()
    const running = bridge.call('Z_HANGING', {}, { signal: abort.signal }).catch(() => 'aborted')
    await until('the system is called', () => system.calls.some(({ functionName }) => functionName === 'Z_HANGING'))
    const refused = await bridge.call('RFC_PING')
    expect(refused).toMatchObject({ status: 429, code: 'rate_limited' })
    expect(refused.headers.get('retry-after')).toBe('5')
    abort.abort()
    expect(await running).toBe('aborted')
    await until('there is room again', async () => (await bridge.call('ARCHIV_CONNECTION_INSERT')).status === 200)
  })

  test('requires a key of level member and the method POST', async () => {
    const bridge = await startBridge()
    expect(await bridge.call('RFC_PING', {}, { key: bridge.keys.viewer })).toMatchObject({ status: 403, code: 'forbidden' })
    expect(await bridge.call('RFC_PING', {}, { key: 'relay_no' })).toMatchObject({ status: 401, code: 'unauthorized' })
    const get = await bridge.call('RFC_PING', {}, { method: 'GET' })
    expect(get).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect(get.headers.get('allow')).toBe('POST')
  })

  test('is answered with 409 if the workspace has no system configured', async () => {
    expect(await (await startBridge(null)).call('RFC_PING')).toMatchObject({ status: 409, code: 'conflict' })
  })

  test('is in the audit log with its caller, even if its result is unknown', async () => {
    const bridge = await startImpatientBridge()
    const { headers } = await bridge.call('Z_SLOW')
    await bridge.call('Z_FORBIDDEN')
    const requestId = headers.get('x-relay-request-id')
    expect(await database.db('audit_logs').where({ workspace_id: bridge.id, event: 'rfc.call' })).toMatchObject([
      {
        subject_type: 'RfcCall',
        subject_id: requestId,
        actor_type: 'api_key',
        description: 'Function Z_SLOW was called.',
        metadata: { function: 'Z_SLOW', request_id: requestId },
      },
    ])
  })

  test('is captured with its answer and without secrets, also if it is refused', async () => {
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
      request_body_truncation_reason: null,
      response_body_truncation_reason: null,
    })
    const bodies = await database.db('captured_bodies').where({ request_id: captured[0].id }).orderBy('kind')
    expect(bodies.map(({ data }) => JSON.parse(data.toString()))).toEqual([
      { imports: { cv_count: 1, api_token: '[REDACTED]' } },
      { exports: { CV_COUNT: '2' }, tables: {} },
    ])
    // No secret of any call so far is stored: neither sent, nor returned, nor used for the logon.
    for (const secret of ['canary', 'Bearer relay_']) expect([secret, await tablesWith(database.db, secret)]).toEqual([secret, []])
    expect(bridge.log.join('')).not.toContain('canary')
  })

  test('is captured if its path names no function, for example with an unencoded namespace', async () => {
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

  test('without a valid key is captured without its body, which is not even read', async () => {
    const bridge = await startBridge()
    const body = `{"imports":{"ARC_DOC_ID":"D1"}${' '.repeat(500)}}`
    expect(await bridge.call('RFC_PING', body, { key: 'wrong' })).toMatchObject({ status: 401 })
    expect(await bridge.call('ARCHIV_GET_CONNECTIONS', body)).toMatchObject({ status: 200 })
    const [refused, accepted] = await bridge.captured()
    expect(refused).toMatchObject({
      request_content_length: body.length,
      request_body_truncation_reason: 'refused',
      response_body_truncation_reason: null,
    })
    expect(accepted).toMatchObject({ request_content_length: body.length, request_body_truncation_reason: null })
    const bodies = await database.db('captured_bodies').where({ workspace_id: bridge.id }).orderBy(['request_id', 'kind'])
    expect(bodies.map(({ request_id: id, kind }) => [id, kind])).toEqual([
      [refused.id, 'response'],
      [accepted.id, 'request'],
      [accepted.id, 'response'],
    ])
  })

  test('is captured if its body is too large, with and without Content-Length', async () => {
    const bridge = await startBridge()
    const before = system.calls.length
    expect(await bridge.call('RFC_PING', 'x'.repeat(2_000))).toMatchObject({ status: 413, code: 'payload_too_large' })
    const { untilClosed } = await bridge.send('Transfer-Encoding: chunked', `7d0\r\n${'x'.repeat(2_000)}\r\n0\r\n\r\n`)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 413 /)
    expect(await bridge.captured()).toMatchObject([
      {
        channel: 'bridge',
        status_code: 413,
        request_content_length: 2_000,
        request_body_truncation_reason: 'refused',
        response_body_truncation_reason: null,
      },
      { channel: 'bridge', status_code: 413, request_body_truncation_reason: 'refused', response_body_truncation_reason: null },
    ])
    expect(await database.db('captured_bodies').where({ workspace_id: bridge.id, kind: 'request' })).toEqual([])
    expect(system.calls).toHaveLength(before)
  })

  test('is captured as 499 and not logged as an error if the client disconnects during the body or before the answer', async () => {
    const bridge = await startBridge({}, system.logon, '127.0.0.0/8', { variables: { RFC_TIMEOUT_MS: '600000' } })
    const { socket } = await bridge.send('Content-Length: 100', '{"imports": {')
    socket.destroy()
    await bridge.capturedOf(1)
    const calls = system.calls.length
    const abort = new AbortController()
    const running = bridge.call('Z_HANGING', {}, { signal: abort.signal }).catch(() => 'aborted')
    await until('the system is called', () => system.calls.length > calls)
    abort.abort()
    expect(await running).toBe('aborted')
    const captured = await bridge.capturedOf(2)
    const disconnected = { channel: 'bridge', status_code: 499, response_content_length: 0, response_body_truncation_reason: null }
    expect(captured).toMatchObject([
      { ...disconnected, request_content_length: 100, request_body_truncation_reason: 'incomplete' },
      { ...disconnected, request_content_length: 2, request_body_truncation_reason: null },
    ])
    expect(await database.db('audit_logs').where({ workspace_id: bridge.id, event: 'rfc.call' })).toHaveLength(1)
    const lines = bridge.log.map((line) => JSON.parse(line) as { event?: string; status?: number })
    expect(lines.map(({ event, status }) => [event, status])).toEqual([
      ['http.request', 499],
      ['http.request', 499],
    ])
  })

  test('that links a document to a business object sets the metadata of the document', async () => {
    const { db } = database
    const bridge = await startBridge()
    await db('repositories').insert({ id: newId(), workspace_id: bridge.id, repo_id: 'Z1', name: 'Inbox' })
    const repository = (await createReceivingRepositories(db).find('acme', bridge.name.split('/')[1]!, 'Z1'))!
    const config = testConfig()
    const document = {
      repository,
      docId: 'D1',
      docProt: null,
      metadata: noMetadata,
      receivedAt: new Date(),
      requestId: newId(),
      capture: undefined,
    }
    const components = [{ compId: 'data', contentType: 'text/plain', sizeBytes: 1, content: null }]
    await createReceive(db, config)({ ...document, components })
    const documentOf = async () => (await createDocuments(db).list(bridge.id, { page: 1, perPage: 1 })).items[0]
    expect(await documentOf()).toMatchObject({ docId: 'D1', erpObjectType: null })

    const link = { archiv_id: 'Z1', arc_doc_id: 'D1', sap_object: 'BKPF', object_id: '100019000000012026', ar_object: 'FIIINVOICE' }
    expect(await bridge.call('ARCHIV_CONNECTION_INSERT', { imports: { ...link, object_id: 'WRONG' } })).toMatchObject({ status: 422 })
    expect(await documentOf()).toMatchObject({ erpObjectType: null })
    for (let round = 0; round < 2; round += 1) {
      expect(await bridge.call('ARCHIV_CONNECTION_INSERT', { imports: link })).toMatchObject({ status: 200 })
      expect(await documentOf()).toMatchObject({ erpObjectType: 'BKPF', erpObjectId: '100019000000012026', arObject: 'FIIINVOICE' })
    }
    // Front ends of the source system send where the file was.
    const file = { filename: String.raw`C:\Users\müller\Desktop\Rechnung 4711.pdf`, descr: 'Rechnung\n4711' }
    await bridge.call('ARCHIV_CONNECTION_INSERT', { imports: { ...link, ...file } })
    expect(await documentOf()).toMatchObject({ fileName: 'Rechnung 4711.pdf', description: 'Rechnung 4711' })
    await bridge.call('ARCHIV_CONNECTION_INSERT', { imports: { ...link, filename: '/tmp/..', descr: '' } })
    expect(await documentOf()).toMatchObject({ fileName: 'Rechnung 4711.pdf', description: 'Rechnung 4711' })
    // Cut to what PUT /documents/.../metadata accepts.
    await bridge.call('ARCHIV_CONNECTION_INSERT', { imports: { ...link, object_id: 'x'.repeat(300) } })
    expect(await documentOf()).toMatchObject({ erpObjectId: 'x'.repeat(255) })
    expect(await bridge.call('ARCHIV_CONNECTION_INSERT', { imports: { ...link, arc_doc_id: 'UNKNOWN' } })).toMatchObject({ status: 200 })
  })
})
