import type { Connector, PropertyRules } from '../connector.ts'
import { createTokenCache } from '../shared/access-tokens.ts'
import { acceptedValue, namesLike } from '../shared/properties.ts'
import { createReadTokenFile } from '../shared/token-files.ts'
import type { PartMemory } from '../shared/upload-parts.ts'
import { objstoreConfig, objstoreCredentials, objstoreExample, type ObjstoreConfig, type ObjstoreCredentials } from './schema.ts'
import { createAwsSessions } from './sessions.ts'

// Imports the SDK, which costs a process 34 MiB and 0.13 CPU-s.
const load = () => import('./deliver.ts')

// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html
const tagProperties: PropertyRules = {
  nameIssue: namesLike(
    /^(?!aws:)[\p{L}\p{Z}\p{N}_.:/=+\-@]+$/iu,
    128,
    'must be the name of an object tag: at most 128 letters, digits, blanks and + - = . _ : / @, without aws: in front',
  ),
  clean: (value) => acceptedValue(value, /[^\p{L}\p{Z}\p{N}_.:/=+\-@]/gu, 256),
}

// The name of a bucket is unique in all regions of AWS.
const storeOf = (endpoint: string | undefined) => {
  const host = endpoint === undefined ? 'amazonaws.com' : new URL(endpoint).host
  return /(^|[.])amazonaws[.]com([.]cn)?$/.test(host) ? 'amazonaws.com' : host
}

/**
 * Buckets of S3 and of stores with its protocol.
 * @param sessions those of the roles that the operator allows; by default, none
 */
export const createObjstore = (
  memory: PartMemory,
  sessions = createAwsSessions(createTokenCache(), [], createReadTokenFile([])),
): Connector<ObjstoreConfig, ObjstoreCredentials> => ({
  kind: 'objstore',
  config: objstoreConfig,
  credentials: objstoreCredentials,
  boundKeys: ['endpoint', 'ca_certificate'],
  example: objstoreExample,
  deliver: async (...attempt) => (await load()).createDeliver(memory, sessions)(...attempt),
  giveUp: async (...upload) => (await load()).createGiveUp(sessions)(...upload),
  properties: tagProperties,
  updateMetadata: async (...update) => (await load()).createUpdateMetadata(sessions)(...update),
  read: async (...reading) => (await load()).createRead(sessions)(...reading),
  placeKeys: ['bucket', 'prefix', 'file_names'],
  placeOf: ({ endpoint, bucket, prefix }) => ({ container: `${storeOf(endpoint)}/${bucket}`, prefix }),
  probe: async (...attempt) => (await load()).createProbe(memory, sessions)(...attempt),
})
