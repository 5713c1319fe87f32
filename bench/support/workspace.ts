import { openDatabase } from '../../src/db/database.ts'
import { createWorkspaceClient } from '../../test/support/client.ts'
import type { Installation } from './installation.ts'

export interface WorkspaceOptions {
  /** `user/workspace`. */
  name: string
  /** Addresses of the webhooks that the repository Z1 is connected to. */
  targetUrls: string[]
  /** Further repositories, each with the addresses of the webhooks that it is connected to. */
  others?: Record<string, string[]>
  /** Address of a system that answers JSON, from which an enrichment gets a field of each document. */
  enrichmentUrl?: string
  /** False holds all deliveries: documents are accepted and delivered nowhere. */
  isActive?: boolean
}

const enrichmentOf = (repositoryId: string, url: string) => ({
  name: 'Invoices',
  repository_ids: [repositoryId],
  http: { url },
  steps: [{ kind: 'http', name: 'invoice', path: '/{doc_id}', fields: [{ name: 'vendor', path: '$.vendor' }] }],
})

/** Creates a workspace whose repository Z1 is connected to webhooks. @returns the address for the source system */
export const createConnectedWorkspace = async (
  { config }: Pick<Installation, 'config'>,
  baseUrl: string,
  { name, targetUrls, others = {}, enrichmentUrl, isActive = true }: WorkspaceOptions,
): Promise<string> => {
  const db = openDatabase(config, 'bench')
  try {
    const client = await createWorkspaceClient(db, baseUrl, name)
    for (const [repoId, urls] of Object.entries({ Z1: targetUrls, ...others })) {
      const targets = urls.map((url, index) => client.webhook(url, `${repoId} target ${index}`))
      const { repositoryId } = await client.wire(targets, { repoId, isActive })
      if (enrichmentUrl !== undefined) await client.call('POST', '/enrichments', enrichmentOf(repositoryId, enrichmentUrl))
    }
    return `${baseUrl}/receiver/${name}`
  } finally {
    await db.destroy()
  }
}
