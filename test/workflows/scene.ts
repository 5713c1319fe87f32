import { randomUUID } from 'node:crypto'
import { createReceive } from '../../src/archive/receive.ts'
import { createReceivingRepositories } from '../../src/archive/receiving-repository.ts'
import { receivedDocument } from '../support/factories.ts'
import type { Running, StartedRelay } from '../support/relay.ts'

/** Creates a workspace with a repository Z1, and functions that act as an operator and as the source system. */
export const createScene = async ({ db, config }: StartedRelay, { api, launcher }: Running) => {
  const acme = await api.tenant(`acme/${randomUUID()}`)
  const post = async (path: string, body: object) => {
    const { status, json } = await acme.call('POST', path, body)
    if (status !== 201) throw new Error(`${path}: ${status} ${JSON.stringify(json)}`)
    return json.data.id as string
  }
  const [userSlug, workspaceSlug] = acme.path.split('/').slice(2) as [string, string]
  const repositoryId = await post('/repositories', { repo_id: 'Z1', name: 'Inbox' })
  const findRepository = async () => (await createReceivingRepositories(db).find(userSlug, workspaceSlug, 'Z1'))!
  const receive = createReceive(db, config)

  /** Commits the receipt of a document with the routes that `repository` contains, even if they have changed since it was read. */
  const commit = async (repository: Awaited<ReturnType<typeof findRepository>>, text: string): Promise<string> => {
    const received = await receivedDocument({ workspaceId: acme.id, findRepository: async () => repository }, { data: text })
    const { messages } = await receive(received)
    launcher.launch(messages)
    const row = await db('documents').where({ workspace_id: acme.id, doc_id: received.docId }).first<{ id: string }>('id')
    return row.id
  }
  return {
    acme,
    workspace: `${userSlug}/${workspaceSlug}`,
    repositoryId,
    findRepository,
    commit,
    receive: async (text: string) => commit(await findRepository(), text),
    destination: (name: string, url: string) =>
      post('/destinations', { name, connector_type: 'webhook', config: { url }, credentials: {} }),
    connect: (destinationIds: string[], more: object = {}) =>
      post('/connections', { name: 'pipeline', repository_ids: [repositoryId], destination_ids: destinationIds, ...more }),
    change: async (connectionId: string, change: object) => {
      const { status } = await acme.call('PATCH', `/connections/${connectionId}`, change)
      if (status !== 200) throw new Error(`the connection was not changed: ${status}`)
    },
    /** Returns the status of a document and those of its deliveries, from the API. */
    statusOf: async (documentId: string): Promise<{ document: string; deliveries: string[] }> => {
      const { attributes } = (await acme.call('GET', `/documents/${documentId}`)).json.data
      return { document: attributes.status, deliveries: attributes.deliveries.map(({ status }: { status: string }) => status) }
    },
  }
}

export type Scene = Awaited<ReturnType<typeof createScene>>
