import type { Config } from '../src/config/config.ts'
import { openDatabase } from '../src/db/database.ts'
import { createWorkspaceClient } from '../test/support/client.ts'
import type { Signer } from '../test/support/signer.ts'
import type { Workspace } from './load.ts'
import type { Kind, Targets } from './targets.ts'

const retrySettings = { retry_initial_interval_seconds: 1, retry_max_interval_seconds: 5, max_retries: 100 }

export interface WorkspaceChanges {
  /** Settings of destinations. */
  configs: Partial<Record<Kind, object>>
  settings: object
}

interface Relay {
  /** Names the database. */
  config: Config
  baseUrl: string
  signer: Signer
  targets: Targets
}

/** Creates a workspace with an open and a signed repository, and a destination of each kind for all documents. */
export const setUpWorkspace = async (
  { config, baseUrl, signer, targets }: Relay,
  slug: string,
  targetKinds: Kind[],
  { configs, settings }: WorkspaceChanges,
): Promise<Workspace> => {
  const name = `faults/${slug}`
  const db = openDatabase(config, 'faults')
  try {
    const { id, keys, change, create, connect } = await createWorkspaceClient(db, baseUrl, name)
    await change('PATCH', '/settings', { ...retrySettings, ...settings })
    const open = await create('/repositories', { repo_id: 'Z1', name: 'Open' })
    const signed = await create('/repositories', { repo_id: 'Z2', name: 'Signed', signature_verification: true })
    await create(`/repositories/${signed}/certificates`, {
      auth_id: 'CN=TST,OU=I0099999999,OU=SAPWebAS,O=SAPTrustCommunity,C=DE',
      certificate: signer.pem,
      status: 'active',
    })
    const destinationIds: string[] = []
    for (const kind of targetKinds) {
      const { config: usual, credentials } = targets.all[kind]
      const target = { config: { ...usual, ...configs[kind] }, credentials }
      destinationIds.push(await create('/destinations', { name: kind, connector_type: kind, ...target }))
    }
    await connect([open, signed], destinationIds)
    return { id, apiPath: `/api/${name}`, key: keys.admin, path: `/receiver/${name}`, repositories: { open: 'Z1', signed: 'Z2' } }
  } finally {
    await db.destroy()
  }
}
