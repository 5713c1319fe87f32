import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type CreateMultipartUploadCommandInput,
  type PutObjectCommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3'
import { DeliveryError, type AttemptContext, type Connector, type Parcel, type Target } from './connector.ts'
import { findUpload } from './multipart-resume.ts'
import { beginUpload, uploadInParts } from './multipart-upload.ts'
import { objstoreClient } from './objstore-client.ts'
import { objectStoreError } from './objstore-error.ts'
import { objstoreConfig, objstoreCredentials, type ObjstoreConfig, type ObjstoreCredentials } from './objstore-target.ts'
import { partMinBytes } from './parts.ts'
import { contentTypeHeader, percentEncoded } from './percent-encoded.ts'
import { reporting } from './reporting.ts'
import { secretsIn } from './secrets.ts'
import { sending } from './sending.ts'
import { targetSegments } from './target-path.ts'

type ObjectStoreTarget = Target<ObjstoreConfig, ObjstoreCredentials>

const keyMaxBytes = 1_024

/** Puts the document under prefix and path. A repetition writes the same object again. */
export const objstore: Connector<ObjstoreConfig, ObjstoreCredentials> = {
  kind: 'objstore',
  config: objstoreConfig,
  credentials: objstoreCredentials,

  deliver: (parcel, target, context) =>
    within(target, context, async (client) => {
      const key = keyOf(target.config.prefix, parcel.path)
      const object = objectOf(parcel, target.config, key)
      const path = `s3://${target.config.bucket}/${key}`
      if (parcel.sizeBytes <= partMinBytes) {
        const stored = await sending(parcel, context, 0, (body, abortSignal) =>
          client.send(
            new PutObjectCommand({
              ...object,
              Body: body,
              ContentLength: parcel.sizeBytes,
              ChecksumSHA256: Buffer.from(parcel.sha256, 'hex').toString('base64'),
            }),
            { abortSignal },
          ),
        )
        return { path, bytesSent: parcel.sizeBytes, answer: answerOf(stored) }
      }
      const found = await findUpload(client, context.saved, { object, ...parcel }, context.signal)
      if (found.state === 'completed') return { path, bytesSent: 0, answer: answerOf(found.object) }
      const begun = found.state === 'begun' ? found : { ...(await beginUpload(client, object, parcel, context.signal)), startBytes: 0 }
      context.save(begun.upload)
      const restBytes = parcel.sizeBytes - begun.startBytes
      const stored = await sending(parcel, context, begun.startBytes, (body, abortSignal) =>
        uploadInParts(client, begun, body, restBytes, abortSignal),
      )
      return { path, bytesSent: restBytes, answer: answerOf(stored) }
    }),

  probe: (target, context) =>
    within(target, context, async (client) => {
      const object = { ...placeOf(target.config), Key: keyOf(target.config.prefix, '.probe') }
      const { UploadId } = await client.send(new CreateMultipartUploadCommand(object), { abortSignal: context.signal })
      await client.send(new AbortMultipartUploadCommand({ Bucket: object.Bucket, Key: object.Key, UploadId }), {
        abortSignal: context.signal,
      })
    }),
}

const within = <Result>(target: ObjectStoreTarget, context: AttemptContext, act: (client: S3Client) => Promise<Result>) =>
  reporting(
    context,
    secretsIn(objstoreCredentials, target.credentials),
    () => act(objstoreClient(target, context)),
    (thrown) => objectStoreError(thrown, target.config),
  )

const answerOf = ({ $metadata, ETag, VersionId }: Pick<PutObjectCommandOutput, '$metadata' | 'ETag' | 'VersionId'>) => ({
  status: $metadata.httpStatusCode,
  etag: ETag,
  version_id: VersionId,
  request_id: $metadata.requestId,
})

const keyOf = (prefix: string, path: string) => {
  const key = prefix + targetSegments(path).join('/')
  if (Buffer.byteLength(key) > keyMaxBytes) {
    throw new DeliveryError('path_too_long', `prefix and path have more than the ${keyMaxBytes} bytes a key may have`, { permanent: true })
  }
  return key
}

const placeOf = (config: ObjstoreConfig) =>
  ({
    Bucket: config.bucket,
    StorageClass: config.storage_class as CreateMultipartUploadCommandInput['StorageClass'],
    ServerSideEncryption: config.server_side_encryption,
    SSEKMSKeyId: config.kms_key_id,
  }) satisfies Partial<CreateMultipartUploadCommandInput>

const objectOf = (parcel: Parcel, config: ObjstoreConfig, key: string): CreateMultipartUploadCommandInput => ({
  ...placeOf(config),
  Key: key,
  ContentType: contentTypeHeader(parcel.contentType),
  Metadata: {
    'delivery-id': percentEncoded(parcel.deliveryId),
    'document-id': percentEncoded(parcel.documentId),
    'repo-id': percentEncoded(parcel.repoId),
    'doc-id': percentEncoded(parcel.docId),
    'comp-id': percentEncoded(parcel.compId),
    sha256: parcel.sha256,
  },
})
