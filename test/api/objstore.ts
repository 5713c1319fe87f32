import { z } from 'zod'
import { DeliveryError, type Connector } from '../../src/connectors/connector.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import type { WorkspaceClient } from '../support/client.ts'

const { find: findConnector } = createConnectors()

/** An object storage connector without a network. The name of the bucket decides the result of the probe. */
const objectStorage: Connector<{ bucket: string }, { secret_access_key: string }> = {
  kind: 'objstore',
  boundKeys: ['endpoint'],
  config: z.strictObject({ bucket: z.string(), region: z.string(), prefix: z.string().optional() }),
  example: findConnector('objstore')!.example,
  credentials: z.strictObject({ access_key_id: z.string(), secret_access_key: z.string().meta({ secret: true }) }),
  deliver: () => Promise.reject(new Error('not available in this test')),
  probe: async ({ config, credentials }) => {
    if (config.bucket === 'missing') {
      throw new DeliveryError('bucket_missing', `there is no such bucket (asked with ${credentials.secret_access_key})`)
    }
    // Ignores its abort signal.
    if (config.bucket === 'silent') await new Promise(() => {})
    return 'The bucket exists.'
  },
}

/** Finds the real connectors, except that objstore needs no network and drive is not available. */
export const findWithoutNetwork = (kind: string): Connector | undefined => {
  if (kind === 'drive') return undefined
  return kind === 'objstore' ? objectStorage : findConnector(kind)
}

export const objstore = (name: string, config: object = {}) => ({
  name,
  connector_type: 'objstore',
  config: { bucket: 'archive', region: 'eu-central-1', ...config },
  credentials: { access_key_id: 'AKIA', secret_access_key: 'canary-5f1c' },
})

/** Creates a repository, a bucket and a connection between them. */
export const wire = (tenant: WorkspaceClient, repoId: string, isActive = true) =>
  tenant.wire([objstore(`Bucket of ${repoId}`)], { repoId, isActive })
