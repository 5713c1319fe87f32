import type { Connector } from '../connector.ts'
import type { PartMemory } from '../shared/upload-parts.ts'
import { objstoreConfig, objstoreCredentials, objstoreExample, type ObjstoreConfig, type ObjstoreCredentials } from './schema.ts'

// Imports the SDK, which costs a process 34 MiB and 0.13 CPU-s.
const load = () => import('./deliver.ts')

/** Buckets of S3 and of stores with its protocol. */
export const createObjstore = (memory: PartMemory): Connector<ObjstoreConfig, ObjstoreCredentials> => ({
  kind: 'objstore',
  config: objstoreConfig,
  credentials: objstoreCredentials,
  boundKeys: ['endpoint', 'ca_certificate'],
  example: objstoreExample,
  deliver: async (...attempt) => (await load()).createDeliver(memory)(...attempt),
  probe: async (...attempt) => (await load()).probe(...attempt),
})
