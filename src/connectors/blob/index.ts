import type { Connector, PropertyRules } from '../connector.ts'
import { certificateExpiresAt } from '../shared/client-certificate.ts'
import type { EntraTokens } from '../shared/entra-tokens.ts'
import { hostAndPath } from '../shared/place.ts'
import { acceptedValue, namesLike } from '../shared/properties.ts'
import type { PartMemory } from '../shared/upload-parts.ts'
import { blobConfig, blobCredentials, blobExample, type BlobConfig, type BlobCredentials } from './schema.ts'

// Imports the SDK, which costs a process 41 MiB and 0.28 CPU-s.
const load = () => import('./deliver.ts')

// https://learn.microsoft.com/azure/storage/blobs/storage-manage-find-blobs#setting-blob-index-tags
const tagProperties: PropertyRules = {
  nameIssue: namesLike(
    /^[A-Za-z0-9 +\-./:=_]+$/,
    128,
    'must be the name of an index tag: at most 128 of A-Z, a-z, 0-9, blank and + - . / : = _',
  ),
  // Without accents, since the service accepts none.
  clean: (value) => acceptedValue(value.replaceAll('ß', 'ss').normalize('NFKD').replaceAll(/\p{M}/gu, ''), /[^A-Za-z0-9 +\-./:=_]/gu, 256),
}

/** Containers of Azure Blob Storage. */
export const createBlob = (tokens: EntraTokens, memory: PartMemory): Connector<BlobConfig, BlobCredentials> => ({
  kind: 'blob',
  config: blobConfig,
  credentials: blobCredentials,
  boundKeys: ['account_url', 'ca_certificate'],
  credentialsExpireAt: certificateExpiresAt,
  example: blobExample,
  deliver: async (...attempt) => (await load()).createDeliver(tokens, memory)(...attempt),
  properties: tagProperties,
  updateMetadata: async (...update) => (await load()).createUpdateMetadata(tokens)(...update),
  read: async (...reading) => (await load()).createRead(tokens)(...reading),
  placeKeys: ['container', 'prefix', 'file_names'],
  placeOf: ({ account_url, container, prefix }) => ({ container: `${hostAndPath(account_url)}/${container}`, prefix }),
  probe: async (...attempt) => (await load()).createProbe(tokens)(...attempt),
})
