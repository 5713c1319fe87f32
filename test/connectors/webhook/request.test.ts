import { createHash, createHmac, randomBytes } from 'node:crypto'
import { createVerifier, httpbis } from 'http-message-signatures'
import { Webhook } from 'standardwebhooks'
import type { Payload } from '../../../src/connectors/connector.ts'
import { createWebhook } from '../../../src/connectors/webhook/index.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startHttpTarget, type Arrival } from '../../support/http-target.ts'
import { contextOf, installationId, largePayload, MiB, payloadOf, watched } from '../payloads.ts'

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
const only = () => {
  expect(server.arrivals).toHaveLength(1)
  return server.arrivals[0]!
}

describe('the request of a webhook', () => {
  test('contains the unchanged bytes, and headers that identify the document', async () => {
    const bytes = randomBytes(5_000)
    const payload = payloadOf(bytes, { docId: 'Ä 1%', path: 'R1/ä/x y', contentType: 'image/tiff' })

    const result = await deliver(payload, { method: 'PUT', headers: { 'X-Tenant': 'blue' } })

    const { method, headers, body } = only()
    expect(method).toBe('PUT')
    expect(body.equals(bytes)).toBe(true)
    expect(headers).toMatchObject({
      'content-type': 'image/tiff',
      'content-length': '5000',
      'content-digest': `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`,
      'webhook-id': payload.messageId,
      'x-tenant': 'blue',
      'x-relay-hops': installationId,
    })
    expect(headers).not.toHaveProperty('webhook-signature')
    expect(headers).not.toHaveProperty('transfer-encoding')
    expect(result).toEqual({ path: payload.path, bytesSent: 5_000, answer: { status: 200, body: 'accepted' } })
  })

  test.each(['raw', 'multipart', 'json'])('has headers to route by in the format %s, which can be decoded', async (format) => {
    const known = {
      docId: 'Ä 1%',
      path: 'R1/ä/x y',
      contentType: 'text/plain; name="Grüße\r\n"',
      attempt: 3,
      erpObjectType: 'BKPF',
      erpObjectId: '1000 1900004711 2026',
      arObject: 'ZINVOICE',
      fileName: 'Angebot „Müller“.pdf',
      description: 'bis 2. März',
    }
    const payload = payloadOf(Buffer.from('x'), known)
    await deliver(payload, { format })
    const own = Object.entries(only().headers).filter(([name]) => name.startsWith('x-relay-') && name !== 'x-relay-hops')
    expect(Object.fromEntries(own.map(([name, value]) => [name, decodeURIComponent(String(value))]))).toEqual({
      'x-relay-event-type': 'document',
      'x-relay-workspace': payload.workspace,
      'x-relay-connection-id': payload.connectionId,
      'x-relay-delivery-id': payload.deliveryId,
      'x-relay-attempt': '3',
      'x-relay-document-id': payload.documentId,
      'x-relay-sha256': payload.sha256,
      'x-relay-repo-id': 'R1',
      'x-relay-doc-id': known.docId,
      'x-relay-comp-id': 'data',
      'x-relay-path': known.path,
      'x-relay-object-type': known.erpObjectType,
      'x-relay-object-id': known.erpObjectId,
      'x-relay-ar-object': known.arObject,
      'x-relay-file-name': known.fileName,
      'x-relay-description': known.description,
      'x-relay-content-type': known.contentType,
    })
    for (const [, value] of own) expect(value).toMatch(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/)
  })

  test('has no header for what is unknown, and none that is longer than every server accepts', async () => {
    const long = 'ß'.repeat(255)
    await deliver(payloadOf(Buffer.from('x'), { repoId: long, compId: 'c'.repeat(900), path: `R1/${'p'.repeat(900)}`, erpObjectId: '' }))
    expect(only().headers).not.toHaveProperty('x-relay-object-id')
    expect(only().headers).not.toHaveProperty('x-relay-repo-id')
    expect(only().headers).not.toHaveProperty('x-relay-path')
    expect(only().headers).toMatchObject({ 'x-relay-comp-id': 'c'.repeat(900), 'x-relay-content-type': 'application/pdf' })

    server.arrivals.length = 0
    const full = 'x'.repeat(900)
    const everything = { repoId: full, docId: full, compId: full, path: full, erpObjectId: full, erpObjectType: full, arObject: 'ZINVOICE' }
    await deliver(payloadOf(Buffer.from('x'), everything))
    const own = Object.entries(only().headers).filter(([name]) => name.startsWith('x-relay-'))
    expect(own.reduce((sum, [name, value]) => sum + name.length + String(value).length, 0)).toBeLessThan(4_500)
    expect(only().headers).toMatchObject({ 'x-relay-doc-id': full, 'x-relay-ar-object': 'ZINVOICE' })
  })

  test.each([0, 1, 2, 3, 70_000])('contains a document of %i bytes as JSON', async (sizeBytes) => {
    const bytes = randomBytes(sizeBytes)
    const payload = payloadOf(bytes, { docId: 'quo"te' })

    await deliver(payload, { format: 'json' })

    const { headers, body } = only()
    expect(headers['content-type']).toBe('application/json')
    expect(headers['content-length']).toBe(String(body.length))
    const sent = JSON.parse(body.toString()) as { content: string }
    expect(sent).toMatchObject({
      type: 'document',
      document: {
        delivery_id: payload.deliveryId,
        repo_id: 'R1',
        doc_id: 'quo"te',
        size_bytes: sizeBytes,
        sha256: payload.sha256,
        received_at: '2026-11-21T09:00:00.000Z',
      },
    })
    expect(Buffer.from(sent.content, 'base64').equals(bytes)).toBe(true)
  })

  test('contains a form with metadata and file', async () => {
    const bytes = randomBytes(70_000)
    const payload = payloadOf(bytes, { path: 'R1/Grüße "2026".pdf' })

    await deliver(payload, { format: 'multipart' })

    const { headers, body } = only()
    expect(headers['content-length']).toBe(String(body.length))
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': String(headers['content-type']) } }).formData()
    expect(JSON.parse(form.get('metadata') as string)).toMatchObject({ path: 'R1/Grüße "2026".pdf', sha256: payload.sha256 })
    const file = form.get('file') as File
    expect(file.name).toBe('Grüße "2026".pdf')
    expect(file.type).toBe('application/pdf')
    expect(Buffer.from(await file.arrayBuffer()).equals(bytes)).toBe(true)
  })

  test.each(['json', 'multipart'])('contains a large document as %s, signed, with the announced length', async (format) => {
    const payload = largePayload(20 * MiB + 1)
    await deliver(payload, { format }, { secret: 'x' })
    const { headers, sizeBytes } = only()
    expect(headers['content-length']).toBe(String(sizeBytes))
    expect(sizeBytes).toBeGreaterThan(20 * MiB)
  })

  test('replaces a content type that HTTP cannot carry', async () => {
    await deliver(payloadOf(Buffer.from('x'), { contentType: 'text/plain\r\nx-injected: 1' }))
    expect(only().headers['content-type']).toBe('application/octet-stream')
    expect(only().headers).not.toHaveProperty('x-injected')
  })

  test.each([
    [{ bearer_token: 'abc' }, 'authorization', 'Bearer abc'],
    [{ username: 'u', password: 'pä' }, 'authorization', `Basic ${Buffer.from('u:pä').toString('base64')}`],
    [{ header_name: 'X-Api-Key', header_value: 'k1' }, 'x-api-key', 'k1'],
  ])('contains the credentials %j', async (credentials, header, value) => {
    await deliver(payloadOf(Buffer.from('x')), {}, credentials)
    expect(only().headers[header]).toBe(value)
  })

  test('reuses connections for consecutive documents', async () => {
    const before = server.connections()
    for (let sent = 0; sent < 5; sent += 1) await deliver(payloadOf(Buffer.from('x')))
    // On a busy machine, a pause can be longer than a connection is kept.
    expect(server.connections() - before).toBeLessThan(5)
  })
})

describe('the signature of a webhook', () => {
  const secret = `whsec_${randomBytes(32).toString('base64')}`

  test('is verified by the Standard Webhooks library', async () => {
    await deliver(payloadOf(Buffer.from('{"größe":1}')), { signatures: 'standard_webhooks' }, { secret })
    const { headers, body } = only()
    expect(new Webhook(secret).verify(body.toString(), headers as Record<string, string>)).toEqual({ größe: 1 })
    expect(() => new Webhook(secret).verify(`${body.toString()} `, headers as Record<string, string>)).toThrow(
      'No matching signature found',
    )
  })

  test('covers the bytes of a binary document', async () => {
    const bytes = randomBytes(100_000)
    await deliver(payloadOf(bytes), { signatures: 'standard_webhooks' }, { secret })
    const { headers } = only()
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const expected = createHmac('sha256', key)
      .update(`${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.`)
      .update(bytes)
      .digest('base64')
    expect(headers['webhook-signature']).toBe(`v1,${expected}`)
  })

  test('has two values while the secret is changed, and every attempt has the same id', async () => {
    const payload = payloadOf(Buffer.from('{}'))
    await deliver(payload, { format: 'json', signatures: 'both' }, { secret, previous_secret: 'plain words' })
    await deliver(payload, { format: 'json', signatures: 'both' }, { secret, previous_secret: 'plain words' })
    const [first, second] = server.arrivals
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect(String(first?.headers['webhook-signature']).split(' ')).toHaveLength(2)
    for (const key of [secret, Buffer.from('plain words').toString('base64')]) {
      expect(() => new Webhook(key).verify(first!.body.toString(), first!.headers as Record<string, string>)).not.toThrow()
    }
  })

  test.each([
    ['2999-01-01T00:00:00Z', 2],
    ['2999-01-01T00:00:00+14:00', 2],
    ['2001-01-01T00:00:00Z', 1],
    ['2001-01-01T00:00:00-12:00', 1],
  ])('has as many values, if the previous secret ends at %s: %d', async (end, count) => {
    const credentials = { secret, previous_secret: 'plain words', previous_secret_expires_at: end }
    await deliver(payloadOf(Buffer.from('{}')), { format: 'json', signatures: 'both' }, credentials)
    const { headers, body } = server.arrivals.at(-1)!
    expect(String(headers['webhook-signature']).split(' ')).toHaveLength(count)
    expect(() => new Webhook(secret).verify(body.toString(), headers as Record<string, string>)).not.toThrow()
  })

  const both = { secret, previous_secret: 'plain words' }
  const keyOf = (text: string) => (text.startsWith('whsec_') ? Buffer.from(text.slice('whsec_'.length), 'base64') : Buffer.from(text))
  const keyIdOf = (text: string) => createHash('sha256').update(keyOf(text)).digest('hex').slice(0, 16)
  /** Verifies a request with a library for HTTP Message Signatures, by each of the secrets. */
  const verified = ({ method, headers, url }: Pick<Arrival, 'method' | 'headers' | 'url'>, secrets: string[]) =>
    Promise.all(
      secrets.map((text) =>
        httpbis.verifyMessage(
          {
            keyLookup: async ({ keyid }) =>
              keyid === keyIdOf(text) ? { id: keyid, algs: ['hmac-sha256'], verify: createVerifier(keyOf(text), 'hmac-sha256') } : null,
            requiredFields: ['@method', 'content-digest', 'content-type', 'webhook-id'],
            requiredParams: ['created', 'keyid', 'alg'],
          },
          { method, headers: headers as Record<string, string>, url: `${server.origin}${url}` },
        ),
      ),
    )
  const digestOf = (bytes: Buffer) => `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`

  test.each([
    ['raw', undefined, 1],
    ['raw', 'http_message', 1],
    ['json', 'http_message', 2],
    ['multipart', 'http_message', 2],
    ['raw', 'both', 2],
    ['json', 'both', 2],
    ['raw', 'standard_webhooks', 2],
  ] as const)('of a body of the format %s, in the form %s, needs the document read so often: %i', async (format, signatures, times) => {
    const { payload, starts } = watched(payloadOf(randomBytes(70_000), { docId: 'Ä 1%', contentType: 'text/plain; charset=utf-8 ' }))
    await deliver(payload, { format, method: 'PUT', ...(signatures && { signatures }) }, both)
    const arrival = only()
    expect(starts).toEqual(Array.from({ length: times }, () => 0))
    const isHttp = signatures !== 'standard_webhooks'
    expect(await verified(arrival, isHttp ? [secret, 'plain words'] : [])).toEqual(isHttp ? [true, true] : [])
    expect(arrival.headers).toMatchObject(isHttp || format === 'raw' ? { 'content-digest': digestOf(arrival.body) } : {})
    expect(arrival.headers).toHaveProperty(isHttp ? 'signature-input' : 'webhook-signature')
    expect('signature' in arrival.headers).toBe(isHttp)
    expect('webhook-signature' in arrival.headers).toBe(!['http_message', undefined].includes(signatures))
    for (const name of isHttp ? ['webhook-id', 'content-type', 'content-digest', 'x-relay-doc-id', 'x-relay-path'] : []) {
      const altered = { ...arrival, headers: { ...arrival.headers, [name]: 'another' } }
      expect([name, await verified(altered, [secret])]).toEqual([name, [false]])
    }
    if (isHttp) expect(await verified({ ...arrival, method: 'POST' }, [secret])).toEqual([false])
  })

  test('names the key of each signature, so that a receiver finds its own', async () => {
    await deliver(payloadOf(Buffer.from('x')), {}, both)
    expect(String(only().headers['signature-input'])).toMatch(
      new RegExp(`^relay=.*keyid="${keyIdOf(secret)}".*, relay_previous=.*keyid="${keyIdOf('plain words')}"`),
    )
    expect(await verified(only(), ['unknown'])).toEqual([null])
  })

  test('is absent without a secret, and no document is read for it', async () => {
    const { payload, starts } = watched(payloadOf(Buffer.from('x')))
    await deliver(payload, { format: 'json' })
    for (const name of ['signature', 'signature-input', 'webhook-signature', 'content-digest'])
      expect(only().headers).not.toHaveProperty(name)
    expect(starts).toEqual([0])
  })

  test('is sent in both forms with the ping of a probe', async () => {
    await webhook.probe(target({}, { secret }), contextOf(outbound))
    const { headers, body } = only()
    expect(headers['content-type']).toBe('application/json')
    expect(new Webhook(secret).verify(body.toString(), headers as Record<string, string>)).toEqual({ type: 'ping' })
    expect(headers).toMatchObject({ 'x-relay-event-type': 'ping', 'content-digest': digestOf(body) })
    expect(await verified(only(), [secret])).toEqual([true])
  })
})
