import { randomUUID } from 'node:crypto'
import { createReceipts } from '../../src/db/receipts.ts'
import { createSources } from '../../src/db/sources.ts'
import { receiptOf } from '../support/factories.ts'
import type { Running, StartedRelay } from '../support/relay.ts'

/** A repository Z1, and what a story does with it, as an operator and as a source system. */
export const createScene = async ({ db, config }: StartedRelay, { api, launcher }: Running) => {
  const acme = await api.tenant(`acme/${randomUUID()}`)
  const post = async (path: string, body: object) => {
    const { status, json } = await acme.call('POST', path, body)
    if (status !== 201) throw new Error(`${path}: ${status} ${JSON.stringify(json)}`)
    return json.data.id as string
  }
  const [userSlug, workspaceSlug] = acme.path.split('/').slice(2) as [string, string]
  const repositoryId = await post('/repositories', { repo_id: 'Z1', name: 'Inbox' })
  const findSource = async () => (await createSources(db).find(userSlug, workspaceSlug, 'Z1'))!
  const receipts = createReceipts(db, config)

  /** What a source system's create leaves, by the wiring as it was read. */
  const commit = async (source: Awaited<ReturnType<typeof findSource>>, text: string): Promise<string> => {
    const receipt = await receiptOf({ workspaceId: acme.id, findSource: async () => source }, { data: text })
    const { messages } = await receipts.receive(receipt)
    launcher.launch(messages)
    const row = await db('documents').where({ workspace_id: acme.id, doc_id: receipt.docId }).first<{ id: string }>('id')
    return row.id
  }
  return {
    acme,
    repositoryId,
    findSource,
    commit,
    receive: async (text: string) => commit(await findSource(), text),
    destination: (name: string, url: string) =>
      post('/destinations', { name, connector_type: 'webhook', config: { url }, credentials: {} }),
    connect: (destinationIds: string[], more: object = {}) =>
      post('/connections', { name: 'pipeline', repository_ids: [repositoryId], destination_ids: destinationIds, ...more }),
    change: async (connectionId: string, change: object) => {
      const { status } = await acme.call('PATCH', `/connections/${connectionId}`, change)
      if (status !== 200) throw new Error(`the connection was not changed: ${status}`)
    },
    /** As the API tells: the document's status, and those of its deliveries. */
    statusOf: async (documentId: string): Promise<{ document: string; deliveries: string[] }> => {
      const { attributes } = (await acme.call('GET', `/documents/${documentId}`)).json.data
      return { document: attributes.status, deliveries: attributes.deliveries.map(({ status }: { status: string }) => status) }
    },
  }
}

export type Scene = Awaited<ReturnType<typeof createScene>>
