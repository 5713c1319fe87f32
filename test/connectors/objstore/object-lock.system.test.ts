import type { IncomingMessage } from 'node:http'
import {
  DeleteObjectCommand,
  GetObjectLegalHoldCommand,
  GetObjectRetentionCommand,
  HeadObjectCommand,
  ListObjectVersionsCommand,
  PutObjectLockConfigurationCommand,
} from '@aws-sdk/client-s3'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startRefusingStore } from '../../support/refusing-store.ts'
import { startS3Server } from '../../support/s3-server.ts'
import { contextOf, failure, largePayload, MiB, payloadOf as payloadWith } from '../payloads.ts'

// Against versitygw with versions of objects, which enforces Object Lock.

const objstore = createObjstore(createPartMemory())
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const server = await startS3Server({ isLocked: true })
const plain = await startS3Server()
afterAll(async () => {
  await server.stop()
  await plain.stop()
  await outbound.close()
})

const dayMs = 86_400_000
const payloadOf = (bytes: Buffer) => payloadWith(bytes, { receivedAt: new Date() })
const targetAt = (port: number, config: object = {}) => ({
  config: objstore.config.parse({
    bucket: server.bucket,
    region: 'us-east-1',
    endpoint: `http://127.0.0.1:${port}`,
    path_style: true,
    object_lock_mode: 'COMPLIANCE',
    retain_days: 10,
    legal_hold: true,
    ...config,
  }),
  credentials: objstore.credentials.parse({ access_key_id: server.accessKeyId, secret_access_key: server.secretAccessKey }),
})
const lockOf = async (Key: string) => {
  const head = await server.client.send(new HeadObjectCommand({ Bucket: server.bucket, Key }))
  const { ObjectLockMode: mode, ObjectLockRetainUntilDate: until, ObjectLockLegalHoldStatus: hold, VersionId } = head
  return { mode, until, hold, VersionId }
}
const versionsOf = async (Prefix: string) =>
  (await server.client.send(new ListObjectVersionsCommand({ Bucket: server.bucket, Prefix }))).Versions ?? []
const deliver = (payload: ReturnType<typeof payloadOf>, port = server.port, config: object = {}) =>
  objstore.deliver(payload, targetAt(port, config), contextOf(outbound))

const sizes = [
  ['in one request', () => payloadOf(Buffer.from('0123456789'))],
  ['in parts', () => ({ ...largePayload(12 * MiB), receivedAt: new Date() })],
] as const

describe.each(sizes)('a document that is sent %s', (_, payload) => {
  test('has the retention and the legal hold of the destination, and its version cannot be deleted', async () => {
    const sent = payload()
    await deliver(sent)
    const { VersionId, ...lock } = await lockOf(sent.path)
    const until = new Date(Math.floor((sent.receivedAt.getTime() + 10 * dayMs) / 1_000) * 1_000)
    expect(lock).toEqual({ mode: 'COMPLIANCE', until, hold: 'ON' })
    const remove = new DeleteObjectCommand({ Bucket: server.bucket, Key: sent.path, VersionId })
    await expect(server.client.send(remove)).rejects.toMatchObject({ $metadata: { httpStatusCode: 403 } })
  })

  test('has the retention of a field of its business data, to the end of that day', async () => {
    const sent = { ...payload(), fields: { retain_until: '2031-12-31' } }
    await deliver(sent, server.port, { retain_until: '{meta.retain_until}', object_lock_mode: undefined, legal_hold: false })
    expect(await lockOf(sent.path)).toMatchObject({ mode: 'GOVERNANCE', until: new Date('2031-12-31T23:59:59Z'), hold: undefined })
  })

  test('makes one version, however often it is repeated, and another one with other bytes', async () => {
    const sent = payload()
    await deliver(sent)
    const again = await deliver({ ...sent, attempt: 2 })
    expect(again).toMatchObject({ bytesSent: 0, answer: { version_id: (await versionsOf(sent.path))[0]!.VersionId } })
    expect(await versionsOf(sent.path)).toHaveLength(1)
    await deliver({ ...payloadOf(Buffer.from('another')), path: sent.path })
    expect(await versionsOf(sent.path)).toHaveLength(2)
  })

  test('makes one version if two attempts overlap', async () => {
    const sent = payload()
    let looks = 0
    // The second one looks before the first one has stored anything.
    await using late = await startRefusingStore(server.port, ({ method }) => {
      if (method !== 'HEAD') return undefined
      looks += 1
      return looks === 1 ? { status: 404 } : undefined
    })
    await deliver(sent)
    const { answer } = await deliver({ ...sent, attempt: 2 }, late.port)
    expect(answer).toMatchObject({ body: expect.stringContaining('found in its place') })
    expect(looks).toBe(2)
    expect(await versionsOf(sent.path)).toHaveLength(1)
  })

  test('goes with a digest in each request that stores bytes, and with no question whether it is new to a store that does not know it', async () => {
    const sent = payload()
    const [undigested, conditional]: string[][] = [[], []]
    const hasDigest = ({ headers }: IncomingMessage) =>
      headers['content-md5'] !== undefined || Object.keys(headers).some((name) => name.startsWith('x-amz-checksum-'))
    await using store = await startRefusingStore(server.port, (request) => {
      if (request.method === 'PUT' && !hasDigest(request)) undigested!.push(request.url!)
      if (request.headers['if-none-match'] === undefined) return undefined
      conditional!.push(request.url!)
      return {
        status: 501,
        headers: { 'content-type': 'application/xml' },
        body: '<Error><Code>NotImplemented</Code><Message>x</Message></Error>',
      }
    })
    await deliver(sent, store.port)
    expect(await lockOf(sent.path)).toMatchObject({ mode: 'COMPLIANCE', hold: 'ON' })
    expect(undigested).toEqual([])
    expect(conditional).toHaveLength(1)
    await deliver({ ...payload(), path: `${sent.path}-second` }, store.port)
    expect(conditional).toHaveLength(1)
  })
})

test('a date that is not known is waited for, one that is past locks nothing, and days of the destination take its place', async () => {
  const field = { retain_until: '{meta.end}', retain_days: undefined, legal_hold: false }
  const sent = payloadOf(Buffer.from('x'))
  expect(await failure(deliver(sent, server.port, field))).toMatchObject({ code: 'retention_unknown', permanent: false })
  const wrong = { ...sent, fields: { end: 'never' } }
  expect(await failure(deliver(wrong, server.port, { ...field, retain_days: 5 }))).toMatchObject({ code: 'retention_unknown' })
  expect(await versionsOf(sent.path)).toEqual([])
  await deliver({ ...sent, fields: { end: '20200101' } }, server.port, field)
  expect(await lockOf(sent.path)).toMatchObject({ mode: undefined, hold: undefined })
  const other = payloadOf(Buffer.from('y'))
  await deliver(other, server.port, { ...field, retain_days: 5 })
  expect(await lockOf(other.path)).toMatchObject({ mode: 'COMPLIANCE' })
})

test('a bucket with a retention of its own gets documents of a destination without one', async () => {
  const { client, bucket: Bucket } = server
  const rule = { DefaultRetention: { Mode: 'COMPLIANCE' as const, Days: 1 } }
  const ObjectLockConfiguration = { ObjectLockEnabled: 'Enabled' as const, Rule: rule }
  await client.send(new PutObjectLockConfigurationCommand({ Bucket, ObjectLockConfiguration }))
  const none = { object_lock_mode: undefined, retain_days: undefined, legal_hold: false }
  for (const sent of [payloadOf(Buffer.from('x')), largePayload(12 * MiB)]) {
    await deliver(sent, server.port, none)
    const remove = new DeleteObjectCommand({ Bucket, Key: sent.path, VersionId: (await versionsOf(sent.path))[0]!.VersionId })
    await expect(client.send(remove)).rejects.toMatchObject({ $metadata: { httpStatusCode: 403 } })
  }
  await client.send(new PutObjectLockConfigurationCommand({ Bucket, ObjectLockConfiguration: { ObjectLockEnabled: 'Enabled' } }))
})

test('a test of the destination locks for two minutes what it writes, and says so', async () => {
  const message = await objstore.probe(targetAt(server.port), contextOf(outbound))
  expect(message).toMatch(/It removed them\. No probe remains\. They were locked, for two minutes/)
  const probes = await versionsOf('.probe-')
  expect(probes).toHaveLength(2)
  for (const { Key, VersionId } of probes) {
    const version = { Bucket: server.bucket, Key, VersionId }
    const { Retention } = await server.client.send(new GetObjectRetentionCommand(version))
    expect(Retention!.RetainUntilDate!.getTime()).toBeLessThan(Date.now() + 180_000)
    expect((await server.client.send(new GetObjectLegalHoldCommand(version))).LegalHold!.Status).toBe('OFF')
  }
})

test('a bucket without Object Lock is told in the test, and a document is refused', async () => {
  const target = targetAt(plain.port)
  const lockless = { code: 'lock_missing', permanent: true }
  expect(await failure(objstore.probe(target, contextOf(outbound)))).toMatchObject(lockless)
  const sent = payloadOf(Buffer.from('x'))
  // This server has stored it nevertheless.
  for (const attempt of [1, 2])
    expect(await failure(objstore.deliver({ ...sent, attempt }, target, contextOf(outbound)))).toMatchObject(lockless)
})

test('a store that does not care about locks is found out by the test', async () => {
  await using store = await startRefusingStore(server.port, (request) => {
    return /retention|legal-hold/.test(request.url!)
      ? {
          status: 404,
          headers: { 'content-type': 'application/xml' },
          body: '<Error><Code>NoSuchObjectLockConfiguration</Code><Message>x</Message></Error>',
        }
      : undefined
  })
  expect(await failure(objstore.probe(targetAt(store.port), contextOf(outbound)))).toMatchObject({ code: 'lock_missing' })
})
