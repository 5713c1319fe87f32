import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectTaggingCommand,
} from '@aws-sdk/client-s3'
import { createObjstore } from '../../../src/connectors/objstore/index.ts'
import { createPartMemory } from '../../../src/connectors/shared/upload-parts.ts'
import { findFreePort } from '../../../src/programs/ports.ts'
import { startBusyServer } from '../../support/busy-server.ts'
import { startHttpTarget } from '../../support/http-target.ts'
import { startPages } from '../../support/pages.ts'
import { startRefusingStore } from '../../support/refusing-store.ts'
import { startS3Server } from '../../support/s3-server.ts'
import type { Destination, Rig, RunningTarget } from '../rig.ts'

const objstore = createObjstore(createPartMemory())

const at = (origin: string): Destination => ({
  connector: objstore,
  config: { bucket: 'documents', region: 'us-east-1', endpoint: origin, path_style: true },
  credentials: { access_key_id: 'key', secret_access_key: 'secret' },
})

const stepOf = (method: string | undefined, { searchParams }: URL): string | undefined => {
  if (method === 'POST') return searchParams.has('uploads') ? 'CreateMultipartUpload' : 'CompleteMultipartUpload'
  return method === 'PUT' ? (searchParams.has('partNumber') ? 'UploadPart' : 'PutObject') : undefined
}

export const rig: Rig = {
  kind: 'objstore',
  usesNetwork: true,
  demandsEvidence: true,
  holdsSeveralParts: true,
  connectorIn: () => objstore,

  start: async (): Promise<RunningTarget> => {
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
    const keyOf = ({ path }: { path: string }) => path.slice(`s3://${Bucket}/`.length)
    const uploads = async () => (await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads ?? []
    const read = async ({ path }: { path: string }, condition: { IfMatch?: string } = {}) => {
      const prefix = `s3://${Bucket}/`
      if (!path.startsWith(`${prefix}relay/`)) throw new Error(`Unexpected path ${path}`)
      const object = await client.send(new GetObjectCommand({ Bucket, Key: path.slice(prefix.length), ...condition }))
      const hash = createHash('sha256')
      for await (const chunk of object.Body as Readable) hash.update(chunk as Buffer)
      return { sha256: hash.digest('hex'), sizeBytes: object.ContentLength ?? -1, contentType: object.ContentType }
    }
    return {
      connector: objstore,
      target,
      network: {
        port: server.port,
        pages: (status, which) => startPages(server.port, status, which),
        wrongCredentials: target(server.port, {}, { secret_access_key: 'not-the-secret' }),
        secrets: ['not-the-secret', server.secretAccessKey],
        busy: (load, retryAfter) =>
          startBusyServer(
            load,
            { 'retry-after': retryAfter, 'content-type': 'application/xml' },
            '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>',
          ),
      },
      missingLocation: { target: target(server.port, { bucket: 'not-there' }), code: 'bucket_missing' },
      refusing: {
        steps: {
          PutObject: { operation: /^PutObject of s3:\/\/\S+: / },
          CreateMultipartUpload: { operation: /^CreateMultipartUpload of s3:\/\/\S+: / },
          UploadPart: { operation: /^UploadPart \(part \d\) of s3:\/\/\S+: / },
          CompleteMultipartUpload: { operation: /^CompleteMultipartUpload of s3:\/\/\S+: / },
        },
        start: async (step) => {
          const store = await startRefusingStore(server.port, (request, url) =>
            stepOf(request.method, url) === step
              ? { status: 403, headers: { 'content-type': 'application/xml' }, body: '<Error><Code>AccessDenied</Code></Error>' }
              : undefined,
          )
          return { target: target(store.port), stop: store.stop }
        },
      },
      keepsContentType: true,
      properties: {
        names: ['Vendor', 'Invoice number'],
        foreign: 'scanned',
        read: async (_payload, result) => {
          const { TagSet = [] } = await client.send(new GetObjectTaggingCommand({ Bucket, Key: keyOf(result) }))
          return Object.fromEntries(TagSet.map(({ Key: name = '', Value = '' }) => [name, Value]))
        },
        add: async (_payload, result, properties) => {
          const TagSet = Object.entries(properties).map(([Key, Value]) => ({ Key, Value }))
          await client.send(new PutObjectTaggingCommand({ Bucket, Key: keyOf(result), Tagging: { TagSet } }))
        },
      },
      read: (_payload, result) => read(result),
      readByNames: ({ etag }, result) => read(result, { IfMatch: String(etag) }),
      documents,
      leftovers: async () => (await uploads()).map(({ Key = '' }) => Key),
      reset: async () => {
        for (const Key of await documents()) await client.send(new DeleteObjectCommand({ Bucket, Key }))
        for (const { Key, UploadId } of await uploads()) await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))
      },
      stop: server.stop,
    }
  },

  hostSettings: [{ name: 'the endpoint of objstore', destination: (host, port) => at(`http://${host}:${port}`) }],
  addressField: { key: 'endpoint', form: 'url', config: { bucket: 'documents', region: 'us-east-1' }, connector: objstore },
  tlsCases: [{ name: 'objstore', destination: (port) => at(`https://127.0.0.1:${port}`), listen: startHttpTarget, isHttp: true }],

  startProbeTarget: async () => {
    const { endpoint, bucket, accessKeyId, secretAccessKey, stop } = await startS3Server()
    return {
      connector: objstore,
      config: { bucket, region: 'us-east-1', endpoint, path_style: true },
      credentials: { access_key_id: accessKeyId, secret_access_key: secretAccessKey },
      mistakes: [
        ['another secret', {}, { secret_access_key: 'canary-secret' }, /access_key_id and secret_access_key/],
        ['an unknown key', {}, { access_key_id: 'nobody' }, /access_key_id and secret_access_key/],
        ['a missing bucket', { bucket: 'not-there' }, {}, /bucket not-there does not exist/],
        ['another port', { endpoint: `http://127.0.0.1:${await findFreePort()}` }, {}, /nothing listens/],
      ],
      stop,
    }
  },

  secretSamples: [[{ access_key_id: 'AKIA1', secret_access_key: 'canary', session_token: 'canary-2' }, ['canary', 'canary-2']]],
}
