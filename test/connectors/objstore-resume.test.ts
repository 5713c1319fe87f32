import { ListMultipartUploadsCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { Interruption, type Parcel } from '../../src/connectors/connector.ts'
import { objstore } from '../../src/connectors/objstore.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { startS3Server, type S3Server } from '../support/s3-server.ts'
import { contextOf, largeParcel, MiB, slowly } from './parcels.ts'

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
let server: S3Server

beforeAll(async () => {
  server = await startS3Server()
})
afterAll(async () => {
  await server.stop()
  await outbound.close()
})

const target = () => ({
  config: objstore.config.parse({ bucket: server.bucket, region: 'us-east-1', endpoint: server.endpoint, path_style: true }),
  credentials: objstore.credentials.parse({ access_key_id: server.accessKeyId, secret_access_key: server.secretAccessKey }),
})

const uploads = async () => (await server.client.send(new ListMultipartUploadsCommand({ Bucket: server.bucket }))).Uploads ?? []

/** An upload whose worker was told to stop past the middle, and what it had saved. */
const interruptedUpload = async (parcel: Parcel, reason: Error = new Interruption()): Promise<unknown> => {
  const stop = new AbortController()
  let saved: unknown
  const context = contextOf(outbound, {
    signal: stop.signal,
    onProgress: (bytes) => void (bytes > parcel.sizeBytes * 0.6 && stop.abort(reason)),
    save: (state) => {
      saved = state
    },
  })
  await expect(objstore.deliver(slowly(parcel, 2), target(), context)).rejects.toThrow(reason.message)
  return saved
}

describe('an upload in parts', () => {
  it('stays at the store where the worker stops, and goes on from its parts', async () => {
    const parcel = largeParcel(40 * MiB)
    const saved = await interruptedUpload(parcel)
    expect(await uploads()).toHaveLength(1)

    const receipt = await objstore.deliver(parcel, target(), contextOf(outbound, { saved }))

    expect(receipt.bytesSent).toBeLessThanOrEqual(32 * MiB)
    expect(receipt.bytesSent).toBeGreaterThan(0)
    expect(await uploads()).toEqual([])
  })

  it('is given up where the delivery was cancelled', async () => {
    await interruptedUpload(largeParcel(40 * MiB), new Error('cancelled'))
    expect(await uploads()).toEqual([])
  })

  it('that was found completed counts as delivered, and nothing is sent again', async () => {
    const parcel = largeParcel(12 * MiB)
    let saved: unknown
    const save = (state: unknown) => {
      saved = state
    }
    const first = await objstore.deliver(parcel, target(), contextOf(outbound, { save }))

    const second = await objstore.deliver(
      {
        ...parcel,
        open: () => {
          throw new Error('read again')
        },
      },
      target(),
      contextOf(outbound, { saved }),
    )

    expect(second).toMatchObject({ path: first.path, bytesSent: 0, answer: { etag: first.answer?.etag } })
  })

  it('begins again where it is gone, and somebody else has put another object there', async () => {
    const parcel = largeParcel(12 * MiB)
    let saved: unknown
    await objstore.deliver(parcel, target(), contextOf(outbound, { save: (state) => void (saved = state) }))
    await server.client.send(new PutObjectCommand({ Bucket: server.bucket, Key: parcel.path, Body: 'another' }))
    expect(await objstore.deliver(parcel, target(), contextOf(outbound, { saved }))).toMatchObject({ bytesSent: 12 * MiB })
  })

  it('is not gone on with where the document has been appended to: its parts are given up', async () => {
    const parcel = largeParcel(40 * MiB)
    const saved = await interruptedUpload(parcel)
    const longer = largeParcel(41 * MiB, { deliveryId: parcel.deliveryId, path: parcel.path })
    expect(await objstore.deliver(longer, target(), contextOf(outbound, { saved }))).toMatchObject({ bytesSent: 41 * MiB })
    expect(await uploads()).toEqual([])
  })

  it.each([undefined, 'nonsense', { uploadId: 1 }])('begins where nothing of use was saved: %p', async (saved) => {
    const parcel = largeParcel(9 * MiB)
    expect(await objstore.deliver(parcel, target(), contextOf(outbound, { saved }))).toMatchObject({ bytesSent: 9 * MiB })
  })
})
