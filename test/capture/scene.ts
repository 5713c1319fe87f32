import { createCapturedRequests } from '../../src/capture/captured-requests.ts'
import { createReplay } from '../../src/capture/replay.ts'
import { createKey } from '../../src/workspace/administration.ts'
import { startApi } from '../api/api.ts'
import { startScene } from '../receiver/receiver.ts'
import type { SourceAnswer } from '../support/source-system.ts'
import { until } from '../support/until.ts'

/** Starts a receiver and a management API on one database, with one content store. */
export const startCaptureScene = async (variables: Record<string, string> = {}, receiverOptions?: Parameters<typeof startScene>[1]) => {
  const scene = await startScene(variables, receiverOptions)
  const replay = createReplay({
    db: scene.db,
    find: createCapturedRequests(scene.db).findForReplay,
    openQuery: scene.receiver.openQuery,
    execute: scene.receiver.replay,
  })
  const api = await startApi(scene.db, { replay, contents: scene.receiver.stores })

  const workspace = async (...options: Parameters<typeof scene.workspace>) => {
    const created = await scene.workspace(...options)
    const name = `acme/${created.workspaceSlug}`
    const { key } = await createKey(scene.db, { workspace: name, level: 'admin' })
    const ask = (method: string, path: string, apiKey = key) => api.call(method, `/api/${name}${path}`, { key: apiKey })

    /** Waits until the request of an answer is captured. @returns the captured request */
    const captureOf = async (answer: SourceAnswer) => {
      const id = answer.headers['x-relay-request-id']!
      const { json } = await until(
        `request ${id} is captured`,
        () => ask('GET', `/requests/${id}`),
        ({ status }) => status === 200,
      )
      return { id, ...json.data.attributes }
    }
    const bodyOf = async (id: string, kind: 'request' | 'response') => {
      const response = await fetch(`${api.url}/api/${name}/requests/${id}/body/${kind}`, { headers: { authorization: `Bearer ${key}` } })
      return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
    }
    /** Waits until at least `count` requests are captured. @returns all of them, newest first */
    const list = async (count: number) => {
      const { json } = await until(
        `${count} requests are captured`,
        () => ask('GET', '/requests?per_page=100'),
        (answer) => answer.json.data.length >= count,
      )
      return json.data
    }
    return { ...created, name, key, ask, captureOf, bodyOf, list }
  }
  return {
    ...scene,
    api,
    workspace,
    stop: async () => {
      await api.stop()
      await scene.stop()
    },
  }
}

export type CaptureScene = Awaited<ReturnType<typeof startCaptureScene>>
export type CaptureWorkspace = Awaited<ReturnType<CaptureScene['workspace']>>
