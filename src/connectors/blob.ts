import type { BlockBlobClient } from '@azure/storage-blob'
import { containerOf, type TokenSource } from './blob-client.ts'
import { blobError } from './blob-error.ts'
import { blobConfig, blobCredentials, type BlobConfig, type BlobCredentials } from './blob-target.ts'
import { DeliveryError, type Connector, type Parcel } from './connector.ts'
import { createEntraTokens } from './entra-token.ts'
import { metered } from './metered.ts'
import { partBytesOf, partMinBytes, sendInParts } from './parts.ts'
import { contentTypeHeader, percentEncoded } from './percent-encoded.ts'
import { targetSegments } from './target-path.ts'

const nameMaxCharacters = 1_024
// the service takes 50,000
const blocksAtMost = 49_000

/** Puts the document under prefix and path. A repetition writes the same blob again. */
export const createBlob = (tokens: TokenSource): Connector<BlobConfig, BlobCredentials> => ({
  kind: 'blob',
  config: blobConfig,
  credentials: blobCredentials,

  deliver: async (parcel, target, context) => {
    const name = nameOf(target.config.prefix, parcel.path)
    const stop = new AbortController()
    const abortSignal = AbortSignal.any([context.signal, stop.signal])
    const body = metered(parcel.open(), { sizeBytes: parcel.sizeBytes, signal: abortSignal, onBytes: context.onProgress })
    // a request whose body dies would wait for the rest of it
    body.once('error', (error) => stop.abort(error))
    try {
      const client = containerOf(target, tokens, context).getBlockBlobClient(name)
      const options = { ...propertiesOf(parcel), abortSignal }
      const stored =
        parcel.sizeBytes <= partMinBytes
          ? await client.upload(body, parcel.sizeBytes, options)
          : await client.commitBlockList(
              await sendInParts(
                body,
                { sizeBytes: parcel.sizeBytes, partBytes: partBytesOf(parcel.sizeBytes, blocksAtMost) },
                (bytes, number) => stage(client, blockId(parcel, number), bytes, abortSignal),
              ),
              options,
            )
      return {
        path: `${target.config.account_url.replace(/\/$/, '')}/${target.config.container}/${name}`,
        bytesSent: parcel.sizeBytes,
        answer: { status: 201, etag: stored.etag, version_id: stored.versionId, request_id: stored.requestId },
      }
    } catch (thrown) {
      context.signal.throwIfAborted()
      throw blobError(stop.signal.reason instanceof DeliveryError ? stop.signal.reason : thrown, target)
    } finally {
      // ends the blocks that are still in flight when one has failed
      stop.abort()
      body.destroy()
    }
  },

  probe: async (target, context) => {
    try {
      const client = containerOf(target, tokens, context).getBlockBlobClient(nameOf(target.config.prefix, '.probe'))
      // a block that is never committed: no blob comes of it, and the service drops it after a week
      await stage(client, Buffer.from('probe').toString('base64'), Buffer.from('.'), context.signal)
    } catch (thrown) {
      context.signal.throwIfAborted()
      throw blobError(thrown, target)
    }
  },
})

export const blob = createBlob(createEntraTokens())

/** The blob's name, in which no part ends with a dot: the service drops such dots in some places and keeps them in others. */
const nameOf = (prefix: string, path: string) => {
  const name =
    prefix +
    targetSegments(path)
      .map((segment) => segment.replace(/\.$/, '%2E'))
      .join('/')
  if (name.length > nameMaxCharacters) {
    throw new DeliveryError('path_too_long', `prefix and path have more than the ${nameMaxCharacters} characters a blob's name may have`, {
      permanent: true,
    })
  }
  return name
}

/** The same for the same bytes, so that two attempts that overlap commit the same blob. */
const blockId = ({ sha256 }: Parcel, number: number) =>
  Buffer.from(`${sha256.slice(0, 32)}-${String(number).padStart(5, '0')}`).toString('base64')

const stage = async (client: BlockBlobClient, id: string, bytes: Buffer, abortSignal: AbortSignal) => {
  await client.stageBlock(id, bytes, bytes.length, { abortSignal })
  return id
}

const propertiesOf = (parcel: Parcel) => ({
  blobHTTPHeaders: { blobContentType: contentTypeHeader(parcel.contentType) },
  // with underscores: the service takes no other names than C# does
  metadata: {
    delivery_id: percentEncoded(parcel.deliveryId),
    document_id: percentEncoded(parcel.documentId),
    repo_id: percentEncoded(parcel.repoId),
    doc_id: percentEncoded(parcel.docId),
    comp_id: percentEncoded(parcel.compId),
    sha256: parcel.sha256,
  },
})
