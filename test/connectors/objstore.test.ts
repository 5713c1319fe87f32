import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  AbortMultipartUploadCommand,
} from '@aws-sdk/client-s3'
import { objstore } from '../../src/connectors/objstore.ts'
import { startBusyServer } from '../support/busy-server.ts'
import { startS3Server } from '../support/s3-server.ts'
import { describeConnector } from './conformance.ts'

describeConnector('objstore', async () => {
  const server = await startS3Server()
  const { client, bucket: Bucket } = server
  const target = (port = server.port, config: object = {}, credentials: object = {}) => ({
    config: objstore.config.parse({
      bucket: Bucket,
      region: 'us-east-1',
      prefix: 'relay/',
      endpoint: `http://127.0.0.1:${port}`,
      path_style: true,
      ...config,
    }),
    credentials: objstore.credentials.parse({
      access_key_id: server.accessKeyId,
      secret_access_key: server.secretAccessKey,
      ...credentials,
    }),
  })
  const documents = async () => {
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }))
    return Contents.map(({ Key = '' }) => Key)
  }
  const uploads = async () => (await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads ?? []
  return {
    connector: objstore,
    port: server.port,
    target,
    wrongCredentials: target(server.port, {}, { secret_access_key: 'not-the-secret' }),
    busy: (load, retryAfter) =>
      startBusyServer(
        load,
        { 'retry-after': retryAfter, 'content-type': 'application/xml' },
        '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>',
      ),
    missingPlace: { target: target(server.port, { bucket: 'not-there' }), code: 'bucket_missing' },
    secrets: ['not-the-secret', server.secretAccessKey],
    keepsContentType: true,
    read: async (_parcel, { path }) => {
      const prefix = `s3://${Bucket}/`
      if (!path.startsWith(`${prefix}relay/`)) throw new Error(`unexpected path ${path}`)
      const object = await client.send(new GetObjectCommand({ Bucket, Key: path.slice(prefix.length) }))
      const hash = createHash('sha256')
      for await (const chunk of object.Body as Readable) hash.update(chunk as Buffer)
      return { sha256: hash.digest('hex'), sizeBytes: object.ContentLength ?? -1, contentType: object.ContentType }
    },
    documents,
    leftovers: async () => (await uploads()).map(({ Key = '' }) => Key),
    reset: async () => {
      for (const Key of await documents()) await client.send(new DeleteObjectCommand({ Bucket, Key }))
      for (const { Key, UploadId } of await uploads()) await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
    },
    stop: server.stop,
  }
})
