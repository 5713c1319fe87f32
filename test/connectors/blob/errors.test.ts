import { once } from 'node:events'
import http, { type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createBlob } from '../../../src/connectors/blob/index.ts'
import type { Payload } from '../../../src/connectors/connector.ts'
import { createEntraTokens } from '../../../src/connectors/shared/entra-tokens.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { oddHeads, startOddServer } from '../../support/odd-heads.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from '../payloads.ts'

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const requests: { line: string; headers: http.IncomingHttpHeaders }[] = []
let answer: (response: ServerResponse, url: string) => void
const server = http.createServer((request, response) => {
  requests.push({ line: `${request.method} ${request.url}`, headers: request.headers })
  request.resume().on('end', () => answer(response, request.url ?? ''))
})

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
beforeEach(() => {
  requests.length = 0
})
afterAll(async () => {
  await outbound.close()
  server.closeAllConnections()
  server.close()
})

const blob = createBlob(createEntraTokens(), createPartMemory())
const accountKey = Buffer.from('the-account-key').toString('base64')
const accountUrl = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme`
const target = (config: object = {}) => ({
  config: blob.config.parse({ account_url: accountUrl(), container: 'documents', ...config }),
  credentials: blob.credentials.parse({ account_key: accountKey }),
})
const refuse = (status: number, code: string, headers: Record<string, string> = {}, message = 'says the account') => {
  answer = (response) => {
    if (response.req.method === 'HEAD') {
      response.writeHead(404, { 'x-ms-error-code': 'BlobNotFound', 'x-ms-request-id': 'r2' }).end()
      return
    }
    response.writeHead(status, { 'content-type': 'application/xml', 'x-ms-error-code': code, 'x-ms-request-id': 'r1', ...headers })
    response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}\nRequestId:r1\nTime:now</Message></Error>`)
  }
}
const attempt = (payload: Payload = payloadOf(Buffer.from('x')), config: object = {}) =>
  failure(blob.deliver(payload, target(config), contextOf(outbound)))

test.each([
  [403, 'AuthenticationFailed', 'credentials_refused', true],
  [403, 'KeyBasedAuthenticationNotPermitted', 'credentials_refused', true],
  [401, 'InvalidAuthenticationInfo', 'credentials_refused', true],
  [403, 'AuthorizationFailure', 'access_denied', true],
  [403, 'AuthorizationPermissionMismatch', 'access_denied', true],
  [403, 'SomethingNew', 'http_403', false],
  [400, 'SomethingNew', 'http_400', false],
  // Damage on the way, and blocks that another program has left.
  [400, 'Md5Mismatch', 'http_400', false],
  [400, 'InvalidBlobOrBlock', 'http_400', false],
  [400, 'InvalidXmlDocument', 'http_400', false],
  // Limits.
  [403, 'AccountQuotaExceeded', 'quota_exceeded', false],
  [403, 'RequestThrottled', 'http_403', false],
  [423, 'Locked', 'http_423', false],
  [400, 'AccountRequiresHttps', 'access_denied', true],
  [400, 'UnsupportedHeader', 'http_400', true],
  [413, 'RequestBodyTooLarge', 'http_413', true],
  [409, 'BlobImmutableDueToPolicy', 'access_denied', true],
  [409, 'BlobImmutableDueToLegalHold', 'access_denied', true],
  [404, 'ContainerNotFound', 'container_missing', true],
  [400, 'OutOfRangeInput', 'path_refused', true],
  [400, 'InvalidHeaderValue', 'http_400', true],
  [400, 'InvalidBlockList', 'http_400', false],
  [409, 'ContainerBeingDeleted', 'http_409', false],
  [412, 'LeaseIdMissing', 'http_412', false],
  [429, 'TooManyRequests', 'http_429', false],
  [500, 'InternalError', 'http_500', false],
  [503, 'ServerBusy', 'http_503', false],
])('%i %s becomes %s, permanent: %s, after one upload', async (status, name, code, permanent) => {
  refuse(status, name)
  const error = await attempt()
  expect(error).toMatchObject({ code, permanent, answer: { status, request_id: 'r1' } })
  expect(JSON.stringify([error.message, error.answer])).not.toContain(accountKey)
  // It looks only if the refusal can mean that the blob is there.
  const looks = ['AuthorizationPermissionMismatch', 'BlobImmutableDueToPolicy', 'BlobImmutableDueToLegalHold', 'LeaseIdMissing'].includes(
    name,
  )
  expect(requests.map(({ line }) => line.split(' ')[0])).toEqual(looks ? ['PUT', 'HEAD'] : ['PUT'])
})

test('a signature that is refused because the clocks differ is tried again', async () => {
  answer = (response) => {
    response.writeHead(403, { 'content-type': 'application/xml', 'x-ms-error-code': 'AuthenticationFailed', 'x-ms-request-id': 'r1' })
    response.end(
      '<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code><Message>Server failed to authenticate the request.</Message>' +
        "<AuthenticationErrorDetail>Request date header too old: 'Mon, 28 Sep 2015 07:43:25 GMT'</AuthenticationErrorDetail></Error>",
    )
  }
  expect(await attempt()).toMatchObject({ code: 'http_403', permanent: false, message: expect.stringContaining('clock') })
})

const sasTarget = (sas: string) => ({ config: target().config, credentials: blob.credentials.parse({ sas_token: sas }) })
const hours = (count: number) => new Date(Date.now() + count * 3_600_000).toISOString()

const justNow = hours(-0.01)

test.each([
  ['by the clock of the relay', hours(1), ''],
  [
    'by the clock of the account',
    justNow,
    `Signature not valid in the specified time frame: Start [${justNow}] - Expiry [${hours(5)}] - Current [${hours(-0.2)}]`,
  ],
])('a SAS token that is not valid yet, %s, is tried again', async (_, start, detail) => {
  answer = (response) => {
    response.writeHead(403, { 'content-type': 'application/xml', 'x-ms-error-code': 'AuthenticationFailed', 'x-ms-request-id': 'r1' })
    response.end(
      `<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code><Message>no</Message><AuthenticationErrorDetail>${detail}</AuthenticationErrorDetail></Error>`,
    )
  }
  const sas = `sv=2024&st=${encodeURIComponent(start)}&se=${encodeURIComponent(hours(5))}&sig=abcd`
  const error = await failure(blob.deliver(payloadOf(Buffer.from('x')), sasTarget(sas), contextOf(outbound)))
  expect(error).toMatchObject({
    code: 'http_403',
    permanent: false,
    message: expect.stringContaining(`sas_token is not valid before ${start}`) as string,
  })
  expect(error.message).not.toContain('abcd')
})

test.each([
  [403, '<html><body>Blocked by the firewall</body></html>'],
  [403, ''],
  [400, 'no'],
  [407, ''],
])('a page with %i says nothing about the account: %j', async (status, page) => {
  answer = (response) => response.writeHead(status, { 'content-type': 'text/html' }).end(page)
  expect(await attempt()).toMatchObject({ code: 'not_a_blob_service', permanent: false, answer: { status } })
})

test('an answer that says when to try again passes, whatever it is', async () => {
  refuse(403, 'AuthorizationFailure', { 'x-ms-retry-after-ms': '7000' })
  expect(await attempt()).toMatchObject({ permanent: false, retryAfterMs: 7_000 })
})

test('the operation and its place stand before what the account says', async () => {
  refuse(503, 'ServerBusy')
  const sas = 'sv=2024&sig=abcd'
  const { message } = await failure(blob.deliver(payloadOf(Buffer.from('x')), sasTarget(sas), contextOf(outbound)))
  expect(message).toMatch(/^Put Blob of http:\/\/127\.0\.0\.1:\d+\/acme\/documents\/\S+: the account answered 503 ServerBusy/)
  expect(message).not.toContain('sig')
  expect((await attempt(largePayload(9 * MiB))).message).toMatch(/^Put Block \(block [12]\) of http:/)
})

test('the oldest version of the service that has what is used is asked for', async () => {
  refuse(500, 'InternalError')
  await attempt()
  await attempt(payloadOf(Buffer.from('x'), { properties: { vendor: 'Acme' } }))
  expect(requests.map(({ headers }) => headers['x-ms-version'])).toEqual(['2017-11-09', '2019-12-12'])
})

test('keeps the Retry-After of an account that is too busy', async () => {
  refuse(503, 'ServerBusy', { 'retry-after': '11' })
  expect(await attempt()).toMatchObject({ retryAfterMs: 11_000 })
})

test('entities that an answer defines are not expanded', async () => {
  const entities = Array.from({ length: 12 }, (_, index) => `<!ENTITY e${index + 1} "${`&e${index};`.repeat(10)}">`).join('')
  const document = `<?xml version="1.0"?><!DOCTYPE Error [<!ENTITY e0 "expanded">${entities}]>`
  answer = (response) =>
    response
      .writeHead(400, { 'content-type': 'application/xml', 'x-ms-request-id': 'r1' })
      .end(`${document}<Error><Code>Odd</Code><Message>&e12;</Message></Error>`)
  const error = await attempt()
  expect(error).toMatchObject({ permanent: expect.any(Boolean) as boolean })
  expect(JSON.stringify([error.message, error.answer])).not.toContain('expandedexpanded')
})

test('a host that is no Blob storage is reported with its address', async () => {
  answer = (response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<html>nothing here')
  expect(await attempt()).toMatchObject({
    code: 'not_a_blob_service',
    permanent: false,
    message: expect.stringContaining(accountUrl()) as string,
  })
})

test.each([
  [200, { 'content-type': 'text/html' }],
  [201, { 'content-type': 'text/html' }],
  [201, { 'content-type': 'text/html', etag: '"of-the-page"' }],
  [202, {}],
  [204, {}],
  [201, { 'x-ms-request-id': 'r1' }],
  [201, { 'x-ms-request-id': 'r1', etag: '' }],
  [201, { 'x-ms-request-id': 'r1', etag: '""' }],
  [200, { 'x-ms-request-id': 'r1', etag: '"e"' }],
  [202, { 'x-ms-request-id': 'r1', etag: '"e"' }],
])('%i with the headers %j is a failed attempt', async (status, headers) => {
  answer = (response) => response.writeHead(status, headers).end(status === 204 ? undefined : '<html>welcome')
  for (const payload of [payloadOf(Buffer.from('x')), largePayload(9 * MiB)]) {
    expect(await attempt(payload)).toMatchObject({ code: 'answer_unreadable', permanent: false })
  }
  expect(await failure(blob.probe(target(), contextOf(outbound)))).toMatchObject({ code: 'answer_unreadable' })
})

test('a redirect is not followed', async () => {
  answer = (response) => response.writeHead(307, { location: `${accountUrl()}/elsewhere` }).end()
  expect(await attempt()).toMatchObject({ code: 'http_307', permanent: false })
  expect(requests).toHaveLength(1)
})

test('one block that is refused for good ends the whole upload', async () => {
  let blocks = 0
  answer = (response, url) => {
    // A block that an earlier test has given up may still arrive.
    if (!url.includes('/halting/')) return
    blocks += 1
    // The others are never answered: they are given up.
    if (blocks === 1) response.writeHead(400, { 'x-ms-request-id': 'r1', 'x-ms-error-code': 'InvalidHeaderValue' }).end()
  }
  expect(await attempt(largePayload(100 * MiB), { container: 'halting' })).toMatchObject({ code: 'http_400', permanent: true })
  expect(blocks).toBeLessThanOrEqual(3)
  expect(requests.some(({ line }) => line.includes('/halting/') && line.includes('comp=blocklist'))).toBe(false)
})

test('the metadata of the document is sent in the form that the service accepts', async () => {
  refuse(500, 'InternalError')
  const payload = payloadOf(Buffer.from('x'), { docId: 'Ä 1%', contentType: 'text/plain\r\nx-injected: 1' })
  await attempt(payload)
  expect(requests[0]?.headers).toMatchObject({
    'x-ms-blob-content-type': 'application/octet-stream',
    'x-ms-meta-delivery_id': payload.deliveryId,
    'x-ms-meta-doc_id': '%C3%84 1%25',
    'x-ms-meta-sha256': payload.sha256,
  })
  expect(requests[0]?.headers).not.toHaveProperty('x-injected')
})

test('no segment of a name ends with a dot, and different paths stay different', async () => {
  refuse(500, 'InternalError')
  for (const path of ['R1/a.', 'R1/a%252E', 'R1./a']) await attempt(payloadOf(Buffer.from('x'), { path }))
  expect(requests.map(({ line }) => decodeURIComponent(line.split('/documents/')[1] ?? ''))).toEqual(['R1/a%2E', 'R1/a%252E', 'R1%2E/a'])
})

test('a name that is too long is refused before anything is sent', async () => {
  const path = Array.from({ length: 10 }, (_, index) => `${index}`.repeat(200)).join('/')
  expect(await attempt(payloadOf(Buffer.from('x'), { path }))).toMatchObject({ code: 'path_too_long', permanent: true })
  expect(requests).toEqual([])
})

test.each([
  [{ account_url: 'ftp://acme.example' }],
  [{ account_url: 'https://user:secret@acme.example' }],
  [{ account_url: 'https://acme.example/?sig=secret' }],
  [{ account_url: 'https://acme.example/account/container' }],
  [{ container: 'Upper' }],
  [{ container: 'a--b' }],
  [{ container: 'a/b' }],
  [{ prefix: '/abs' }],
  [{ prefix: 'a/../b' }],
  [{ ca_certificate: 'no PEM' }],
])('refuses the config %j', (config) => {
  expect(blob.config.safeParse({ account_url: 'https://acme.blob.core.windows.net', container: 'documents', ...config }).success).toBe(
    false,
  )
})

test.each([
  [{}],
  [{ account_key: 'not base64!' }],
  [{ sas_token: 'https://acme.example/documents?sv=1&sig=x' }],
  [{ sas_token: 'sv=1' }],
  [{ account_key: 'YQ==', sas_token: 'sig=x' }],
  [{ tenant_id: 'a', client_id: 'b' }],
  [{ tenant_id: 'a/../b', client_id: 'b', client_secret: 'c' }],
])('refuses the credentials %j', (credentials) => {
  expect(blob.credentials.safeParse(credentials).success).toBe(false)
})

describe('a blob is stored once, and the answer contains', () => {
  test.each(Object.entries(oddHeads))('%s', async (_, change) => {
    answer = (response) => {
      const headers = {
        etag: '"e1"',
        'x-ms-request-id': 'r1',
        'x-ms-version': '2026-10-06',
        'last-modified': 'Sat, 28 Nov 2026 09:00:00 GMT',
      }
      response.writeHead(201, headers).end()
    }
    await using odd = await startOddServer((server.address() as AddressInfo).port)
    odd.change(change)
    const account = { account_url: `http://127.0.0.1:${odd.port}/acme` }
    const result = await blob.deliver(payloadOf(Buffer.from('x')), target(account), contextOf(outbound))
    expect(result.answer).toMatchObject({ status: 201, etag: '"e1"' })
    expect(requests).toHaveLength(1)
  })
})
