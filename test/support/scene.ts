import { startApi, type ApiOptions } from './api.ts'
import { createTestDatabase } from './database.ts'
import { createRoutes } from './factories.ts'
import { createSourceSystem, type SourceAnswer } from './source-system.ts'
import { until } from './until.ts'

const longAgo = '2026-03-02T10:15:30Z'

/**
 * Starts a database and an API with the workspaces `acme/prod` and `other/prod`. `workspace` creates another one with the repository Z1, its
 * destinations, and a source system that calls it. Call `stop` after the last test of the file.
 */
export const startScene = async (options?: ApiOptions) => {
  const database = await createTestDatabase()
  const { db } = database
  const api = await startApi(db, options)
  const [acme, other] = [await api.tenant('acme/prod'), await api.tenant('other/prod')]
  const closers: (() => Promise<void>)[] = []

  const workspace = async (destinations = [{ name: 'archive' }], routeOptions: Parameters<typeof createRoutes>[2] = {}) => {
    const routes = await createRoutes(db, destinations, routeOptions)
    const name = `acme/${routes.workspaceSlug}`
    const { call, keys } = await api.openTenant({ id: routes.workspaceId, name })
    const path = `/receiver/${name}`
    const source = createSourceSystem(api.baseUrl + path, { repoId: routes.repoId })
    closers.push(source.close)
    /** Asks the management API without a body. */
    const ask = (method: string, subPath: string, key = keys.admin) => call(method, subPath, undefined, { key })
    return {
      ...routes,
      call,
      name,
      path,
      source,
      keys,
      ask,
      /** Dates everything that was received of a document back to `longAgo`. */
      age: async (docId: string) => {
        const key = { workspace_id: routes.workspaceId, doc_id: docId }
        await db('archive_documents').where(key).update({ created_at: longAgo, modified_at: longAgo })
        await db('documents').where(key).update({ received_at: longAgo, modified_at: longAgo })
      },
      /** Counts the rows that a create writes. A failed request must leave none. */
      countRows: async () => {
        const inWorkspace = { workspace_id: routes.workspaceId }
        const [archiveDocuments, documents, contents] = await Promise.all([
          db('archive_documents').where(inWorkspace),
          db('documents').where(inWorkspace),
          db('contents').where(inWorkspace),
        ])
        return { archiveDocuments: archiveDocuments.length, documents: documents.length, contents: contents.length }
      },
      /** Waits until the request of an answer is captured. @returns the captured request */
      captureOf: async (answer: SourceAnswer) => {
        const id = answer.headers['x-relay-request-id']!
        const { json } = await until(
          `request ${id} is captured`,
          () => ask('GET', `/requests/${id}`),
          ({ status }) => status === 200,
        )
        return { id, ...json.data.attributes }
      },
      bodyOf: async (id: string, kind: 'request' | 'response') => {
        const response = await fetch(`${api.baseUrl}/api/${name}/requests/${id}/body/${kind}`, {
          headers: { authorization: `Bearer ${keys.admin}` },
        })
        return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
      },
      /** Waits until at least `count` requests are captured. @returns all of them, newest first */
      list: async (count: number) => {
        const { json } = await until(
          `${count} requests are captured`,
          () => ask('GET', '/requests?per_page=100'),
          (answer) => answer.json.data.length >= count,
        )
        return json.data
      },
    }
  }

  const stop = async () => {
    for (const close of closers) await close()
    await api.stop()
    await database.drop()
  }
  return {
    database,
    db,
    api,
    acme,
    other,
    workspace,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

export type Scene = Awaited<ReturnType<typeof startScene>>
export type SceneWorkspace = Awaited<ReturnType<Scene['workspace']>>
