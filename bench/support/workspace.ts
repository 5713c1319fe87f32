import { openDatabase } from '../../src/db/database.ts'
import { createKey, createWorkspace } from '../../src/workspace/administration.ts'
import { managementApi } from '../../test/support/management-api.ts'
import type { Installation } from './installation.ts'

export interface WorkspaceOptions {
  /** `user/workspace`. */
  name: string
  /** Addresses of the webhooks that the repository Z1 is connected to. */
  targetUrls: string[]
  /** Further repositories, each with the addresses of the webhooks that it is connected to. */
  others?: Record<string, string[]>
  /** False holds all deliveries: documents are accepted and delivered nowhere. */
  isActive?: boolean
}

/** Creates a workspace whose repository Z1 is connected to webhooks. @returns the address for the source system */
export const createConnectedWorkspace = async (
  { config }: Pick<Installation, 'config'>,
  baseUrl: string,
  { name, targetUrls, others = {}, isActive = true }: WorkspaceOptions,
): Promise<string> => {
  const db = openDatabase(config, 'bench')
  try {
    await createWorkspace(db, name)
    const { key } = await createKey(db, { workspace: name, level: 'admin' })
    const send = managementApi(baseUrl, name, key)
    for (const [repoId, urls] of Object.entries({ Z1: targetUrls, ...others })) {
      const repository = await send('POST', '/repositories', { repo_id: repoId, name: repoId })
      const destinations: string[] = []
      for (const [index, url] of urls.entries()) {
        const destination = { name: `${repoId} target ${index}`, connector_type: 'webhook', config: { url }, credentials: {} }
        destinations.push(await send('POST', '/destinations', destination))
      }
      await send('POST', '/connections', { name: repoId, repository_ids: [repository], destination_ids: destinations, is_active: isActive })
    }
    return `${baseUrl}/receiver/${name}`
  } finally {
    await db.destroy()
  }
}
