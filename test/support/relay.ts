import type { TestWorkflowEnvironment } from '@temporalio/testing'
import type { ActivityDeps } from '../../activities/delivery.ts'
import { createBatchActivities } from '../../activities/batches.ts'
import { createBulkRetryActivities } from '../../activities/bulk-retry.ts'
import { createKey } from '../../src/commands/key.ts'
import { createBulkRetries } from '../../src/db/bulk-retries.ts'
import { createHeld } from '../../src/db/held.ts'
import { createOutbox, type OutboxMessage } from '../../src/db/outbox.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createLog } from '../../src/log.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createLauncher, type Launcher } from '../../src/temporal/launcher.ts'
import { deliveryWorkflowId, documentWorkflowId, type DeliveryState } from '../../workflows/messages.ts'
import { startApi, type Answer, type Api } from '../http/api.ts'
import { createTestDatabase } from './database.ts'
import { deliveryActivities } from './delivery-activities.ts'
import { createWiring, receiptOf, testConfig, type DestinationPlan } from './factories.ts'
import { withWorker } from './temporal.ts'
import { until as waitUntil } from './until.ts'

type Outline = Parameters<typeof createWiring>[2]

interface Target extends DestinationPlan {
  credentials?: object
}

/** A relay whose parts are the real ones: API, outbox, launcher, workflows, activities, connectors. Only the server's clock may be another. */
export const startRelay = async (env: TestWorkflowEnvironment, variables: Record<string, string> = {}) => {
  const database = await createTestDatabase()
  const { db } = database
  const config = testConfig({ OUTBOX_SWEEP_AGE_MS: '0', ...variables })
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const credentials = new Map<string, object>()
  const openCredentials: ActivityDeps['openCredentials'] = ({ destination }) => credentials.get(destination.id) ?? {}
  const held = createHeld(db, config)
  let launcher: Launcher
  const sendAll: Launcher['sendAll'] = (messages) => launcher.sendAll(messages)
  const activities = {
    ...deliveryActivities({ db, config, outbound, openCredentials }),
    ...createBatchActivities({ db, held, sendAll, config }),
    ...createBulkRetryActivities({ bulkRetries: createBulkRetries(db, config), sendAll }),
  }
  type Activities = typeof activities

  /** Once Temporal has been told everything. */
  const launched = () => waitUntil('an empty outbox', async () => (await db('outbox').select('key')).length === 0)

  /** A worker, a launcher and an API, for as long as the story takes. */
  const run = (story: (running: Running) => Promise<void>, wrap: (real: Activities) => Partial<Activities> = () => ({})): Promise<void> =>
    withWorker(env, { ...activities, ...wrap(activities) }, async (taskQueue) => {
      const temporal = createTemporal(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: taskQueue })
      launcher = createLauncher(temporal, createOutbox(db), config, createLog('silent'))
      const api = await startApi(db, { variables, temporal: { launch: launcher.launch, isUnderWay: temporal.isUnderWay } })
      const begun: string[] = []
      const receive = async (wiring: Awaited<ReturnType<typeof createWiring>>, call: Call, text: string, docId?: string) => {
        const received = await createReceipts(db, config).receive(await receiptOf(wiring, { data: text }, docId))
        if (!received.created) throw new Error('not created')
        launcher.launch(received.messages)
        await launched()
        const { documentId } = received.messages[0]!
        begun.push(documentWorkflowId(documentId), ...Object.values(wiring.destinations).map((id) => deliveryWorkflowId(documentId, id)))
        return documentOf(documentId, wiring.destinations, call)
      }
      // a task that no worker takes any more would keep the server from skipping time, so what is open ends with its story
      const end = async (workflowId: string) => {
        const handle = env.client.workflow.getHandle(workflowId)
        const isOpen = async () => (await handle.describe().catch(() => undefined))?.status.name === 'RUNNING'
        if (await isOpen()) await handle.cancel().catch(() => {})
        await waitUntil(`the end of ${workflowId}`, async () => !(await isOpen()))
      }
      try {
        await story({
          api,
          launcher,
          send: temporal.send,
          wire: async (targets, outline) => {
            const wiring = await createWiring(db, targets, outline)
            for (const { name, credentials: secret } of targets) credentials.set(wiring.destinations[name]!, secret ?? {})
            const workspace = `acme/${wiring.workspaceSlug}`
            const { key } = await createKey(db, { workspace, level: 'admin' })
            const call = (method: string, path: string, body?: unknown) => api.call(method, `/api/${workspace}${path}`, { key, body })
            return { ...wiring, call, receive: (text = 'hello', docId?: string) => receive(wiring, call, text, docId) }
          },
        })
      } finally {
        for (const workflowId of begun) await end(workflowId)
        await launcher.close()
        await api.stop()
      }
    })

  const documentOf = (id: string, destinations: Record<string, string>, call: Call) => {
    const nameOf = (destinationId: string) => Object.keys(destinations).find((name) => destinations[name] === destinationId)!
    const handle = (name?: string) =>
      env.client.workflow.getHandle(name === undefined ? documentWorkflowId(id) : deliveryWorkflowId(id, destinations[name]!))
    const shown = async () => (await call('GET', `/documents/${id}`)).json.data.attributes
    return {
      id,
      call,
      handle,
      /** As the API shows it. */
      status: async (): Promise<string> => (await shown()).status,
      deliveries: async (): Promise<Record<string, { status: string; attempts: number; path: string }>> =>
        Object.fromEntries(
          (await shown()).deliveries.map((delivery: { destination_id: string }) => [nameOf(delivery.destination_id), delivery]),
        ),
      /** As the workflow tells it. */
      told: async (name: string): Promise<string> => (await handle(name).query<DeliveryState>('status')).status,
      retry: (name?: string) => call('POST', `/documents/${id}${name === undefined ? '' : `/deliveries/${destinations[name]}`}/retry`),
      outcomes: async (): Promise<string[]> =>
        (await call('GET', `/documents/${id}/attempts?per_page=100`)).json.data.map(
          ({ attributes }: { attributes: { outcome: string } }) => attributes.outcome,
        ),
    }
  }

  return {
    ...database,
    config,
    held,
    run,
    launched,
    stop: async () => {
      await outbound.close()
      await database.drop()
    },
  }
}

export type StartedRelay = Awaited<ReturnType<typeof startRelay>>

type Call = (method: string, path: string, body?: unknown) => Promise<Answer>

export interface Running {
  api: Api
  launcher: Launcher
  send(message: OutboxMessage): Promise<void>
  wire(
    targets: Target[],
    outline?: Outline,
  ): Promise<Awaited<ReturnType<typeof createWiring>> & { call: Call; receive(text?: string, docId?: string): Promise<RelayedDocument> }>
}

export interface RelayedDocument {
  id: string
  call: Call
  handle(name?: string): ReturnType<TestWorkflowEnvironment['client']['workflow']['getHandle']>
  status(): Promise<string>
  deliveries(): Promise<Record<string, { status: string; attempts: number; path: string }>>
  told(name: string): Promise<string>
  retry(name?: string): Promise<Answer>
  outcomes(): Promise<string[]>
}

/** Waits in the server's time, which costs none of ours where the server skips it. */
export const until = async (env: TestWorkflowEnvironment, what: string, check: () => Promise<boolean>, stepMs = 600_000): Promise<void> => {
  // it skips nothing while an attempt is under way: these steps are as short as ours
  const deadline = Date.now() + 60_000
  for (let step = 0; step < 600 || Date.now() < deadline; step += 1) {
    if (await check()) return
    await env.sleep(stepMs)
  }
  throw new Error(`never: ${what}`)
}
