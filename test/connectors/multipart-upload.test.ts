import { GetObjectCommand, HeadObjectCommand } from '@aws-sdk/client-s3'
import { beginUpload, uploadInParts } from '../../src/connectors/multipart-upload.ts'
import { startS3Server, type S3Server } from '../support/s3-server.ts'
import { largeParcel, MiB } from './parcels.ts'

let server: S3Server
beforeAll(async () => {
  server = await startS3Server()
})
afterAll(() => server.stop())

test.each([8 * MiB, 8 * MiB + 1, 24 * MiB - 1])('%i bytes arrive with the checksums AWS asks for', async (sizeBytes) => {
  const object = { Bucket: server.bucket, Key: `${sizeBytes}.bin` }
  const parcel = largeParcel(sizeBytes)

  const { signal } = new AbortController()
  await uploadInParts(server.client, await beginUpload(server.client, object, parcel, signal), parcel.open(), sizeBytes, signal)

  const head = await server.client.send(new HeadObjectCommand({ ...object, ChecksumMode: 'ENABLED' }))
  expect(head.ContentLength).toBe(sizeBytes)
  expect(head.ChecksumCRC32).toBeDefined()
  // reads to the end: the client compares the checksums of what it was sent with what the store keeps
  const { Body } = await server.client.send(new GetObjectCommand(object))
  expect((await Body!.transformToByteArray()).length).toBe(sizeBytes)
})
