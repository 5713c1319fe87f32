import { ListMultipartUploadsCommand, ListPartsCommand, PutObjectCommand, type MultipartUpload } from '@aws-sdk/client-s3'
import { Interruption, type Payload } from '../../../src/connectors/connector.ts'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { fullOr } from '../../support/full-run.ts'
import { startS3Server } from '../../support/s3-server.ts'
import { until } from '../../support/until.ts'
import { contextOf, largePayload, MiB, pausedAt } from '../payloads.ts'

const uploadBytes = fullOr(40, 20) * MiB
const objstore = createObjstore(createPartMemory())
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })

const server = await startS3Server()
afterAll(async () => {
  await server.stop()
  await outbound.close()
})

const target = () => ({
  config: objstore.config.parse({ bucket: server.bucket, region: 'us-east-1', endpoint: server.endpoint, path_style: true }),
  credentials: objstore.credentials.parse({ access_key_id: server.accessKeyId, secret_access_key: server.secretAccessKey }),
})

const uploads = async () => (await server.client.send(new ListMultipartUploadsCommand({ Bucket: server.bucket }))).Uploads ?? []

const partsOf = async ({ Key, UploadId }: MultipartUpload = {}) =>
  (await server.client.send(new ListPartsCommand({ Bucket: server.bucket, Key, UploadId }))).Parts ?? []

/** Starts an upload and interrupts it after 60 % of the document. @returns the saved state */
const interruptedUpload = async (payload: Payload, reason: Error = new Interruption()): Promise<unknown> => {
  const stop = new AbortController()
  let saved: unknown
  const context = contextOf(outbound, {
    signal: stop.signal,
    save: (state) => {
      saved = state
    },
  })
  const source = pausedAt(payload, payload.sizeBytes * 0.6, async () => {
    await until('the store has a part', async () => (await partsOf((await uploads())[0])).length > 0)
    stop.abort(reason)
  })
  await expect(objstore.deliver(source, target(), context)).rejects.toThrow(reason.message)
  return saved
}

describe('a multipart upload', () => {
  test('stays at the store when the worker stops, and resumes after its parts', async () => {
    const payload = largePayload(uploadBytes)
    const saved = await interruptedUpload(payload)
    expect(await uploads()).toHaveLength(1)

    const result = await objstore.deliver(payload, target(), contextOf(outbound, { saved }))

    expect(result.bytesSent).toBeLessThanOrEqual(uploadBytes - 8 * MiB)
    expect(result.bytesSent).toBeGreaterThan(0)
    expect(await uploads()).toEqual([])
  })

  test('is aborted when the delivery is cancelled', async () => {
    await interruptedUpload(largePayload(uploadBytes), new Error('cancelled'))
    expect(await uploads()).toEqual([])
  })

  test('that the store has completed counts as delivered, and nothing is sent again', async () => {
    const payload = largePayload(12 * MiB)
    let saved: unknown
    const save = (state: unknown) => {
      saved = state
    }
    const first = await objstore.deliver(payload, target(), contextOf(outbound, { save }))

    const second = await objstore.deliver(
      {
        ...payload,
        open: () => {
          throw new Error('read again')
        },
      },
      target(),
      contextOf(outbound, { saved }),
    )

    expect(second).toMatchObject({ path: first.path, bytesSent: 0, answer: { etag: first.answer?.etag } })
  })

  test('starts again if the store no longer has it and somebody else has stored another object', async () => {
    const payload = largePayload(12 * MiB)
    let saved: unknown
    await objstore.deliver(payload, target(), contextOf(outbound, { save: (state) => void (saved = state) }))
    await server.client.send(new PutObjectCommand({ Bucket: server.bucket, Key: payload.path, Body: 'another' }))
    expect(await objstore.deliver(payload, target(), contextOf(outbound, { saved }))).toMatchObject({ bytesSent: 12 * MiB })
  })

  test('is aborted and starts again if the document has been appended to', async () => {
    const payload = largePayload(uploadBytes)
    const saved = await interruptedUpload(payload)
    const longer = largePayload(uploadBytes + MiB, { deliveryId: payload.deliveryId, path: payload.path })
    expect(await objstore.deliver(longer, target(), contextOf(outbound, { saved }))).toMatchObject({ bytesSent: uploadBytes + MiB })
    expect(await uploads()).toEqual([])
  })

  test.each([undefined, 'nonsense', { uploadId: 1 }])('starts again if the saved state cannot be parsed: %p', async (saved) => {
    const payload = largePayload(9 * MiB)
    expect(await objstore.deliver(payload, target(), contextOf(outbound, { saved }))).toMatchObject({ bytesSent: 9 * MiB })
  })
})
