import { Readable } from 'node:stream'
import { isRestError, type BlobGetPropertiesResponse, type BlockBlobClient, type ContainerClient } from '@azure/storage-blob'
import { z } from 'zod'
import { namesVersion } from '../../base/etag.ts'
import { sendableContentType } from '../../domain/content-type.ts'
import { DeliveryError, type AttemptContext, type Connector, type DeliveryResult, type Payload, type Target } from '../connector.ts'
import { foundInPlace, storeOrFind, type Found } from '../shared/earlier-copy.ts'
import type { EntraTokens } from '../shared/entra-tokens.ts'
import { withDeliveryErrors } from '../shared/errors.ts'
import { isPermanentStatus } from '../shared/final-statuses.ts'
import { percentEncoded } from '../shared/http.ts'
import { noteOperation } from '../shared/operation.ts'
import { withPayloadStream } from '../shared/payload-stream.ts'
import { probePayload, proveWriting } from '../shared/probe.ts'
import { requireSameLocation } from '../shared/properties.ts'
import { retainUntilOf } from '../shared/retention.ts'
import { cutBytes, endsBefore, nameOrVersion } from '../shared/stored-bytes.ts'
import { targetSegments } from '../shared/target-path.ts'
import { canGoOn, minPartBytes, partBytesFor, sendPartsInParallel, type PartMemory } from '../shared/upload-parts.ts'
import { createContainerClient, principalOf } from './client.ts'
import { blobError, refusalOf, withoutEvidence } from './errors.ts'
import { operationOfRequest } from './operation.ts'
import { isRetained, mustRetain, probeRetentionMs, proveRetention, retentionFacts, retentionOf, type Retention } from './retention.ts'
import { secretsOf, type BlobConfig, type BlobCredentials } from './schema.ts'

const nameMaxCharacters = 1_024
// The service accepts 50,000.
const maxBlocks = 49_000

type BlobConnector = Connector<BlobConfig, BlobCredentials>

/** Stores the document as a blob under prefix and path. A repetition writes the same blob again. */
export const createDeliver =
  (tokens: EntraTokens, memory: PartMemory): BlobConnector['deliver'] =>
  (payload, target, context) =>
    withContainer(target, tokens, context, async (container, toError) => {
      const name = nameOf(target.config, payload.path)
      const path = urlOf(target.config, name)
      const client = container.getBlockBlobClient(name)
      const look = () => findBlob(client, path, payload, context.signal)
      const lock = retentionOf(target.config, retainUntilOf(target.config, payload))
      // A repetition would be one more version that no account can delete.
      const earlier = isRetained(target.config) ? await look() : undefined
      if (earlier?.state === 'ours') return earlier.stored
      const retention: Retention = { ...lock, ...(earlier && earlier.state !== 'other' && { conditions: { ifNoneMatch: '*' } }) }
      const upload = () =>
        payload.sizeBytes <= minPartBytes
          ? uploadInOneRequest(client, payload, retention, context)
          : uploadInBlocks(client, path, payload, context, { memory, retention, passes: (thrown) => !toError(thrown).permanent })
      return storeOrFind(
        async () => {
          const { stored, bytesSent } = await upload()
          if (!namesVersion(stored.etag)) throw withoutEvidence(target.config, { status: 201, request_id: stored.requestId })
          return { path, bytesSent, answer: { status: 201, ...answerOf(stored), ...retentionFacts(retention) } }
        },
        { attempt: payload.attempt, refusalOf, look, toError },
      )
    })

const answerOf = ({ etag, versionId, requestId }: Pick<BlobGetPropertiesResponse, 'etag' | 'versionId' | 'requestId'>) => ({
  etag,
  version_id: versionId,
  request_id: requestId,
})

/** Looks at the blob under the name of a document. */
const findBlob = async (
  client: BlockBlobClient,
  path: string,
  payload: Payload,
  abortSignal: AbortSignal,
): Promise<Found<DeliveryResult>> => {
  try {
    const stored = await client.getProperties({ abortSignal })
    const { sha256, delivery_id: deliveryId } = stored.metadata ?? {}
    const isOurs = sha256 === payload.sha256 && deliveryId === percentEncoded(payload.deliveryId)
    if (!isOurs || stored.contentLength !== payload.sizeBytes) return { state: 'other' }
    return { state: 'ours', stored: { path, bytesSent: 0, answer: { status: 200, ...answerOf(stored), body: foundInPlace } } }
  } catch (thrown) {
    const status = isRestError(thrown) ? thrown.statusCode : undefined
    if (status === 404) return { state: 'absent' }
    if (status !== undefined && isPermanentStatus(status)) {
      return { state: 'unknown', needs: 'it needs the permission to read (r in a SAS token, blobs/read in a role) to look' }
    }
    throw thrown
  }
}

const urlOf = ({ account_url: accountUrl, container }: BlobConfig, name: string) => `${accountUrl.replace(/\/$/, '')}/${container}/${name}`

/** Sets the index tags of a stored blob. Tags of others stay. */
export const createUpdateMetadata =
  (tokens: EntraTokens): NonNullable<BlobConnector['updateMetadata']> =>
  (copy, target, context) =>
    withContainer(target, tokens, context, async (container) => {
      const name = nameOf(target.config, copy.path)
      requireSameLocation(copy, urlOf(target.config, name))
      const client = container.getBlockBlobClient(name)
      const { tags: before } = await client.getTags({ abortSignal: context.signal })
      if (Object.entries(copy.properties).every(([tag, value]) => before[tag] === value)) return
      await client.setTags({ ...before, ...copy.properties }, { abortSignal: context.signal })
    })

/** Reads bytes of a stored blob. */
export const createRead =
  (tokens: EntraTokens): NonNullable<BlobConnector['read']> =>
  (copy, span, target, context, take) =>
    withContainer(target, tokens, context, async (container) => {
      const client = container.getBlockBlobClient(nameOf(target.config, copy.path))
      const get = (version?: string) =>
        (version === undefined ? client : client.withVersion(version)).download(span.start, span.end + 1 - span.start, {
          abortSignal: context.signal,
          maxRetryRequests: 0,
        })
      const isAbsent = (thrown: unknown) => isRestError(thrown) && thrown.code === 'BlobNotFound'
      try {
        const found = await nameOrVersion(get, copy, isAbsent, (thrown) => (isRestError(thrown) ? thrown.statusCode : undefined))
        await take(cutBytes(found.readableStreamBody as Readable, span, found.contentRange === undefined ? 0 : span.start))
        return true
      } catch (thrown) {
        if (isAbsent(thrown)) return false
        if (!isRestError(thrown) || !endsBefore(thrown.statusCode)) throw thrown
        await take(Readable.from([]))
        return true
      }
    })

export const createProbe =
  (tokens: EntraTokens): BlobConnector['probe'] =>
  (target, context) =>
    withContainer(target, tokens, context, async (container) => {
      // Test the credentials instead of a token that was issued for them earlier.
      const principal = principalOf(target, context)
      if (principal) tokens.invalidate(principal)
      const payload = probePayload()
      const { config } = target
      const retention = retentionOf(config, mustRetain(config) ? new Date(Date.now() + probeRetentionMs) : undefined)
      let locked = ''
      const names = ['', '-blocks'].map((suffix) => nameOf(target.config, `${payload.path}${suffix}`))
      const [small, large] = names.map((name) => container.getBlockBlobClient(name)) as [BlockBlobClient, BlockBlobClient]
      const proved = await proveWriting(
        { things: 'blobs', place: `container ${target.config.container}`, names, signal: context.signal },
        {
          write: async () => {
            await uploadInOneRequest(small, payload, retention, context)
            await withPayloadStream(payload, context, async (body, abortSignal) => {
              await stageBlock(large, blockId(payload, 1), Buffer.concat(await body.toArray()), abortSignal)
              await large.commitBlockList([blockId(payload, 1)], { ...propertiesOf(payload, retention), abortSignal })
            })
            if (isRetained(config)) locked = await proveRetention(large, retention, context.signal)
          },
          look: (name) => findBlob(name === names[0] ? small : large, name, payload, context.signal),
          remove: async (name) => {
            const blob = name === names[0] ? small : large
            if (config.legal_hold) await blob.setLegalHold(false, { abortSignal: context.signal })
            await blob.delete({ abortSignal: context.signal })
          },
          isAbsent: (thrown) => isRestError(thrown) && thrown.statusCode === 404,
        },
      )
      return proved + locked
    })

const withContainer = <Result>(
  target: Target<BlobConfig, BlobCredentials>,
  tokens: EntraTokens,
  context: AttemptContext,
  act: (container: ContainerClient, toError: (thrown: unknown) => DeliveryError) => Promise<Result>,
) => {
  const secrets = secretsOf(target.credentials)
  const toError = (thrown: unknown) => {
    // An answer of the service becomes an error above the client, which has noted the other ones.
    if (isRestError(thrown) && thrown.request !== undefined) noteOperation(thrown, operationOfRequest(thrown.request))
    return blobError(thrown, target, secrets)
  }
  return withDeliveryErrors(context, secrets, () => act(createContainerClient(target, tokens, context, secrets), toError), toError)
}

/**
 * Returns the name of the blob. The service drops a dot at the end of a segment in some places, so that dot is escaped.
 */
const nameOf = ({ prefix, file_names: names }: BlobConfig, path: string) => {
  const name =
    prefix +
    targetSegments(path, { names })
      .map((segment) => segment.replace(/\.$/, '%2E'))
      .join('/')
  if (name.length > nameMaxCharacters) {
    throw new DeliveryError(
      'path_too_long',
      `prefix and path together exceed ${nameMaxCharacters} characters, the longest name that a blob can have`,
    )
  }
  return name
}

const uploadInOneRequest = async (client: BlockBlobClient, payload: Payload, retention: Retention, context: AttemptContext) => {
  const { sizeBytes } = payload
  const stored = await withPayloadStream(payload, context, (body, abortSignal) =>
    client.upload(body, sizeBytes, { ...propertiesOf(payload, retention), abortSignal }),
  )
  return { stored, bytesSent: sizeBytes }
}

const savedBlocks = z.object({
  /** The blob's address without credentials. */
  path: z.string(),
  /** The source system may have appended to the document since. */
  sha256: z.string(),
  /** The number of staged blocks, counted from the first one up to the first gap. */
  staged: z.int().min(0),
  /** The numbers of those after the gap: blocks are sent in parallel. */
  beyond: z.array(z.int()).max(100).default([]),
})

type SavedBlocks = z.output<typeof savedBlocks>

/**
 * Sends a document in blocks and commits them as a blob. Continues after the blocks that an earlier attempt has staged.
 * If the service has deleted those (after a week, or when another client wrote the blob), all blocks are sent again.
 */
const uploadInBlocks = async (client: BlockBlobClient, path: string, payload: Payload, context: AttemptContext, upload: UploadOptions) => {
  const { data: saved } = savedBlocks.safeParse(context.saved)
  const nothing: SavedBlocks = { path, sha256: payload.sha256, staged: 0, beyond: [] }
  const before = saved?.path === path && saved.sha256 === payload.sha256 ? saved : nothing
  // Blocks that an attempt does not save are forgotten.
  if (before !== nothing) context.save(before)
  try {
    return await uploadRemainingBlocks(before, client, payload, context, upload)
  } catch (thrown) {
    if (before === nothing || !isRestError(thrown) || thrown.code !== 'InvalidBlockList') throw thrown
    return uploadRemainingBlocks(nothing, client, payload, context, upload)
  }
}

interface UploadOptions {
  memory: PartMemory
  retention: Retention
  passes(thrown: unknown): boolean
}

const uploadRemainingBlocks = async (
  before: SavedBlocks,
  client: BlockBlobClient,
  payload: Payload,
  context: AttemptContext,
  { memory, retention, passes }: UploadOptions,
) => {
  const { sizeBytes } = payload
  const partBytes = partBytesFor(sizeBytes, maxBlocks)
  const startByte = Math.min(before.staged * partBytes, sizeBytes)
  const beyond = new Set(before.beyond)
  const continues = canGoOn(context, passes)
  let { staged } = before
  let bytesSent = 0

  const stored = await withPayloadStream(payload, { ...context, startByte }, async (body, abortSignal) => {
    const options = {
      sizeBytes: sizeBytes - startByte,
      partBytes,
      memory,
      isStored: (nth: number) => before.beyond.includes(before.staged + nth),
      goesOn: (thrown: unknown) => continues(thrown, abortSignal),
    }
    await sendPartsInParallel(body, options, async (bytes, nth) => {
      const number = before.staged + nth
      await stageBlock(client, blockId(payload, number), bytes, abortSignal)
      bytesSent += bytes.length
      beyond.add(number)
      while (beyond.delete(staged + 1)) staged += 1
      context.save({ ...before, staged, beyond: [...beyond] } satisfies SavedBlocks)
    })
    const blocks = Array.from({ length: Math.ceil(sizeBytes / partBytes) }, (_, index) => blockId(payload, index + 1))
    return client.commitBlockList(blocks, { ...propertiesOf(payload, retention), abortSignal })
  })
  return { stored, bytesSent }
}

const stageBlock = (client: BlockBlobClient, id: string, bytes: Buffer, abortSignal: AbortSignal) =>
  client.stageBlock(id, bytes, bytes.length, { abortSignal })

/** Derived from the content, so that two attempts that overlap commit the same blob. */
const blockId = ({ sha256 }: Payload, number: number) =>
  Buffer.from(`${sha256.slice(0, 32)}-${String(number).padStart(5, '0')}`).toString('base64')

const propertiesOf = (payload: Payload, retention: Retention) => ({
  ...retention,
  ...(Object.keys(payload.properties).length > 0 && { tags: payload.properties }),
  blobHTTPHeaders: { blobContentType: sendableContentType(payload.contentType) },
  // The service requires names that are valid C# identifiers, hence underscores.
  metadata: {
    delivery_id: percentEncoded(payload.deliveryId),
    document_id: percentEncoded(payload.documentId),
    repo_id: percentEncoded(payload.repoId),
    doc_id: percentEncoded(payload.docId),
    comp_id: percentEncoded(payload.compId),
    sha256: payload.sha256,
  },
})
