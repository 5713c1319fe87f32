import { createReplay } from '../../src/capture/replay.ts'
import { createKey } from '../../src/commands/key.ts'
import { createCapturedRequests } from '../../src/db/captured-requests.ts'
import { startApi } from '../http/api.ts'
import { startScene } from '../receiver/receiver.ts'
import type { SourceAnswer } from '../support/source-system.ts'
import { until } from '../support/until.ts'

/** A receiver with the management API beside it, on one database. */
export const startCaptureScene = async (variables: Record<string, string> = {}) => {
  const scene = await startScene({ CAPTURE_WRITE_INTERVAL_MS: '20', ...variables })
  const replay = createReplay({ find: createCapturedRequests(scene.db).findRepeatable, process: scene.receiver.replay })
  const api = await startApi(scene.db, { replay })

  const workspace = async (...options: Parameters<typeof scene.workspace>) => {
    const made = await scene.workspace(...options)
    const name = `acme/${made.workspaceSlug}`
    const { key } = await createKey(scene.db, { workspace: name, level: 'admin' })
    const ask = (method: string, path: string, asked = key) => api.call(method, `/api/${name}${path}`, { key: asked })

    /** The captured request of an answer, as soon as it is there. */
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
    /** All there are, newest first, once there are that many. */
    const list = async (count: number) => {
      const { json } = await until(
        `${count} requests are captured`,
        () => ask('GET', '/requests?per_page=100'),
        (listed) => listed.json.data.length >= count,
      )
      return json.data
    }
    return { ...made, name, key, ask, captureOf, bodyOf, list }
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
