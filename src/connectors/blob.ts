import type { BlockBlobClient, ContainerClient } from '@azure/storage-blob'
import { stageBlock, uploadInBlocks } from './blob-blocks.ts'
import { containerOf, principalOf } from './blob-client.ts'
import { blobError } from './blob-error.ts'
import { blobConfig, blobCredentials, secretsOf, type BlobConfig, type BlobCredentials } from './blob-target.ts'
import { DeliveryError, type AttemptContext, type Connector, type Parcel, type Target } from './connector.ts'
import type { EntraTokens } from './entra-token.ts'
import { partMinBytes } from './parts.ts'
import { contentTypeHeader, percentEncoded } from './percent-encoded.ts'
import { reporting } from './reporting.ts'
import { sending } from './sending.ts'
import { targetSegments } from './target-path.ts'

const nameMaxCharacters = 1_024

/** Puts the document under prefix and path. A repetition writes the same blob again. */
export const createBlob = (tokens: EntraTokens): Connector<BlobConfig, BlobCredentials> => ({
  kind: 'blob',
  config: blobConfig,
  credentials: blobCredentials,

  deliver: (parcel, target, context) =>
    within(target, tokens, context, async (container) => {
      const name = nameOf(target.config.prefix, parcel.path)
      const path = `${target.config.account_url.replace(/\/$/, '')}/${target.config.container}/${name}`
      const client = container.getBlockBlobClient(name)
      const { stored, bytesSent } =
        parcel.sizeBytes <= partMinBytes
          ? await uploadAtOnce(client, parcel, context)
          : await uploadInBlocks(client, path, parcel, propertiesOf(parcel), context)
      return { path, bytesSent, answer: { status: 201, etag: stored.etag, version_id: stored.versionId, request_id: stored.requestId } }
    }),

  probe: (target, context) =>
    within(target, tokens, context, async (container) => {
      // what is to be tried are the credentials, not a token they once gave
      const principal = principalOf(target)
      if (principal) tokens.forget(principal)
      const client = container.getBlockBlobClient(nameOf(target.config.prefix, '.probe'))
      // a block that is never committed: no blob comes of it, and the service drops it after a week
      await stageBlock(client, Buffer.from('probe').toString('base64'), Buffer.from('.'), context.signal)
    }),
})

const within = <Result>(
  target: Target<BlobConfig, BlobCredentials>,
  tokens: EntraTokens,
  context: AttemptContext,
  act: (container: ContainerClient) => Promise<Result>,
) => {
  const secrets = secretsOf(target.credentials)
  return reporting(
    context,
    secrets,
    () => act(containerOf(target, tokens, context, secrets)),
    (thrown) => blobError(thrown, target, secrets),
  )
}

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

const uploadAtOnce = async (client: BlockBlobClient, parcel: Parcel, context: AttemptContext) => {
  const { sizeBytes } = parcel
  const stored = await sending(parcel, context, 0, (body, abortSignal) =>
    client.upload(body, sizeBytes, { ...propertiesOf(parcel), abortSignal }),
  )
  return { stored, bytesSent: sizeBytes }
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
