import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import type { Payload } from '../../../src/connectors/connector.ts'
import { createWebhook } from '../../../src/connectors/webhook/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { cutHeads, oddHeads, startOddServer } from '../../support/odd-heads.ts'
import { contextOf, largePayload, MiB, payloadOf, failure } from '../payloads.ts'

const webhook = createWebhook()

const server = await startHttpTarget()
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
beforeEach(() => {
  server.arrivals.length = 0
  server.answerWith((_, response) => response.end('accepted'))
})
afterAll(async () => {
  await outbound.close()
  await server.stop()
})

const target = (config: object = {}, credentials: object = {}) => ({
  config: webhook.config.parse({ url: `${server.origin}/inbox?key=in-the-query`, ...config }),
  credentials: webhook.credentials.parse(credentials),
})
const deliver = (payload: Payload, config: object = {}, credentials: object = {}, overrides: Parameters<typeof contextOf>[1] = {}) =>
  webhook.deliver(payload, target(config, credentials), contextOf(outbound, overrides))
describe('the head of the response to a webhook', () => {
  const sendPast = async (change: (head: string) => string) => {
    await using odd = await startOddServer(server.port)
    odd.change(change)
    const sent = deliver(payloadOf(Buffer.from('x')), { url: `http://127.0.0.1:${odd.port}/inbox` })
    await sent.catch(() => {})
    expect(server.arrivals).toHaveLength(1)
    return (await sent).answer
  }

  test.each(Object.entries(oddHeads))('may contain %s: the document is delivered once', async (_, change) => {
    expect(await sendPast(change)).toEqual({ status: 200, body: 'accepted' })
  })

  test.each(Object.entries(cutHeads))('may be one that nobody can read after its status line: %s', async (_, change) => {
    const note = expect.stringMatching(/^the answer broke off after its status \(Parse Error: /) as string
    expect(await sendPast(change)).toEqual({ status: 200, body: '', note })
  })

  test.each(Object.entries(cutHeads))('that nobody can read is a failure with the status of its line: %s', async (_, change) => {
    for (const [status, permanent] of [
      [503, false],
      [404, true],
    ] as const) {
      const sent = failure(sendPast((head) => change(head.replace('200', String(status)))))
      expect(await sent).toMatchObject({ code: `http_${status}`, permanent })
      server.arrivals.length = 0
    }
  })
})

describe('the response to a webhook', () => {
  test.each<[string, (text: string) => Buffer, string]>([
    ['gzip', gzipSync, 'accepted, and kept as text'],
    ['br', brotliCompressSync, 'accepted, and kept as text'],
    ['deflate', deflateSync, 'accepted, and kept as text'],
    ['zstd', (text) => Buffer.from(text), ''],
  ])('is kept as text, or not at all, if its encoding is %s', async (encoding, encode, body) => {
    const bytes = encode('accepted, and kept as text')
    server.answerWith((_, response) => response.writeHead(200, { 'content-encoding': encoding }).end(bytes))
    expect((await deliver(payloadOf(Buffer.from('x')))).answer).toMatchObject({ status: 200, body })
  })

  test('counts as delivered if it cannot be decoded', async () => {
    server.answerWith((_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip'))
    expect((await deliver(payloadOf(Buffer.from('x')))).answer).toMatchObject({ status: 200, body: '' })
  })

  const answer = (status: number, headers: Record<string, string> = {}, body = '') =>
    server.answerWith((_, response) => response.writeHead(status, headers).end(body))

  test.each([
    [400, true],
    [403, true],
    [404, true],
    [410, true],
    [412, true],
    [413, true],
    [422, true],
    [408, false],
    [409, false],
    [402, false],
    [420, false],
    [421, false],
    [423, false],
    [424, false],
    [425, false],
    [449, false],
    [498, false],
    [429, false],
    [500, false],
    [502, false],
    [503, false],
    [508, true],
  ])('with status %i is a permanent failure: %s', async (status, permanent) => {
    answer(status, {}, 'because')
    expect(await failure(deliver(payloadOf(Buffer.from('x'))))).toMatchObject({
      code: `http_${status}`,
      permanent,
      answer: { status, body: 'because' },
    })
  })

  test.each<[number, string, Record<string, string>]>([
    [403, '<html><title>Just a moment...</title></html>', { 'content-type': 'text/html; charset=UTF-8' }],
    [403, '<HTML><HEAD><TITLE>Request blocked</TITLE></HEAD>', { 'content-type': 'TEXT/HTML' }],
    [403, '{"message":"You have exceeded a secondary rate limit"}', {}],
    [403, '{"message":"Limit Exceeded"}', {}],
    [403, '{"error":"quota exceeded for this month"}', {}],
    [403, 'There might be too much traffic. Try again later.', {}],
    [403, '{"message":"forbidden"}', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '30' }],
    [400, '{"code":"ThrottlingException","message":"Rate exceeded"}', {}],
    [400, 'SHA-256 digest does not match the body', {}],
    [422, 'The record is locked by another user', {}],
    [401, 'Message timestamp too old', {}],
    [401, 'the clocks differ by more than five minutes', {}],
  ])('with status %i passes if it says so: %s', async (status, text, headers) => {
    answer(status, headers, text)
    expect(await failure(deliver(payloadOf(Buffer.from('x'))))).toMatchObject({ permanent: false, answer: { status } })
  })

  test.each<[number, string, Record<string, string>]>([
    [403, '{"message":"Forbidden"}', { 'content-type': 'application/json' }],
    [404, '<html>not here</html>', { 'content-type': 'text/html' }],
    [413, '<html>413 Request Entity Too Large: limit exceeded</html>', { 'content-type': 'text/html' }],
    [400, 'the maximum size limit is exceeded', {}],
    [422, 'the file is too large: limit exceeded', {}],
    [400, '{"error":"invalid_grant","retryable":"do not retry"}', {}],
    [401, 'the token has expired; request limit unlimited', {}],
  ])('with status %i is final if it does not: %s', async (status, text, headers) => {
    answer(status, headers, text)
    expect(await failure(deliver(payloadOf(Buffer.from('x'))))).toMatchObject({ permanent: true, answer: { status } })
  })

  test.each([200, 201, 202, 204])('with status %i means delivered', async (status) => {
    answer(status)
    expect(await deliver(payloadOf(Buffer.from('x')))).toMatchObject({ answer: { status } })
  })

  test.each([301, 302, 303, 307, 308])(
    'with the redirect status %i is a failed attempt, and the redirect is not followed',
    async (status) => {
      const elsewhere = await startHttpTarget()
      answer(status, { location: `${elsewhere.origin}/moved?key=secret` })
      const error = await failure(deliver(payloadOf(Buffer.from('x')), {}, { bearer_token: 'abc' }))
      expect(error).toMatchObject({ code: `http_${status}`, permanent: false })
      expect(error.message).toContain(`${elsewhere.origin}/moved`)
      expect(error.message).not.toContain('key=secret')
      expect(elsewhere.connections()).toBe(0)
      await elsewhere.stop()
    },
  )

  test('may ask to wait with Retry-After in seconds or as a date', async () => {
    answer(429, { 'retry-after': '7' })
    expect(await failure(deliver(payloadOf(Buffer.from('x'))))).toMatchObject({ retryAfterMs: 7_000 })

    answer(503, { 'retry-after': new Date(Date.now() + 60_000).toUTCString() })
    const { retryAfterMs } = await failure(deliver(payloadOf(Buffer.from('x'))))
    expect(retryAfterMs).toBeGreaterThan(55_000)
    expect(retryAfterMs).toBeLessThanOrEqual(60_000)

    answer(503, { 'retry-after': 'soon' })
    expect(await failure(deliver(payloadOf(Buffer.from('x'))))).toMatchObject({ retryAfterMs: undefined })
  })

  test('is kept up to the limit', async () => {
    answer(200, {}, 'y'.repeat(5 * MiB))
    const { answer: kept } = await deliver(payloadOf(Buffer.from('x')), {}, {}, { answerMaxBytes: 100 })
    expect(kept?.body).toBe('y'.repeat(100))
  })

  test('is not read for ever if it never ends, since its status is known', async () => {
    server.answerWith((_, response) => {
      response.writeHead(200)
      const drip = setInterval(() => response.write('.'), 50)
      response.on('close', () => clearInterval(drip))
    })
    const startedAt = Date.now()
    const { answer: kept } = await deliver(payloadOf(Buffer.from('x')), {}, {}, { idleTimeoutMs: 500 })
    expect(kept?.status).toBe(200)
    expect(Date.now() - startedAt).toBeLessThan(30_000)
  })

  test('times out if the target reads the request and never answers', async () => {
    server.answerWith(() => {})
    expect(await failure(deliver(payloadOf(Buffer.from('x')), {}, {}, { idleTimeoutMs: 500 }))).toMatchObject({
      code: 'timeout',
      permanent: false,
    })
  })

  test('shows no secret that the target echoes', async () => {
    server.answerWith(({ headers }, response) => response.writeHead(500).end(`you said ${headers.authorization} \0`))
    for (const credentials of [{ bearer_token: 'very-secret' }, { username: 'someone', password: 'very-secret' }]) {
      const error = await failure(deliver(payloadOf(Buffer.from('x')), {}, credentials))
      const text = JSON.stringify([error.message, error.answer])
      expect(text).not.toContain('very-secret')
      expect(text).not.toContain(Buffer.from('someone:very-secret').toString('base64'))
      expect(error.answer?.body).toContain('[REDACTED]')
      expect(error.answer?.body).not.toContain('\0')
    }
  })

  test('shows no key of the address or of a header that the target echoes, and leaves ordinary words', async () => {
    const path = '/services/T0123456789ABCDEF/in'
    answer(404, {}, `no ${path} for canary-query in services, X-Tenant canary-header-value`)
    const config = { url: `${server.origin}${path}?key=canary-query&env=prod`, headers: { 'X-Tenant': 'canary-header-value' } }
    expect(await failure(deliver(payloadOf(Buffer.from('x')), config))).toMatchObject({
      answer: { body: 'no /services/[REDACTED]/in for [REDACTED] in services, X-Tenant [REDACTED]' },
    })
  })

  test('shows no beginning of a secret either, if the limit cuts it', async () => {
    server.answerWith(({ headers }, response) => response.end(`you said ${headers.authorization} and more`))
    const kept = async (answerMaxBytes: number) => {
      const { answer: text } = await deliver(payloadOf(Buffer.from('x')), {}, { bearer_token: 'very-secret' }, { answerMaxBytes })
      return text?.body
    }
    const before = 'you said Bearer '
    expect(await kept(before.length + 'very-sec'.length)).toBe(before)
    expect(await kept(before.length + 'very-secret'.length)).toBe(before)
    expect(await kept(before.length - 2)).toBe('you said Beare')
  })

  test('is no success if it arrives before the document was sent', async () => {
    const hasty = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
        socket.pause()
      })
    }).listen(0, '127.0.0.1')
    await once(hasty, 'listening')
    const url = `http://127.0.0.1:${(hasty.address() as AddressInfo).port}/`
    expect(await failure(deliver(largePayload(50 * MiB), { url }))).toMatchObject({ permanent: false })
    hasty.close()
  })
})
