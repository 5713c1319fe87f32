import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import type { Parcel } from '../../src/connectors/connector.ts'
import { webhook } from '../../src/connectors/webhook.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { contextOf, largeParcel, MiB, parcelOf, failure } from './parcels.ts'

let server: HttpTarget
let outbound: OutboundGuard

beforeAll(async () => {
  server = await startHttpTarget()
  outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
})
beforeEach(() => {
  server.arrivals.length = 0
  server.answerWith((_, response) => response.end('taken'))
})
afterAll(async () => {
  await outbound.close()
  await server.stop()
})

const target = (config: object = {}, credentials: object = {}) => ({
  config: webhook.config.parse({ url: `${server.origin}/inbox?key=in-the-query`, ...config }),
  credentials: webhook.credentials.parse(credentials),
})
const deliver = (parcel: Parcel, config: object = {}, credentials: object = {}, overrides: Parameters<typeof contextOf>[1] = {}) =>
  webhook.deliver(parcel, target(config, credentials), contextOf(outbound, overrides))
describe('what a webhook makes of the answer', () => {
  const answer = (status: number, headers: Record<string, string> = {}, body = '') =>
    server.answerWith((_, response) => response.writeHead(status, headers).end(body))

  test.each([
    [400, true],
    [403, true],
    [404, true],
    [410, true],
    [413, true],
    [422, true],
    [408, false],
    [409, false],
    [425, false],
    [429, false],
    [500, false],
    [502, false],
    [503, false],
  ])('%i: final is %s', async (status, permanent) => {
    answer(status, {}, 'because')
    expect(await failure(deliver(parcelOf(Buffer.from('x'))))).toMatchObject({
      code: `http_${status}`,
      permanent,
      answer: { status, body: 'because' },
    })
  })

  test.each([200, 201, 202, 204])('%i: delivered', async (status) => {
    answer(status)
    expect(await deliver(parcelOf(Buffer.from('x')))).toMatchObject({ answer: { status } })
  })

  test.each([301, 302, 303, 307, 308])('%i: a failed attempt, and nobody goes there', async (status) => {
    const elsewhere = await startHttpTarget()
    answer(status, { location: `${elsewhere.origin}/moved?key=secret` })
    const error = await failure(deliver(parcelOf(Buffer.from('x')), {}, { bearer_token: 'abc' }))
    expect(error).toMatchObject({ code: `http_${status}`, permanent: false })
    expect(error.message).toContain(`${elsewhere.origin}/moved`)
    expect(error.message).not.toContain('key=secret')
    expect(elsewhere.connections()).toBe(0)
    await elsewhere.stop()
  })

  test('keeps a Retry-After in seconds, and in its other form', async () => {
    answer(429, { 'retry-after': '7' })
    expect(await failure(deliver(parcelOf(Buffer.from('x'))))).toMatchObject({ retryAfterMs: 7_000 })

    answer(503, { 'retry-after': new Date(Date.now() + 60_000).toUTCString() })
    const { retryAfterMs } = await failure(deliver(parcelOf(Buffer.from('x'))))
    expect(retryAfterMs).toBeGreaterThan(55_000)
    expect(retryAfterMs).toBeLessThanOrEqual(60_000)

    answer(503, { 'retry-after': 'soon' })
    expect(await failure(deliver(parcelOf(Buffer.from('x'))))).toMatchObject({ retryAfterMs: undefined })
  })

  test('keeps no more of it than it may', async () => {
    answer(200, {}, 'y'.repeat(5 * MiB))
    const { answer: kept } = await deliver(parcelOf(Buffer.from('x')), {}, {}, { answerMaxBytes: 100 })
    expect(kept?.body).toBe('y'.repeat(100))
  })

  test('does not wait for an answer that never ends: its status is known', async () => {
    server.answerWith((_, response) => {
      response.writeHead(200)
      const drip = setInterval(() => response.write('.'), 50)
      response.on('close', () => clearInterval(drip))
    })
    const begun = Date.now()
    const { answer: kept } = await deliver(parcelOf(Buffer.from('x')), {}, {}, { idleTimeoutMs: 500 })
    expect(kept?.status).toBe(200)
    expect(Date.now() - begun).toBeLessThan(3_000)
  })

  test('gives up on a target that takes the request and never answers', async () => {
    server.answerWith(() => {})
    expect(await failure(deliver(parcelOf(Buffer.from('x')), {}, {}, { idleTimeoutMs: 500 }))).toMatchObject({
      code: 'timeout',
      permanent: false,
    })
  })

  test('never shows a secret that the target sends back', async () => {
    server.answerWith(({ headers }, response) => response.writeHead(500).end(`you said ${headers.authorization} \0`))
    for (const credentials of [{ bearer_token: 'very-secret' }, { username: 'someone', password: 'very-secret' }]) {
      const error = await failure(deliver(parcelOf(Buffer.from('x')), {}, credentials))
      const said = JSON.stringify([error.message, error.answer])
      expect(said).not.toContain('very-secret')
      expect(said).not.toContain(Buffer.from('someone:very-secret').toString('base64'))
      expect(error.answer?.body).toContain('[REDACTED]')
      expect(error.answer?.body).not.toContain('\0')
    }
  })

  test('shows no beginning of a secret either, where the answer is cut in the midst of it', async () => {
    server.answerWith(({ headers }, response) => response.end(`you said ${headers.authorization} and more`))
    const kept = async (answerMaxBytes: number) => {
      const { answer: said } = await deliver(parcelOf(Buffer.from('x')), {}, { bearer_token: 'very-secret' }, { answerMaxBytes })
      return said?.body
    }
    const before = 'you said Bearer '
    expect(await kept(before.length + 'very-sec'.length)).toBe(before)
    expect(await kept(before.length + 'very-secret'.length)).toBe(before)
    expect(await kept(before.length - 2)).toBe('you said Beare')
  })

  test('does not believe a success that came before the document was sent', async () => {
    const hasty = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
        socket.pause()
      })
    }).listen(0, '127.0.0.1')
    await once(hasty, 'listening')
    const url = `http://127.0.0.1:${(hasty.address() as AddressInfo).port}/`
    expect(await failure(deliver(largeParcel(50 * MiB), { url }))).toMatchObject({ permanent: false })
    hasty.close()
  })
})
