import { GetObjectCommand, HeadObjectCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { startUpload, uploadParts } from '../../../src/connectors/objstore/multipart-upload.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { startS3Server } from '../../support/s3-server.ts'
import { contextOf, largePayload, MiB } from '../payloads.ts'

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

test('an upload that no attempt continues is aborted, and one of another bucket is left alone', async () => {
  const objstore = createObjstore(createPartMemory())
  const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
  const { endpoint, bucket, accessKeyId, secretAccessKey, client } = server
  const target = {
    config: objstore.config.parse({ bucket, region: 'us-east-1', endpoint, path_style: true }),
    credentials: objstore.credentials.parse({ access_key_id: accessKeyId, secret_access_key: secretAccessKey }),
  }
  const object = { Bucket: bucket, Key: 'given-up.bin' }
  const { upload } = await startUpload(client, { object, sizeBytes: 20 * MiB, sha256: 'x' }, new AbortController().signal)
  const uploads = async () => (await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }))).Uploads ?? []

  for (const other of [undefined, { key: 'x' }, { ...upload, bucket: 'others' }]) await objstore.giveUp!(other, target, contextOf(outbound))
  expect(await uploads()).toHaveLength(1)
  await objstore.giveUp!(upload, target, contextOf(outbound))
  expect(await uploads()).toEqual([])
  // It is gone already.
  await objstore.giveUp!(upload, target, contextOf(outbound))
  await outbound.close()
})
