import { createBlob } from '../../src/connectors/blob/index.ts'
import type { Connector, Payload } from '../../src/connectors/connector.ts'
import { createObjstore } from '../../src/connectors/objstore/index.ts'
import { createEntraTokens } from '../../src/connectors/shared/entra-tokens.ts'
import { createPartMemory } from '../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { startAzurite } from '../support/azurite.ts'
import { startS3Server } from '../support/s3-server.ts'
import { startWormStore, type StoreRefusal } from '../support/worm-store.ts'
import { contextOf, failure, largePayload, MiB, payloadOf } from './payloads.ts'

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
const s3 = await startS3Server()
const azurite = await startAzurite()
afterAll(async () => {
  await outbound.close()
  await s3.stop()
  await azurite.stop()
})

interface Kind {
  connector: Connector
  protocol: 's3' | 'blob'
  targetPort: number
  target(port: number): { config: unknown; credentials: unknown }
  unreadable: StoreRefusal
}

const kinds: Record<'objstore' | 'blob', Kind> = {
  objstore: {
    connector: createObjstore(createPartMemory()),
    protocol: 's3',
    targetPort: s3.port,
    target: (port) => ({
      config: { bucket: s3.bucket, region: 'us-east-1', prefix: '', endpoint: `http://127.0.0.1:${port}`, path_style: true },
      credentials: { access_key_id: s3.accessKeyId, secret_access_key: s3.secretAccessKey },
    }),
    unreadable: { status: 403, code: 'AccessDenied' },
  },
  blob: {
    connector: createBlob(createEntraTokens(), createPartMemory()),
    protocol: 'blob',
    targetPort: azurite.port,
    target: (port) => ({
      config: { account_url: `http://127.0.0.1:${port}/${azurite.accountName}`, container: azurite.container, prefix: '' },
      credentials: { account_key: azurite.accountKey },
    }),
    unreadable: { status: 403, code: 'AuthorizationPermissionMismatch' },
  },
}

const worm = 'Object is WORM protected and cannot be overwritten'
// Whether the refusal leaves open that the account may not write at all, or that the conflict passes.
const refusals: [kind: 'objstore' | 'blob', refusal: StoreRefusal, isVague: boolean][] = [
  ['blob', { status: 409, code: 'BlobImmutableDueToPolicy' }, false],
  ['blob', { status: 409, code: 'BlobImmutableDueToLegalHold' }, false],
  ['blob', { status: 403, code: 'UnauthorizedBlobOverwrite' }, false],
  ['blob', { status: 409, code: 'BlobAlreadyExists' }, false],
  ['blob', { status: 412, code: 'LeaseIdMissing' }, true],
  ['blob', { status: 409, code: 'BlobArchived' }, true],
  ['blob', { status: 403, code: 'AuthorizationPermissionMismatch' }, true],
  ['objstore', { status: 412, code: 'PreconditionFailed' }, false],
  ['objstore', { status: 409, code: 'ObjectUnderRetention' }, false],
  ['objstore', { status: 409, code: 'ObjectAlreadyExists' }, false],
  ['objstore', { status: 409, code: 'FileImmutable' }, false],
  ['objstore', { status: 400, code: 'InvalidRequest', message: worm }, false],
  ['objstore', { status: 403, code: 'AccessDenied', message: 'forbidden by object lock' }, false],
  ['objstore', { status: 403, code: 'AccessDenied', message: 'Access Denied' }, true],
  ['objstore', { status: 405, code: 'MethodNotAllowed' }, true],
  ['objstore', { status: 409, code: 'InvalidObjectState' }, true],
  ['objstore', { status: 423, code: 'Locked' }, true],
]

describe.each(refusals)('%s that refuses to overwrite with %j', (name, refusal, isVague) => {
  const { connector, protocol, targetPort, target, unreadable } = kinds[name]
  const rig = async () => {
    const store = await startWormStore(targetPort, protocol, refusal)
    const deliver = (payload: Payload) => connector.deliver(payload, target(store.port), contextOf(outbound))
    /** Delivers a document whose answer is lost. */
    const lose = async (payload: Payload) => {
      store.loseAnswers(true)
      expect(await failure(deliver(payload))).toMatchObject({ code: 'connection_lost', permanent: false })
      store.loseAnswers(false)
      expect(store.lost()).toBe(1)
      store.requests.length = 0
    }
    return { store, deliver, lose, [Symbol.asyncDispose]: store.stop }
  }

  test.each([
    ['one request', 1_000],
    ['parts', 9 * MiB],
  ])('a document that was sent in %s, and whose answer was lost, is found and delivered', async (_, sizeBytes) => {
    await using it = await rig()
    const payload = largePayload(sizeBytes)
    await it.lose(payload)
    const result = await it.deliver({ ...payload, attempt: 2 })
    expect(result).toMatchObject({ bytesSent: 0, answer: { status: 200, etag: expect.any(String) as string } })
    expect(result.answer?.body).toMatch(/found/)
    expect(it.store.requests.filter((line) => line.startsWith('HEAD'))).toHaveLength(1)
  })

  test('a content that is sent after it, and another document, are not taken for it', async () => {
    await using it = await rig()
    const payload = payloadOf(Buffer.from('content'))
    await it.lose(payload)
    const others = [
      payloadOf(Buffer.from('content and more'), { deliveryId: payload.deliveryId, path: payload.path }),
      payloadOf(Buffer.from('c0ntent'), { deliveryId: payload.deliveryId, path: payload.path }),
      payloadOf(Buffer.from('content'), { path: payload.path }),
    ]
    for (const other of others) {
      const error = await failure(it.deliver(other))
      expect(error.message).toMatch(/another document, or an earlier content of this one/)
      if (isVague) expect(error.code).not.toBe('overwrite_forbidden')
      else expect(error).toMatchObject({ code: 'overwrite_forbidden', permanent: true })
      expect(error.answer).toMatchObject({ status: refusal.status })
    }
  })

  test('an account that may not read says that the document may be there', async () => {
    await using it = await rig()
    const payload = payloadOf(Buffer.from('content'))
    await it.lose(payload)
    it.store.refuseReading(unreadable)
    const error = await failure(it.deliver({ ...payload, attempt: 2 }))
    expect(error.message).toMatch(/An earlier attempt may have stored/)
    expect(error.message).toMatch(/to look$/)
    if (!isVague) expect(error).toMatchObject({ code: 'overwrite_forbidden', permanent: true })
  })

  test('a look that fails is tried again', async () => {
    await using it = await rig()
    const payload = payloadOf(Buffer.from('content'))
    await it.lose(payload)
    it.store.refuseReading({ status: 503, code: 'ServerBusy' })
    expect(await failure(it.deliver(payload))).toMatchObject({ code: 'http_503', permanent: false })
  })

  test('a document that is stored at once costs no further request', async () => {
    await using it = await rig()
    await it.deliver(payloadOf(Buffer.from('content')))
    expect(it.store.requests).toHaveLength(1)
  })
})
