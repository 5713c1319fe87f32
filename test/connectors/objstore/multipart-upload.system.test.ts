import { GetObjectCommand, HeadObjectCommand } from '@aws-sdk/client-s3'
import { startUpload, uploadParts } from '../../../src/connectors/objstore/multipart-upload.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { startS3Server } from '../../support/s3-server.ts'
import { largePayload, MiB } from '../payloads.ts'

const server = await startS3Server()
afterAll(() => server.stop())

test.each([8 * MiB, 8 * MiB + 1, 24 * MiB - 1])('an upload of %i bytes has the checksums that AWS requires', async (sizeBytes) => {
  const object = { Bucket: server.bucket, Key: `${sizeBytes}.bin` }
  const payload = largePayload(sizeBytes)

  const { signal } = new AbortController()
  const upload = await startUpload(server.client, { object, sizeBytes, sha256: payload.sha256 }, signal)
  const options = { sizeBytes, memory: createPartMemory(), canGoOn: () => false, saveFaults: () => {} }
  await uploadParts(server.client, upload, payload.open(), options, signal)

  const head = await server.client.send(new HeadObjectCommand({ ...object, ChecksumMode: 'ENABLED' }))
  expect(head.ContentLength).toBe(sizeBytes)
  expect(head.ChecksumCRC32).toBeDefined()
  // Reading to the end makes the client compare the content with the checksum that the store keeps.
  const { Body } = await server.client.send(new GetObjectCommand(object))
  expect((await Body!.transformToByteArray()).length).toBe(sizeBytes)
})
