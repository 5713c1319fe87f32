import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createBatchActivities } from '../../activities/batches.ts'
import { createActivities } from '../../activities/delivery.ts'
import type { Config } from '../../src/config.ts'
import { findConnector } from '../../src/connectors/index.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { Database } from '../../src/db/database.ts'
import { createDeliveries } from '../../src/db/deliveries.ts'
import { createHeld } from '../../src/db/held.ts'
import { createOutbox } from '../../src/db/outbox.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createSources } from '../../src/db/sources.ts'
import { createLog } from '../../src/log.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { startApi, type Tenant } from '../http/api.ts'
import { receiptOf } from './factories.ts'
import { withWorker } from './temporal.ts'

/** The API and a worker on one task queue, with the real activities; targets need no credentials. */
export const withRelay = async <T>(
  env: TestWorkflowEnvironment,
  db: Database,
  config: Config,
  story: (relay: { acme: Tenant; held: ReturnType<typeof createHeld>; launcher: ReturnType<typeof createLauncher> }) => Promise<T>,
): Promise<T> => {
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const held = createHeld(db, config)
  let launcher: ReturnType<typeof createLauncher> | undefined
  const sendAll: ReturnType<typeof createLauncher>['sendAll'] = async (messages) => launcher!.sendAll(messages)
  const activities = {
    ...createActivities({
      deliveries: createDeliveries(db),
      contents: { postgres: createPostgresStore(db), s3: undefined },
      findConnector,
      openCredentials: () => ({}),
      downloadUrl: () => undefined,
      keyRing: createKeyRing(config.RELAY_SECRET_KEYS),
      outbound,
      config,
    }),
    ...createBatchActivities({ db, held, sendAll, config }),
  }
  try {
    return await withWorker(env, activities, async (taskQueue) => {
      const temporal = createTemporal(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: taskQueue })
      const { launch, ...rest } = (launcher = createLauncher(temporal, createOutbox(db), config, createLog('silent')))
      const api = await startApi(db, { variables: { DELIVERY_BATCH_SIZE: String(config.DELIVERY_BATCH_SIZE) }, temporal: { launch } })
      try {
        const acme = await api.tenant(`acme/${taskQueue}`)
        return await story({ acme, held, launcher: { launch, ...rest } })
      } finally {
        await api.stop()
        await launcher.close()
      }
    })
  } finally {
    await outbound.close()
  }
}

type Relay = Parameters<Parameters<typeof withRelay>[3]>[0]

/** A repository Z1, and what a story does with it, as an operator and as a source system. */
export const createScene = async (db: Database, config: Config, { acme, launcher }: Pick<Relay, 'acme' | 'launcher'>) => {
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
