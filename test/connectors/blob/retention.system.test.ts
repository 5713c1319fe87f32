import { createBlob } from '../../../src/connectors/blob/index.ts'
import { createEntraTokens } from '../../../src/connectors/shared/entra-tokens.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startAzurite } from '../../support/azurite.ts'
import { startImmutableBlobs, versionId } from '../../support/immutable-blobs.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from '../payloads.ts'

// Azurite takes the headers of a retention and keeps none: a double before it does as Azure documents it.

const blob = createBlob(createEntraTokens(), createPartMemory())
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const azurite = await startAzurite()
const store = await startImmutableBlobs(azurite.port)
afterAll(async () => {
  await store[Symbol.asyncDispose]()
  await azurite.stop()
  await outbound.close()
})

const targetAt = (port: number, config: object = {}) => ({
  config: blob.config.parse({
    account_url: `http://127.0.0.1:${port}/${azurite.accountName}`,
    container: azurite.container,
    immutability_mode: 'locked',
    retain_until: '{meta.retain_until}',
    legal_hold: true,
    ...config,
  }),
  credentials: blob.credentials.parse({ account_key: azurite.accountKey }),
})
const fields = { retain_until: '20311231' }
const sizes = [
  ['in one request', () => ({ ...payloadOf(Buffer.from('0123456789')), fields })],
  ['in blocks', () => ({ ...largePayload(12 * MiB), fields })],
] as const

test.each(sizes)('a document that is sent %s gets retention and legal hold, and is stored once', async (_, payload) => {
  const sent = payload()
  const target = targetAt(store.port)
  const writes = store.written.length
  const result = await blob.deliver(sent, target, contextOf(outbound))
  expect(store.protectionOf(sent.path)).toEqual({ until: 'Wed, 31 Dec 2031 23:59:59 GMT', mode: 'Locked', isOnHold: true })
  expect(result.answer).toMatchObject({ retain_until: '2031-12-31T23:59:59.000Z', immutability_mode: 'Locked', legal_hold: 'on' })
  expect(await blob.deliver({ ...sent, attempt: 2 }, target, contextOf(outbound))).toMatchObject({ bytesSent: 0 })
  expect(store.written).toHaveLength(writes + 1)
  expect(store.conditions.at(-1)).toBe('*')
  // Other bytes are another version.
  await blob.deliver({ ...payloadOf(Buffer.from('another')), fields, path: sent.path }, target, contextOf(outbound))
  expect(store.written).toHaveLength(writes + 2)
  expect(store.conditions.at(-1)).toBeUndefined()
})

test.each([
  ['whose version is locked is read', 'v', true],
  ['whose version is not there is missing', 'other', false],
  ['of which no version is known is missing', undefined, false],
])('a blob that a lifecycle has hidden, and %s', async (_, version, isThere) => {
  const sent = { ...payloadOf(Buffer.from('0123456789')), fields }
  const target = targetAt(store.port)
  const { path: location, answer } = await blob.deliver(sent, target, contextOf(outbound))
  expect(answer).toMatchObject({ version_id: versionId })
  const pieces: Buffer[] = []
  const copy = { ...sent, location, versionId: version === 'v' ? versionId : version }
  const read = () =>
    blob.read!(copy, { start: 2, end: 5 }, target, contextOf(outbound), async (bytes) => {
      for await (const piece of bytes) pieces.push(piece)
    })
  expect(await read()).toBe(true)
  store.hide(sent.path)
  expect(await read()).toBe(isThere)
  expect(String(Buffer.concat(pieces))).toBe(isThere ? '23452345' : '2345')
})

test('without a date, nothing is sent', async () => {
  const sent = payloadOf(Buffer.from('x'))
  expect(await failure(blob.deliver(sent, targetAt(store.port), contextOf(outbound)))).toMatchObject({ code: 'retention_unknown' })
  expect(store.protectionOf(sent.path)).toBeUndefined()
})

test('a test of the destination says if the account protects what it has taken', async () => {
  expect(await blob.probe(targetAt(store.port), contextOf(outbound))).toMatch(/No probe remains\. They were protected, for two minutes/)
  expect(store.protectionOf('-blocks')).toMatchObject({ mode: 'Locked', isOnHold: false })
  expect(await failure(blob.probe(targetAt(azurite.port), contextOf(outbound)))).toMatchObject({ code: 'lock_missing', permanent: true })
})
