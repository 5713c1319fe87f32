import { createHash, createHmac, randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { Parcel } from '../../src/connectors/connector.ts'
import { webhook } from '../../src/connectors/webhook.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { contextOf, largeParcel, MiB, parcelOf } from './parcels.ts'

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
const only = () => {
  expect(server.arrivals).toHaveLength(1)
  return server.arrivals[0]!
}

describe('what a webhook sends', () => {
  test('the bytes as they are, with the headers that name them', async () => {
    const bytes = randomBytes(5_000)
    const parcel = parcelOf(bytes, { docId: 'Ä 1%', path: 'R1/ä/x y', contentType: 'image/tiff' })

    const receipt = await deliver(parcel, { method: 'PUT', headers: { 'X-Tenant': 'blue' } })

    const { method, headers, body } = only()
    expect(method).toBe('PUT')
    expect(body.equals(bytes)).toBe(true)
    expect(headers).toMatchObject({
      'content-type': 'image/tiff',
      'content-length': '5000',
      'content-digest': `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`,
      'webhook-id': parcel.deliveryId,
      'x-relay-repo-id': 'R1',
      'x-relay-doc-id': '%C3%84 1%25',
      'x-relay-comp-id': 'data',
      'x-relay-document-id': parcel.documentId,
      'x-relay-path': 'R1/%C3%A4/x y',
      'x-tenant': 'blue',
    })
    expect(headers).not.toHaveProperty('webhook-signature')
    expect(headers).not.toHaveProperty('transfer-encoding')
    expect(receipt).toEqual({ path: `${server.origin}/inbox`, bytesSent: 5_000, answer: { status: 200, body: 'taken' } })
  })

  test.each([0, 1, 2, 3, 70_000])('a document of %i bytes as JSON', async (sizeBytes) => {
    const bytes = randomBytes(sizeBytes)
    const parcel = parcelOf(bytes, { docId: 'quo"te' })

    await deliver(parcel, { format: 'json' })

    const { headers, body } = only()
    expect(headers['content-type']).toBe('application/json')
    expect(headers['content-length']).toBe(String(body.length))
    const sent = JSON.parse(body.toString()) as { content: string }
    expect(sent).toMatchObject({
      type: 'document',
      document: {
        delivery_id: parcel.deliveryId,
        repo_id: 'R1',
        doc_id: 'quo"te',
        size_bytes: sizeBytes,
        sha256: parcel.sha256,
        received_at: '2026-11-21T09:00:00.000Z',
      },
    })
    expect(Buffer.from(sent.content, 'base64').equals(bytes)).toBe(true)
  })

  test('a form of metadata and file', async () => {
    const bytes = randomBytes(70_000)
    const parcel = parcelOf(bytes, { path: 'R1/Grüße "2026".pdf' })

    await deliver(parcel, { format: 'multipart' })

    const { headers, body } = only()
    expect(headers['content-length']).toBe(String(body.length))
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': String(headers['content-type']) } }).formData()
    expect(JSON.parse(form.get('metadata') as string)).toMatchObject({ path: 'R1/Grüße "2026".pdf', sha256: parcel.sha256 })
    const file = form.get('file') as File
    expect(file.name).toBe('Grüße "2026".pdf')
    expect(file.type).toBe('application/pdf')
    expect(Buffer.from(await file.arrayBuffer()).equals(bytes)).toBe(true)
  })

  test.each(['json', 'multipart'])('a large document as %s, signed, with the length it announced', async (format) => {
    const parcel = largeParcel(20 * MiB + 1)
    await deliver(parcel, { format }, { secret: 'x' })
    const { headers, sizeBytes } = only()
    expect(headers['content-length']).toBe(String(sizeBytes))
    expect(sizeBytes).toBeGreaterThan(20 * MiB)
  })

  test('a content type that HTTP cannot carry does not break the request', async () => {
    await deliver(parcelOf(Buffer.from('x'), { contentType: 'text/plain\r\nx-injected: 1' }))
    expect(only().headers['content-type']).toBe('application/octet-stream')
    expect(only().headers).not.toHaveProperty('x-injected')
  })

  test.each([
    [{ bearer_token: 'abc' }, 'authorization', 'Bearer abc'],
    [{ username: 'u', password: 'pä' }, 'authorization', `Basic ${Buffer.from('u:pä').toString('base64')}`],
    [{ header_name: 'X-Api-Key', header_value: 'k1' }, 'x-api-key', 'k1'],
  ])('the credentials %j', async (credentials, header, value) => {
    await deliver(parcelOf(Buffer.from('x')), {}, credentials)
    expect(only().headers[header]).toBe(value)
  })

  test('one connection for documents that follow each other', async () => {
    const before = server.connections()
    for (let sent = 0; sent < 5; sent += 1) await deliver(parcelOf(Buffer.from('x')))
    expect(server.connections() - before).toBeLessThanOrEqual(1)
  })
})

describe('the signature of a webhook', () => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`

  test('is one the Standard Webhooks library verifies', async () => {
    await deliver(parcelOf(Buffer.from('{"größe":1}')), {}, { secret })
    const { headers, body } = only()
    expect(new Webhook(secret).verify(body.toString(), headers as Record<string, string>)).toEqual({ größe: 1 })
    expect(() => new Webhook(secret).verify(`${body.toString()} `, headers as Record<string, string>)).toThrow(
      'No matching signature found',
    )
  })

  test('covers the bytes of a document that is no text', async () => {
    const bytes = randomBytes(100_000)
    await deliver(parcelOf(bytes), {}, { secret })
    const { headers } = only()
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const expected = createHmac('sha256', key)
      .update(`${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.`)
      .update(bytes)
      .digest('base64')
    expect(headers['webhook-signature']).toBe(`v1,${expected}`)
  })

  test('is there twice while secrets are changed, and keeps its id from attempt to attempt', async () => {
    const parcel = parcelOf(Buffer.from('{}'))
    await deliver(parcel, { format: 'json' }, { secret, previous_secret: 'plain words' })
    await deliver(parcel, { format: 'json' }, { secret, previous_secret: 'plain words' })
    const [first, second] = server.arrivals
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect(String(first?.headers['webhook-signature']).split(' ')).toHaveLength(2)
    for (const key of [secret, Buffer.from('plain words').toString('base64')]) {
      expect(() => new Webhook(key).verify(first!.body.toString(), first!.headers as Record<string, string>)).not.toThrow()
    }
  })

  test('is on the ping of a probe too', async () => {
    await webhook.probe(target({}, { secret }), contextOf(outbound))
    const { headers, body } = only()
    expect(headers['content-type']).toBe('application/json')
    expect(new Webhook(secret).verify(body.toString(), headers as Record<string, string>)).toEqual({ type: 'ping' })
  })
})
