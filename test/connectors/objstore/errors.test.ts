import { once } from 'node:events'
import http, { type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { until } from '../../support/until.ts'
import { contextOf, failure as failed, largePayload, MiB, payloadOf } from '../payloads.ts'

const objstore = createObjstore(createPartMemory())
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const requests: string[] = []
let answer: (response: ServerResponse, url: string) => void
const server = http.createServer((request, response) => {
  requests.push(`${request.method} ${request.url}`)
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

const target = (config: object = {}) => ({
  config: objstore.config.parse({
    bucket: 'documents',
    region: 'eu-central-1',
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    path_style: true,
    ...config,
  }),
  credentials: objstore.credentials.parse({ access_key_id: 'the-key-id', secret_access_key: 'the-secret' }),
})
const refuse = (status: number, code: string, more = '', headers: Record<string, string> = {}) => {
  answer = (response) => {
    if (response.req.method === 'HEAD') {
      response.writeHead(404).end()
      return
    }
    response.writeHead(status, { 'content-type': 'application/xml', ...headers })
    response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>says the store</Message>${more}</Error>`)
  }
}
const failure = (payload = payloadOf(Buffer.from('x')), config: object = {}) =>
  failed(objstore.deliver(payload, target(config), contextOf(outbound)))

test.each([
  [403, 'InvalidAccessKeyId', 'credentials_refused', true],
  [403, 'SignatureDoesNotMatch', 'credentials_refused', true],
  [400, 'ExpiredToken', 'credentials_refused', true],
  [403, 'AccessDenied', 'access_denied', true],
  [404, 'NoSuchBucket', 'bucket_missing', true],
  [400, 'InvalidStorageClass', 'http_400', true],
  [403, 'RequestTimeTooSkewed', 'http_403', false],
  [400, 'RequestTimeout', 'http_400', false],
  [400, 'BadDigest', 'http_400', false],
  [400, 'IncompleteBody', 'http_400', false],
  [400, 'InvalidPart', 'http_400', false],
  [400, 'XAmzContentChecksumMismatch', 'http_400', false],
  [409, 'OperationAborted', 'http_409', false],
  [409, 'SomethingNew', 'http_409', false],
  [412, 'PreconditionFailed', 'http_412', true],
  [429, 'TooManyRequests', 'http_429', false],
  [500, 'InternalError', 'http_500', false],
  [503, 'SlowDown', 'http_503', false],
])('%i %s becomes %s, permanent: %s, after one upload', async (status, name, code, permanent) => {
  refuse(status, name)
  const error = await failure()
  expect(error).toMatchObject({ code, permanent, answer: { status } })
  expect(JSON.stringify([error.message, error.answer])).not.toContain('the-secret')
  // It looks only if the refusal can mean that the object is there.
  const looks = ['AccessDenied', 'SomethingNew', 'PreconditionFailed'].includes(name)
  expect(requests.map((line) => line.split(' ')[0])).toEqual(looks ? ['PUT', 'HEAD'] : ['PUT'])
})

const refuseWith = (status: number, code: string, message: string) => {
  answer = (response) => {
    response.writeHead(response.req.method === 'HEAD' ? 404 : status, { 'content-type': 'application/xml' })
    response.end(response.req.method === 'HEAD' ? '' : `<Error><Code>${code}</Code><Message>${message}</Message></Error>`)
  }
}

test.each([
  // Full, or a limit of a day.
  [403, 'QuotaExceeded', 'no', 'quota_exceeded'],
  [400, 'XMinioAdminBucketQuotaExceeded', 'Bucket quota exceeded', 'quota_exceeded'],
  [403, 'AccessDenied', 'Transaction cap exceeded, see the Caps &amp; Alerts page to increase your cap.', 'quota_exceeded'],
  [409, 'InsufficientStorageSpace', 'Insufficient storage space', 'quota_exceeded'],
  [507, 'XMinioStorageFull', 'Storage backend has reached its minimum free drive threshold.', 'quota_exceeded'],
  // Busy.
  [400, 'Throttling', 'Rate exceeded', 'http_400'],
  [403, 'RequestLimitExceeded', 'Request limit exceeded.', 'http_403'],
  [403, 'AccessDenied', 'Too many requests, please try again later', 'http_403'],
  [403, 'DownloadTrafficRateLimitExceeded', 'no', 'http_403'],
  [429, 'SlowDown', 'no', 'http_429'],
  [509, 'BandwidthLimitExceeded', 'no', 'http_509'],
  // Damaged on the way.
  [400, 'XAmzContentSHA256Mismatch', 'no', 'http_400'],
  [400, 'InvalidDigest', 'The Content-MD5 you specified was invalid.', 'http_400'],
  [400, 'XAmzContentSHA256Mismatch', 'no', 'http_400'],
  [400, 'InvalidRequest', 'Value for x-amz-checksum-sha256 header is invalid.', 'http_400'],
  [400, 'IncompleteMessage', 'no', 'http_400'],
  [400, 'MalformedXML', 'no', 'http_400'],
  // Clocks.
  [403, 'SignatureDoesNotMatch', 'Signature expired: 20261129T011200Z is now earlier than 20261129T013000Z', 'http_403'],
  [403, 'SignatureDoesNotMatch', 'Signature not yet current: 20261129T013000Z is still later than 20261129T011200Z', 'http_403'],
  [403, 'AccessDenied', 'Request has expired', 'http_403'],
  // Locks, and codes that are not known.
  [423, 'Locked', 'no', 'http_423'],
  [403, 'SomethingNew', 'no', 'http_403'],
  [400, 'SomethingNew', 'no', 'http_400'],
  [404, 'SomethingNew', 'no', 'http_404'],
])('%i %s "%s" passes, as %s', async (status, name, message, code) => {
  refuseWith(status, name, message)
  expect(await failure()).toMatchObject({ code, permanent: false })
})

test.each([
  [
    403,
    'AccessDenied',
    'User: arn:aws:iam::1:user/relay is not authorized to perform: s3:PutObject on resource: "a/quota exceeded.pdf"',
    'access_denied',
  ],
  [403, 'AllAccessDisabled', 'All access to this object has been disabled', 'access_denied'],
  [403, 'UserSuspended', 'no', 'credentials_refused'],
  [400, 'KMS.DisabledException', 'The key is disabled', 'access_denied'],
  [400, 'KeyTooLongError', 'Your key is too long', 'path_refused'],
  [400, 'EntityTooLarge', 'no', 'http_400'],
  [501, 'NotImplemented', 'A header you provided implies functionality that is not implemented', 'http_501'],
])('%i %s "%s" is final, as %s', async (status, name, message, code) => {
  refuseWith(status, name, message)
  expect(await failure()).toMatchObject({ code, permanent: true })
})

test('an answer that says when to try again passes, whatever it is', async () => {
  refuse(403, 'AccessDenied', '', { 'retry-after': '7' })
  expect(await failure()).toMatchObject({ permanent: false, retryAfterMs: 7_000 })
})

test.each([
  [403, '<html><body>Blocked by the firewall</body></html>'],
  [403, ''],
  [403, 'Forbidden'],
  [403, '{"error":"forbidden"}'],
  [400, '<html>'],
  [401, 'login'],
  [407, ''],
])('a page with %i that is no error of a store says nothing about the account: %j', async (status, page) => {
  answer = (response) => response.writeHead(status, { 'content-type': 'text/html' }).end(page)
  expect(await failure()).toMatchObject({ code: 'answer_unreadable', permanent: false, answer: { status } })
  expect(requests).toHaveLength(1)
})

test('the operation and its place stand before what the store says', async () => {
  refuse(503, 'SlowDown')
  const payload = payloadOf(Buffer.from('x'))
  const { message } = await failure(payload)
  expect(message).toMatch(/^PutObject of s3:\/\/documents\/\S+: the store answered 503 SlowDown: says the store$/)
  const long = payloadOf(Buffer.from('x'), { path: Array.from({ length: 9 }, (_, index) => `${index}`.repeat(100)).join('/') })
  expect((await failure(long)).message).toMatch(/^PutObject of s3:\/\/documents\/0+…\S+8: the store answered 503 SlowDown: says the store$/)
  expect((await failure(largePayload(9 * MiB))).message).toMatch(/^CreateMultipartUpload of s3:/)
})

test('a bucket in another region is reported with the name of that region', async () => {
  refuse(400, 'AuthorizationHeaderMalformed', '<Region>us-west-2</Region>')
  expect(await failure()).toMatchObject({ code: 'wrong_region', permanent: true, message: expect.stringContaining('us-west-2') as string })

  refuse(301, 'PermanentRedirect', '', { 'x-amz-bucket-region': 'ap-south-1' })
  expect(await failure()).toMatchObject({ code: 'wrong_region', permanent: true, message: expect.stringContaining('ap-south-1') as string })
})

test('keeps the Retry-After of a store that is too busy', async () => {
  refuse(503, 'SlowDown', '', { 'retry-after': '11' })
  expect(await failure()).toMatchObject({ retryAfterMs: 11_000 })
})

test('a session token that the store echoes is not shown, and the answer is cut to the limit', async () => {
  answer = (response) =>
    response.writeHead(400).end(`<Error><Code>Odd</Code><Message>the-session-token ${'y'.repeat(100_000)}</Message></Error>`)
  const credentials = { ...target().credentials, session_token: 'the-session-token' }
  const { message, answer: kept } = await failed(
    objstore.deliver(payloadOf(Buffer.from('x')), { ...target(), credentials }, contextOf(outbound, { answerMaxBytes: 100 })),
  )
  expect(message).toContain('[REDACTED]')
  expect(JSON.stringify([message, kept])).not.toContain('the-session-token')
  expect(kept?.body).toHaveLength(100)
})

test('entities that an answer defines are not expanded', async () => {
  const entities = Array.from({ length: 12 }, (_, index) => `<!ENTITY e${index + 1} "${`&e${index};`.repeat(10)}">`).join('')
  const document = `<?xml version="1.0"?><!DOCTYPE Error [<!ENTITY e0 "expanded">${entities}]>`
  answer = (response) =>
    response.writeHead(400, { 'content-type': 'application/xml' }).end(`${document}<Error><Code>Odd</Code><Message>&e12;</Message></Error>`)
  const error = await failure()
  expect(error).toMatchObject({ permanent: expect.any(Boolean) as boolean })
  expect(JSON.stringify([error.message, error.answer])).not.toContain('expandedexpanded')
})

test.each([200, 400])('a response with status %i that never ends is not read for ever', async (status) => {
  let closed = false
  answer = (response) => {
    response.writeHead(status)
    const pour = () => {
      while (!response.destroyed && response.write('<a/>'.repeat(16 * 1024)));
    }
    response.on('drain', pour).on('close', () => {
      closed = true
    })
    pour()
  }
  const error = await failure()
  expect(error).toMatchObject({
    code: 'answer_unreadable',
    permanent: false,
    message: expect.stringMatching(/which no S3 store sends; check endpoint$/) as string,
  })
  await until('the connection is closed', () => closed)
})

test('one part that is refused for good ends the whole upload, which is aborted until the store no longer knows it', async () => {
  let parts = 0
  // Parts that the store still receives can make it fail, or can be kept.
  const aborts = [500, 204, 404]
  answer = (response, url) => {
    if (url.includes('uploads')) {
      return response.end('<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>')
    }
    if (!url.includes('partNumber')) return response.writeHead(aborts.shift() ?? 404).end()
    parts += 1
    const refusal = '<Error><Code>InvalidArgument</Code><Message>no</Message></Error>'
    return parts === 1 ? response.writeHead(400).end(refusal) : setTimeout(() => response.writeHead(200, { etag: '"e"' }).end(), 300)
  }

  expect(await failure(largePayload(100 * MiB))).toMatchObject({ code: 'http_400', permanent: true })

  // The parts that were in flight together.
  expect(parts).toBeLessThanOrEqual(4)
  const isAbort = (line: string) => /^DELETE .*uploadId=u1/.test(line)
  expect(isAbort(requests.at(-1)!)).toBe(true)
  // The time for aborts is limited: on a slow machine, the last one may be missing.
  expect(requests.filter(isAbort).length).toBe(3 - aborts.length)
  expect(aborts.length).toBeLessThan(2)
  expect(requests.some((line) => line.startsWith('POST') && line.includes('uploadId'))).toBe(false)
})

test('a key that is too long is refused before anything is sent', async () => {
  const path = Array.from({ length: 10 }, (_, index) => `${index}`.repeat(200)).join('/')
  expect(await failure(payloadOf(Buffer.from('x'), { path }))).toMatchObject({ code: 'path_too_long', permanent: true })
  expect(requests).toEqual([])
})

test('endpoints in the environment do not apply to destinations', async () => {
  refuse(500, 'InternalError')
  process.env.AWS_ENDPOINT_URL_S3 = target().config.endpoint
  try {
    // A region that does not exist: without an endpoint the request goes to AWS and must fail.
    await failure(payloadOf(Buffer.from('x')), { endpoint: undefined, region: 'xx-invalid-1', path_style: false })
  } finally {
    delete process.env.AWS_ENDPOINT_URL_S3
  }
  // But for one that the upload before has given up.
  expect(requests.filter((line) => !line.includes('uploadId'))).toEqual([])
})

test.each(['AWS_USE_FIPS_ENDPOINT', 'AWS_USE_DUALSTACK_ENDPOINT'])('%s does not apply to destinations', async (name) => {
  refuse(500, 'InternalError')
  process.env[name] = 'true'
  try {
    expect(await failure()).toMatchObject({ code: 'http_500' })
  } finally {
    delete process.env[name]
  }
})

test.each([
  [{ bucket: 'a/b' }],
  [{ bucket: '' }],
  [{ region: 'eu central' }],
  [{ region: 'evil.example/' }],
  [{ prefix: '/abs' }],
  [{ prefix: 'a/../b' }],
  [{ endpoint: 'http://user:secret@example.com' }],
  [{ endpoint: 'ftp://example.com' }],
  [{ endpoint: 'http://example.com/?a=b' }],
  [{ server_side_encryption: 'rot13' }],
])('refuses the config %j', (config) => {
  expect(objstore.config.safeParse({ bucket: 'documents', region: 'eu-central-1', ...config }).success).toBe(false)
})
