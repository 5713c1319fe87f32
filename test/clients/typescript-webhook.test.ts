import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { verifyWebhook, WebhookError } from '../../clients/typescript/src/index.ts'
import { createWebhook } from '../../src/connectors/webhook/index.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { contextOf, payloadOf } from '../connectors/payloads.ts'
import { startHttpTarget } from '../support/http-target.ts'

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(() => outbound.close())
const webhook = createWebhook()
const secret = `whsec_${randomBytes(32).toString('base64')}`
// Bytes that are not UTF-8.
const document = Buffer.concat([Buffer.from('%PDF-1.7'), randomBytes(500)])

/** Returns a request of the relay as it arrives. */
const arrivalOf = async (credentials: object, bytes: Buffer = document) => {
  await using server = await startHttpTarget()
  const target = {
    config: webhook.config.parse({ url: `${server.origin}/documents`, signatures: 'standard_webhooks' }),
    credentials: webhook.credentials.parse(credentials),
  }
  await webhook.deliver(payloadOf(bytes), target, contextOf(outbound))
  const { headers, body } = server.arrivals[0]!
  return { headers, body, sentMs: Number(headers['webhook-timestamp']) * 1_000 }
}

test.each([
  ['a secret of Standard Webhooks', secret],
  ['any text', 'a secret of my own'],
])('a request that the relay has signed with %s is verified', async (_, key) => {
  const { headers, body, sentMs } = await arrivalOf({ secret: key })
  const verified = { id: headers['webhook-id'], timestamp: new Date(sentMs) }
  expect(await verifyWebhook({ headers, body, secret: key, now: sentMs })).toEqual(verified)
  const ofFetch = new Headers(Object.entries(headers).map(([name, value]) => [name, String(value)]))
  expect(await verifyWebhook({ headers: ofFetch, body, secret: key, now: sentMs })).toEqual(verified)
})

test('while the secret is changed, a request is verified with the new and with the previous one', async () => {
  const { headers, body, sentMs } = await arrivalOf({ secret, previous_secret: 'the one before' })
  const now = sentMs
  expect(await verifyWebhook({ headers, body, secret, now })).toEqual(await verifyWebhook({ headers, body, secret: 'the one before', now }))
})

test('text is verified as its UTF-8 bytes, like the reference implementation', async () => {
  const timestamp = new Date('2026-03-02T10:15:30Z')
  const text = JSON.stringify({ type: 'document', name: 'Müller' })
  const signature = new Webhook(secret).sign('msg_1', timestamp, text)
  const headers = { 'Webhook-Id': 'msg_1', 'Webhook-Timestamp': String(timestamp.getTime() / 1_000), 'Webhook-Signature': signature }
  expect(await verifyWebhook({ headers, body: text, secret, now: timestamp.getTime() })).toEqual({ id: 'msg_1', timestamp })
})

describe('a request is refused', () => {
  const arriving = arrivalOf({ secret })
  const refused = async (change: (arrival: Awaited<typeof arriving>) => Partial<Parameters<typeof verifyWebhook>[0]>) => {
    const arrival = await arriving
    const { headers, body, sentMs } = arrival
    return verifyWebhook({ headers, body, secret, now: sentMs, ...change(arrival) }).catch((thrown: unknown) => thrown)
  }
  const noMatch = new WebhookError('No signature of the header webhook-signature matches.')
  const notNow = new WebhookError('The header webhook-timestamp is not within 300 seconds of now.')
  const signed =
    (text: string) =>
    ({ headers }: Awaited<typeof arriving>) => ({ headers: { ...headers, 'webhook-signature': text } })

  test.each<[string, Parameters<typeof refused>[0], WebhookError]>([
    ['with another secret', () => ({ secret: 'another' }), noMatch],
    ['with another body', () => ({ body: Buffer.concat([document, Buffer.from('!')]) }), noMatch],
    ['with another id', ({ headers }) => ({ headers: { ...headers, 'webhook-id': 'another' } }), noMatch],
    ['with a signature that is no base64', signed('v1,?'), noMatch],
    [
      'with a signature of another version',
      ({ headers }) => signed(String(headers['webhook-signature']).replace('v1,', 'v2,'))({ headers } as never),
      noMatch,
    ],
    ['that is too old', ({ sentMs }) => ({ now: sentMs + 301_000 }), notNow],
    ['from the future', ({ sentMs }) => ({ now: sentMs - 301_000 }), notNow],
    ['without a valid time', ({ headers }) => ({ headers: { ...headers, 'webhook-timestamp': 'now' } }), notNow],
    [
      'without a signature',
      () => ({ headers: { 'webhook-id': 'a', 'webhook-timestamp': '1' } }),
      new WebhookError('The request has no header webhook-signature.'),
    ],
  ])('%s', async (_, change, error) => {
    const thrown = await refused(change)
    expect(thrown).toBeInstanceOf(WebhookError)
    expect(thrown).toEqual(error)
  })

  test('never, if its time is within the tolerance', async () => {
    const { headers } = await arriving
    expect(await refused(({ sentMs }) => ({ now: sentMs + 500_000, toleranceSeconds: 500 }))).toMatchObject({ id: headers['webhook-id'] })
  })
})

test('a secret that is none is an error of the program', async () => {
  const { headers, body, sentMs } = await arrivalOf({ secret })
  for (const wrong of ['', 'whsec_', 'whsec_?', 'whsec_A', 'whsec_abc', 'whsec_abcde=', 'whsec_AB==', 'whsec_AA ==']) {
    await expect(verifyWebhook({ headers, body, secret: wrong, now: sentMs })).rejects.toThrow(
      'The secret of a webhook is whsec_ and base64',
    )
  }
})
