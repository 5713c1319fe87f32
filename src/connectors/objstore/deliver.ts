import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  PutObjectCommand,
  PutObjectLegalHoldCommand,
  PutObjectTaggingCommand,
  type S3Client,
  type CreateMultipartUploadCommandInput,
  type PutObjectCommandOutput,
} from '@aws-sdk/client-s3'
import { withoutSecrets } from '../../base/secrets.ts'
import { createTtlCache } from '../../base/ttl-cache.ts'
import { sendableContentType } from '../../domain/content-type.ts'
import { DeliveryError, type AttemptContext, type Connector, type DeliveryResult, type Payload, type Target } from '../connector.ts'
import { foundInPlace, storeOrFind } from '../shared/earlier-copy.ts'
import { secretsIn, withDeliveryErrors } from '../shared/errors.ts'
import { percentEncoded } from '../shared/http.ts'
import { withOperation } from '../shared/operation.ts'
import { withPayloadStream } from '../shared/payload-stream.ts'
import { probePayload, proveWriting } from '../shared/probe.ts'
import { requireSameLocation } from '../shared/properties.ts'
import { retainUntilOf } from '../shared/retention.ts'
import { cutBytes, endsBefore, nameOrVersion, rangeHeader } from '../shared/stored-bytes.ts'
import { targetSegments } from '../shared/target-path.ts'
import { canGoOn, minPartBytes, type PartMemory } from '../shared/upload-parts.ts'
import { createClient, originOf } from './client.ts'
import { demandsChecksum, objstoreError, refusalOf } from './errors.ts'
import {
  checksumOf,
  conditionOf,
  findObject,
  findUpload,
  giveUpUpload,
  startUpload,
  statusOf,
  uploadParts,
  type Wanted,
} from './multipart-upload.ts'
import { hasLock, isLocked, lockFacts, lockOf, mustRetain, probeRetentionMs, proveLock, sendOnce, unlocked } from './object-lock.ts'
import { objstoreCredentials, type ObjstoreConfig, type ObjstoreCredentials } from './schema.ts'
import { rolePrincipalOf, type AwsSessions, type RolePrincipal } from './sessions.ts'

type ObjstoreConnector = Connector<ObjstoreConfig, ObjstoreCredentials>
type ObjstoreTarget = Target<ObjstoreConfig, ObjstoreCredentials>

const keyMaxBytes = 1_024

/** Stores the document as an object under prefix and path. A repetition writes the same object again. */
export const createDeliver =
  (memory: PartMemory, sessions: AwsSessions): ObjstoreConnector['deliver'] =>
  (payload, target, context) => {
    const purpose = purposeOf(target.config, payload)
    return withClient(sessions, target, context, purpose, async (client) => {
      const key = keyOf(target.config, payload.path)
      const object = objectOf(payload, target.config, key)
      const wanted = { object, sizeBytes: payload.sizeBytes, sha256: payload.sha256 }
      const look = async () => {
        const found = await findObject(client, wanted, context.signal)
        if (found.state === 'ours' && !hasLock(found.stored, object)) return { state: 'other' as const, what: unlocked }
        return found.state === 'ours'
          ? { ...found, stored: { bytesSent: 0, answer: { ...answerOf(found.stored), body: foundInPlace } } }
          : found
      }
      const toError = (thrown: unknown) => objstoreError(thrown, target.config, purpose, target.credentials.role_arn)
      const send = (isNew = false) => store(client, { ...wanted, isNew }, payload, context, memory, toError)
      const earlier = isLocked(object) ? await look() : undefined
      const stored =
        earlier?.state === 'ours'
          ? earlier.stored
          : await storeOrFind(() => (earlier && earlier.state !== 'other' ? sendOnce(client, object, send) : send()), {
              attempt: payload.attempt,
              refusalOf,
              look,
              toError,
            })
      const propertiesError = object.Tagging === undefined ? await setTags(client, object, payload, target, context) : undefined
      const answer = { ...stored.answer, ...lockFacts(object) }
      return { path: urlOf(target.config, key), ...stored, answer, ...(propertiesError !== undefined && { propertiesError }) }
    })
  }

const store = async (
  client: S3Client,
  wanted: Wanted,
  payload: Payload,
  context: AttemptContext,
  memory: PartMemory,
  toError: (thrown: unknown) => DeliveryError,
): Promise<Pick<DeliveryResult, 'bytesSent' | 'answer'>> => {
  if (payload.sizeBytes <= minPartBytes) {
    const stored = await putObject(client, wanted, payload, context)
    return { bytesSent: payload.sizeBytes, answer: answerOf(stored) }
  }
  const found = await findUpload(client, context, wanted)
  if (found.state === 'completed') return { bytesSent: 0, answer: answerOf(found.object) }
  const started = found.state === 'started' ? found : await startUpload(client, wanted, context.signal)
  if (found.state !== 'started') context.save(started.upload)
  const options = {
    sizeBytes: payload.sizeBytes,
    isNew: wanted.isNew,
    memory,
    canGoOn: canGoOn(context, (thrown) => !toError(thrown).permanent && refusalOf(thrown) === undefined),
    saveFaults: (faults: number) => context.save({ ...started.upload, faults }),
  }
  const { answer, bytesSent } = await withPayloadStream(payload, { ...context, startByte: started.startByte }, (body, abortSignal) =>
    uploadParts(client, started, body, options, abortSignal),
  )
  return { bytesSent, answer: answerOf(answer) }
}

/** Buckets behind an endpoint that demand a checksum, such as those with an Object Lock. */
const demandingBuckets = createTtlCache<true>({ maxEntries: 1_000 })
const demandLifetimeMs = 24 * 3_600_000

/**
 * Sends a document in one request. AWS gets its SHA-256 as a checksum. Some other stores refuse the header of a checksum, and every store checks the
 * digest that the request is signed with; a bucket that demands a checksum nevertheless says so, and gets it.
 */
const putObject = async (client: S3Client, wanted: Wanted, payload: Payload, context: AttemptContext) => {
  const { object, sizeBytes, sha256 } = wanted
  const put = (ChecksumSHA256?: string) =>
    withPayloadStream(payload, context, (body, abortSignal) =>
      client.send(new PutObjectCommand({ ...object, ...conditionOf(wanted), Body: body, ContentLength: sizeBytes, ChecksumSHA256 }), {
        abortSignal,
      }),
    )
  const checksum = Buffer.from(sha256, 'hex').toString('base64')
  if (isLocked(object) || (await checksumOf(client)) !== undefined) return put(checksum)
  const bucketKey = `${await originOf(client)} ${object.Bucket}`
  if (demandingBuckets.get(bucketKey)) return put(checksum)
  try {
    return await put()
  } catch (thrown) {
    if (!demandsChecksum(thrown)) throw thrown
    const stored = await put(checksum)
    demandingBuckets.set(bucketKey, true, Date.now() + demandLifetimeMs)
    return stored
  }
}

/**
 * Sets the tags that did not fit into the header of the upload. The object is stored: that its tags cannot be set must not send it again.
 * @returns why the store did not set them
 */
const setTags = async (
  client: S3Client,
  { Bucket, Key }: CreateMultipartUploadCommandInput,
  { properties }: Payload,
  { config, credentials }: ObjstoreTarget,
  { signal }: AttemptContext,
): Promise<string | undefined> => {
  if (Object.keys(properties).length === 0) return undefined
  try {
    await client.send(new PutObjectTaggingCommand({ Bucket, Key, Tagging: tagSetOf(properties) }), { abortSignal: signal })
    return undefined
  } catch (thrown) {
    signal.throwIfAborted()
    return withoutSecrets(
      withOperation(objstoreError(thrown, config, purposes.tag, credentials.role_arn), thrown).message,
      secretsIn(objstoreCredentials, credentials),
    )
  }
}

const hasProperties = ({ properties }: Payload) => Object.keys(properties).length > 0

export const createGiveUp =
  (sessions: AwsSessions): NonNullable<ObjstoreConnector['giveUp']> =>
  (saved, target, context) =>
    withClient(sessions, target, context, purposes.store, (client) => giveUpUpload(client, saved, target.config.bucket, context.signal))

/** What an account needs a permission for. */
const purposes = {
  store: 'write; it needs s3:PutObject and s3:AbortMultipartUpload',
  tag: 'set tags; it needs s3:GetObjectTagging and s3:PutObjectTagging',
  read: 'read; it needs s3:GetObject',
}

/** Names what storing a document needs, with tags and a lock. */
const purposeOf = (config: ObjstoreConfig, payload: Payload): string =>
  [
    purposes.store,
    ...(hasProperties(payload) ? ['for the properties of the connection, s3:PutObjectTagging'] : []),
    ...(mustRetain(config) ? ['for the retention, s3:PutObjectRetention'] : []),
    ...(config.legal_hold ? ['for the legal hold, s3:PutObjectLegalHold'] : []),
  ].join('; ')

/** Sets the tags of a stored object. Tags of others stay. */
export const createUpdateMetadata =
  (sessions: AwsSessions): NonNullable<ObjstoreConnector['updateMetadata']> =>
  (copy, target, context) =>
    withClient(sessions, target, context, purposes.tag, async (client) => {
      const object = { Bucket: target.config.bucket, Key: keyOf(target.config, copy.path) }
      requireSameLocation(copy, urlOf(target.config, object.Key))
      const { signal: abortSignal } = context
      const { TagSet = [] } = await client.send(new GetObjectTaggingCommand(object), { abortSignal })
      const before = Object.fromEntries(TagSet.map(({ Key = '', Value = '' }) => [Key, Value]))
      if (Object.entries(copy.properties).every(([name, value]) => before[name] === value)) return
      const Tagging = tagSetOf({ ...before, ...copy.properties })
      await client.send(new PutObjectTaggingCommand({ ...object, Tagging }), { abortSignal })
    })

/** Reads bytes of a stored object. */
export const createRead =
  (sessions: AwsSessions): NonNullable<ObjstoreConnector['read']> =>
  (copy, span, target, context, take) =>
    withClient(sessions, target, context, purposes.read, async (client) => {
      const object = { Bucket: target.config.bucket, Key: keyOf(target.config, copy.path), Range: rangeHeader(span) }
      const get = (VersionId?: string) => client.send(new GetObjectCommand({ ...object, VersionId }), { abortSignal: context.signal })
      const isAbsent = (thrown: unknown) => (thrown as Error).name === 'NoSuchKey'
      try {
        const { Body, ContentRange } = await nameOrVersion(get, copy, isAbsent, statusOf)
        await take(cutBytes(Body as Readable, span, ContentRange === undefined ? 0 : span.start))
        return true
      } catch (thrown) {
        if (isAbsent(thrown)) return false
        if (!endsBefore(statusOf(thrown))) throw thrown
        await take(Readable.from([]))
        return true
      }
    })

export const createProbe =
  (memory: PartMemory, sessions: AwsSessions): ObjstoreConnector['probe'] =>
  (target, context) => {
    // Test the role instead of a session that was issued for it earlier.
    const role = rolePrincipalOf(target, context)
    if (role) sessions.invalidate(role)
    const payload = probePayload()
    return withClient(sessions, target, context, purposeOf(target.config, payload), async (client) => {
      const { config } = target
      // A lock that ends: what is tested with the lock of a delivery could not be removed.
      const until = mustRetain(config) ? new Date(Date.now() + probeRetentionMs) : undefined
      const [small, large] = ['', '-parts'].map((suffix) => {
        const object = objectOf(payload, config, keyOf(config, `${payload.path}${suffix}`), until ?? null)
        return { object, sizeBytes: payload.sizeBytes, sha256: payload.sha256 }
      }) as [Wanted, Wanted]
      const wanted = [small, large]
      const { signal } = context
      let locked = ''
      const proved = await proveWriting(
        { things: 'objects', place: `bucket ${config.bucket}`, names: wanted.map(({ object }) => object.Key!), signal },
        {
          write: async () => {
            await putObject(client, small, payload, context)
            const started = await startUpload(client, large, signal)
            const options = { sizeBytes: payload.sizeBytes, memory, canGoOn: () => false, saveFaults: () => {} }
            await withPayloadStream(payload, context, (body, abortSignal) => uploadParts(client, started, body, options, abortSignal))
            if (isLocked(small.object)) locked = await proveLock(client, small, signal)
          },
          look: (key) => findObject(client, key === small.object.Key ? small : large, signal),
          remove: async (Key) => {
            const object = { Bucket: config.bucket, Key }
            if (config.legal_hold) {
              await client.send(new PutObjectLegalHoldCommand({ ...object, LegalHold: { Status: 'OFF' } }), { abortSignal: signal })
            }
            await client.send(new DeleteObjectCommand(object), { abortSignal: signal })
          },
          isAbsent: (thrown) => statusOf(thrown) === 404,
        },
      )
      return proved + locked
    })
  }

/** @param purpose what the account needs a permission for */
const withClient = <Result>(
  sessions: AwsSessions,
  target: ObjstoreTarget,
  context: AttemptContext,
  purpose: string,
  act: (client: S3Client) => Promise<Result>,
) => {
  const secrets = secretsIn(objstoreCredentials, target.credentials)
  const role = rolePrincipalOf(target, context)
  const sessionOf = async (principal: RolePrincipal) => {
    const { accessKeyId, secretAccessKey, token: sessionToken, expiresAt: expiration } = await sessions.get(principal, context)
    for (const text of [secretAccessKey, sessionToken]) if (!secrets.includes(text)) secrets.push(text)
    return { accessKeyId, secretAccessKey, sessionToken, expiration }
  }
  return withDeliveryErrors(
    context,
    secrets,
    async () => {
      if (!role) return act(createClient({ config: target.config, credentials: keyOfAccount(target.credentials) }, context))
      // Before the first byte of the document is read.
      await sessionOf(role)
      // An upload may outlast a session: the SDK asks again before it expires.
      return act(createClient({ config: target.config, credentials: () => sessionOf(role) }, context))
    },
    (thrown) => {
      const error = objstoreError(thrown, target.config, purpose, role?.roleArn)
      if (role && error !== thrown && error.code === 'credentials_refused') sessions.invalidate(role)
      return error
    },
  )
}

const keyOfAccount = ({ access_key_id: id, secret_access_key: secret, session_token: token }: ObjstoreCredentials) => ({
  accessKeyId: id!,
  secretAccessKey: secret!,
  ...(token !== undefined && { sessionToken: token }),
})

const urlOf = ({ bucket }: ObjstoreConfig, key: string) => `s3://${bucket}/${key}`

const answerOf = ({ $metadata, ETag, VersionId }: Pick<PutObjectCommandOutput, '$metadata' | 'ETag' | 'VersionId'>) => ({
  status: $metadata.httpStatusCode,
  etag: ETag,
  version_id: VersionId,
  request_id: $metadata.requestId,
})

const keyOf = ({ prefix, file_names: names }: ObjstoreConfig, path: string) => {
  const key = prefix + targetSegments(path, { names }).join('/')
  if (Buffer.byteLength(key) > keyMaxBytes) {
    throw new DeliveryError('path_too_long', `prefix and path together exceed ${keyMaxBytes} bytes, the longest key that a store accepts`)
  }
  return key
}

const storageOf = (config: ObjstoreConfig) =>
  ({
    Bucket: config.bucket,
    StorageClass: config.storage_class as CreateMultipartUploadCommandInput['StorageClass'],
    ServerSideEncryption: config.server_side_encryption,
    SSEKMSKeyId: config.kms_key_id,
  }) satisfies Partial<CreateMultipartUploadCommandInput>

const objectOf = (
  payload: Payload,
  config: ObjstoreConfig,
  key: string,
  until: Date | null | undefined = retainUntilOf(config, payload),
): CreateMultipartUploadCommandInput => ({
  ...storageOf(config),
  Key: key,
  ContentType: sendableContentType(payload.contentType),
  ...taggingOf(payload.properties),
  ...lockOf(config, until),
  Metadata: {
    'delivery-id': percentEncoded(payload.deliveryId),
    'document-id': percentEncoded(payload.documentId),
    'repo-id': percentEncoded(payload.repoId),
    'doc-id': percentEncoded(payload.docId),
    'comp-id': percentEncoded(payload.compId),
    sha256: payload.sha256,
  },
})

// AWS accepts 8 KiB for all headers of a request. This leaves half of it to the rest.
const taggingMaxCharacters = 4_096

/** Returns the tags in the form of a header, by which they cost no request of their own. */
const taggingOf = (properties: Payload['properties']) => {
  const pairs = Object.entries(properties).map((pair) => pair.map(encodeURIComponent).join('='))
  const Tagging = pairs.join('&')
  return pairs.length > 0 && Tagging.length <= taggingMaxCharacters ? { Tagging } : {}
}

const tagSetOf = (properties: Readonly<Record<string, string>>) => ({
  TagSet: Object.entries(properties).map(([Key, Value]) => ({ Key, Value })),
})
