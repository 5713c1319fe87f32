import { once } from 'node:events'
import { request } from 'node:http'
import { upstreamSecretsOf } from '../../src/security/seal.ts'
import { createThrowAwayKey } from '../../src/security/throw-away-key.ts'
import { startOldContentServer } from '../support/old-content-server.ts'
import { startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

type OldContentServer = Awaited<ReturnType<typeof startOldContentServer>>

const authId = 'CN=RELAY,OU=migration'

/** Starts a relay, and for each test a workspace whose repository has an old content server of its own as the upstream. */
export const startMigration = async () => {
  const scene = await startScene()
  const closers: (() => Promise<void>)[] = []

  const open = async ({ delivers = false, isSigned = false, port = 0 } = {}) => {
    const old = await startOldContentServer({ isSigned, port })
    let isStopped = false
    const stop = async () => {
      if (!isStopped) await old.stop()
      isStopped = true
    }
    closers.push(stop)
    const workspace = await scene.workspace()
    const { workspaceId, repositoryId, source, ask } = workspace
    const key = isSigned ? await createThrowAwayKey('rsa', 'relay', 1) : undefined
    if (key) old.trust(key.certificate, authId)
    const set = async (change: { url: string; cont_rep: string } | null) => {
      const upstream = change && {
        auth_id: key ? authId : null,
        certificate: key?.certificate ?? null,
        ca_certificate: null,
        proxy_url: null,
        allowed_cidrs: null,
        delivers,
        ...change,
      }
      const secrets = key && { private_key: key.privateKey }
      const sealed = secrets && upstream ? scene.api.keyRing.seal(secrets, upstreamSecretsOf(workspaceId, repositoryId, upstream)) : null
      await scene
        .db('repositories')
        .where({ id: repositoryId })
        .update({ upstream: upstream && JSON.stringify(upstream), upstream_secrets_sealed: sealed })
    }
    await set({ url: old.url, cont_rep: 'Z1' })
    const documents = async () => (await ask('GET', '/documents')).json.data.map(({ attributes }: { attributes: object }) => attributes)
    return {
      ...workspace,
      source,
      old: { ...old, stop },
      set,
      documents,
      /** Waits until a document is kept. @param components the number of its components */
      kept: (docId: string, components: number) =>
        until(
          `${docId} is kept`,
          () => scene.db('documents').where({ workspace_id: workspaceId, doc_id: docId }),
          (rows) => rows.length === components,
        ),
      /** Sends a query, and closes the connection when the headers of the answer have arrived. */
      openRequest: async (query: string) => {
        const sent = request(`${scene.api.baseUrl}${workspace.path}?${query}`).end()
        await once(sent, 'response')
        sent.destroy()
      },
    }
  }
  const stop = async () => {
    await scene.stop()
    for (const close of closers) await close()
  }
  return { scene, open, stop, [Symbol.asyncDispose]: stop }
}

/**
 * Holds the answers of an old content server to the requests whose address contains a text.
 * @returns `arrived` resolves at the first of them; `release` answers them, and those that follow
 */
export const holdRequests = ({ timing }: Pick<OldContentServer, 'timing'>, text: string) => {
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  timing.beforeAnswer = async (url) => {
    if (!url.includes(text)) return
    arrived.resolve()
    await released.promise
  }
  return { arrived: arrived.promise, release: () => released.resolve() }
}
