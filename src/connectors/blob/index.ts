import type { Connector } from '../connector.ts'
import type { EntraTokens } from '../shared/entra-tokens.ts'
import type { PartMemory } from '../shared/upload-parts.ts'
import { blobConfig, blobCredentials, blobExample, type BlobConfig, type BlobCredentials } from './schema.ts'

// Imports the SDK, which costs a process 41 MiB and 0.28 CPU-s.
const load = () => import('./deliver.ts')

/** Containers of Azure Blob Storage. */
export const createBlob = (tokens: EntraTokens, memory: PartMemory): Connector<BlobConfig, BlobCredentials> => ({
  kind: 'blob',
  config: blobConfig,
  credentials: blobCredentials,
  boundKeys: ['account_url', 'ca_certificate'],
  example: blobExample,
  deliver: async (...attempt) => (await load()).createDeliver(tokens, memory)(...attempt),
  probe: async (...attempt) => (await load()).createProbe(tokens)(...attempt),
})
