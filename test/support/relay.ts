import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createBatchActivities } from '../../activities/batches.ts'
import { createBulkRetryActivities } from '../../activities/bulk-retry.ts'
import { createSideWorkActivities } from '../../activities/side-work.ts'
import { createSideWork } from '../../src/app/side-work.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createLog } from '../../src/base/log.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createOpenCredentials } from '../../src/connectors/target.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import { createInstallation } from '../../src/db/installation.ts'
import { createOnItsOwn } from '../../src/db/on-its-own.ts'
import { createOutbox } from '../../src/db/outbox.ts'
import { createAttemptNow } from '../../src/delivery/attempt-now.ts'
import type { BulkPage } from '../../src/delivery/bulk-page.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import type { DeliverDeps } from '../../src/delivery/deliver.ts'
import { createLateData } from '../../src/delivery/late-data.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { createWakeNext } from '../../src/delivery/wake.ts'
import { createEnrich } from '../../src/enrichment/enrich.ts'
import { createReaderProcess } from '../../src/http/reader-process.ts'
import { createThreads } from '../../src/http/threads.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createTemporal, type Temporal } from '../../src/temporal/client.ts'
import { createDispatcher } from '../../src/temporal/dispatcher.ts'
import { createLauncher, type Launcher } from '../../src/temporal/launcher.ts'
import { createWorkspaces } from '../../src/workspace/workspaces.ts'
import { deliveryWorkflowId, documentWorkflowId, type DocumentKey } from '../../workflows/ids.ts'
import { deliveryStatusQuery } from '../../workflows/messages.ts'
import { startApi, type Api } from './api.ts'
import type { Answer, WorkspaceClient } from './client.ts'
import { createTestDatabase } from './database.ts'
import { deliveryActivities } from './delivery-activities.ts'
import { createRoutes, receivedDocument, testConfig, type DestinationPlan } from './factories.ts'
import { startWorker } from './temporal.ts'
import { until as waitUntil } from './until.ts'

const log = createLog('silent')
const { onItsOwn } = createOnItsOwn({ log })

type RouteOptions = Parameters<typeof createRoutes>[2]

interface Target extends DestinationPlan {
  credentials?: object
}

/** Starts a relay with the real API, outbox, launcher, dispatcher, workflows, activities and connectors. `env` may be a server that skips time. */
export const startRelay = async (
  env: TestWorkflowEnvironment,
  variables: Record<string, string> = {},
  limits: { batchSize?: number } = {},
) => {
  const database = await createTestDatabase()
  const { db } = database
  const config = testConfig(variables)
  const outbound = createOutboundGuard({
    allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS,
    proxyUrl: config.RELAY_OUTBOUND_PROXY,
    noProxy: config.RELAY_OUTBOUND_NO_PROXY,
  })
  const credentials = new Map<string, object>()
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  // The credentials that a scenario gives to a destination, or that were saved through the API.
  const openSaved = createOpenCredentials(keyRing)
  const openCredentials: DeliverDeps['openCredentials'] = (job, connector) =>
    credentials.get(job.destination.id) ?? (job.credentialsSealed.length === 0 ? {} : openSaved(job, connector))
  const release = createRelease(db)
  let launcher: Launcher
  let bulkPage: BulkPage
  const sendAll: Launcher['sendAll'] = (messages) => launcher.sendAll(messages)
  const wakeNext = createWakeNext(db, config, (messages) => launcher.launch(messages), createLog('silent'))
  const threads = createThreads()
  const reader = createReaderProcess()
  const installation = createInstallation(db)
  const { find: findConnector } = createConnectors(config)
  const saveUpdated = async () => undefined
  const { bringLateData } = createLateData({
    db,
    findConnector,
    openCredentials,
    outbound,
    installation,
    log,
    onItsOwn,
    saveUpdated,
    config,
  })
  const enrichDocuments = createEnrich({
    db,
    onItsOwn,
    findConnector,
    contents: createSegmentedStores(db, { postgres: createPostgresStore(db) }),
    workspaces: createWorkspaces(db),
    keyRing,
    outbound,
    installation,
    runOnThread: threads.run,
    runInProcess: reader.run,
    config,
  })
  const activities = {
    ...createSideWorkActivities({ enrichDocuments, bringLateData }),
    ...deliveryActivities({
      db,
      config,
      findConnector,
      outbound,
      openCredentials,
      recordAttempt: createRecordAttempt(db, config, wakeNext),
      wakeNext,
    }),
    ...createBatchActivities({ db, release, attemptNow: createAttemptNow(db, config), sendAll, ...limits }),
    ...createBulkRetryActivities({ bulkRetries: createBulkRetries(db), bulkPage: (...page) => bulkPage(...page) }),
  }
  type Activities = typeof activities

  /** Waits until every message of the outbox has been sent to Temporal. */
  const untilOutboxEmpty = () => waitUntil('the outbox is empty', async () => (await db('outbox').select('key')).length === 0)

  /** Starts a worker, a launcher and an API. */
  const start = async (wrapped: Partial<Activities> = {}) => {
    const worker = await startWorker(env, { ...activities, ...wrapped })
    const temporal = createTemporal(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: worker.taskQueue })
    const ownLauncher = createLauncher(temporal, createOutbox(db), log, { sweepAgeMs: 0 })
    const api = await startApi(db, {
      variables,
      limits: { endpoints: limits },
      findConnector,
      keyRing,
      temporal: { launch: ownLauncher.launch, wakeNext, isDeliveryRunning: temporal.isDeliveryRunning },
    })
    const workflowIds: string[] = []
    const receive = async (routes: Awaited<ReturnType<typeof createRoutes>>, call: Call, text: string, docId?: string) => {
      const received = await createReceive(db, config)(await receivedDocument(routes, { data: text }, docId))
      if (!received.created) throw new Error('not created')
      await ownLauncher.sendAll(received.messages)
      const { documentId, repoId, compId } = received.documents[0]!
      const { doc_id: storedDocId } = await db('documents').where({ id: documentId }).first<{ doc_id: string }>('doc_id')
      const key = { documentId, repoId, docId: storedDocId, compId, workspace: `acme/${routes.workspaceSlug}` }
      workflowIds.push(documentWorkflowId(key), ...Object.values(routes.destinations).map((id) => deliveryWorkflowId(key, id)))
      return documentOf(key, routes.destinations, call)
    }
    // An open task that no worker polls for would keep the server from skipping time in later scenarios.
    const cancelIfOpen = async (workflowId: string) => {
      const handle = env.client.workflow.getHandle(workflowId)
      const isOpen = async () => (await handle.describe().catch(() => undefined))?.status.name === 'RUNNING'
      if (await isOpen()) await handle.cancel().catch(() => {})
      await waitUntil(`workflow ${workflowId} is closed`, async () => !(await isOpen()))
    }
    const running: Running = {
      api,
      launcher: ownLauncher,
      send: temporal.send,
      createRoutes: async (targets, options) => {
        const routes = await createRoutes(db, targets, options)
        for (const { name, credentials: secret } of targets) credentials.set(routes.destinations[name]!, secret ?? {})
        const { call, keys } = await api.openTenant({ id: routes.workspaceId, name: `acme/${routes.workspaceSlug}` })
        return { ...routes, call, keys, receive: (text = 'hello', docId?: string) => receive(routes, call, text, docId) }
      },
    }
    return {
      run: async (scenario: (running: Running) => Promise<void>) => {
        launcher = ownLauncher
        bulkPage = api.bulkPage
        // Only while the scenario runs: another one may have a worker with another task queue.
        const sideWork = createSideWork(db, temporal.startSideWork, onItsOwn)
        const dispatcher = createDispatcher({ db, temporal, sideWork, config, log })
        dispatcher.start()
        try {
          await Promise.race([scenario(running), worker.ended])
        } finally {
          await dispatcher.close()
          for (const workflowId of workflowIds.splice(0)) await cancelIfOpen(workflowId)
        }
      },
      [Symbol.asyncDispose]: async () => {
        await ownLauncher.close()
        await api.stop()
        await worker.stop()
      },
    }
  }

  // Starting takes a second of processor time, so all scenarios that replace no activity share what the first one starts.
  let shared: ReturnType<typeof start> | undefined

  /** Runs a scenario with a worker, a launcher and an API, and closes the workflows that it leaves open. `wrap` replaces activities. */
  const run = async (scenario: (running: Running) => Promise<void>, wrap?: (real: Activities) => Partial<Activities>): Promise<void> => {
    if (!wrap) return (await (shared ??= start())).run(scenario)
    await using own = await start(wrap(activities))
    await own.run(scenario)
  }

  const documentOf = (key: DocumentKey, destinations: Record<string, string>, call: Call) => {
    const id = key.documentId
    const nameOf = (destinationId: string) => Object.keys(destinations).find((name) => destinations[name] === destinationId)!
    const handle = (name?: string) =>
      env.client.workflow.getHandle(name === undefined ? documentWorkflowId(key) : deliveryWorkflowId(key, destinations[name]!))
    const readAttributes = async () => (await call('GET', `/documents/${id}`)).json.data.attributes
    return {
      id,
      call,
      handle,
      /** Returns the status in the API. */
      status: async (): Promise<string> => (await readAttributes()).status,
      deliveries: async (): Promise<Record<string, { status: string; attempts: number; path: string }>> =>
        Object.fromEntries(
          (await readAttributes()).deliveries.map((delivery: { destination_id: string }) => [nameOf(delivery.destination_id), delivery]),
        ),
      /** Returns the status that the workflow of the delivery reports. */
      workflowStatus: async (name: string): Promise<string> => (await handle(name).query(deliveryStatusQuery)).status,
      makeTryDue: async () => {
        await db('document_enrichments')
          .where({ document_id: id, status: 'pending' })
          .where('next_try_at', '>', db.fn.now())
          .update({ next_try_at: db.fn.now() })
      },
      retry: (name?: string) => call('POST', `/documents/${id}${name === undefined ? '' : `/deliveries/${destinations[name]}`}/retry`),
      outcomes: async (): Promise<string[]> =>
        (await call('GET', `/documents/${id}/attempts?per_page=100`)).json.data.map(
          ({ attributes }: { attributes: { outcome: string } }) => attributes.outcome,
        ),
    }
  }

  const stop = async () => {
    await (await shared)?.[Symbol.asyncDispose]()
    await threads.close()
    await reader.close()
    await outbound.close()
    await database.drop()
  }
  return {
    ...database,
    config,
    release,
    run,
    untilOutboxEmpty,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

export type StartedRelay = Awaited<ReturnType<typeof startRelay>>

type Call = WorkspaceClient['call']

export interface Running {
  api: Api
  launcher: Launcher
  send: Temporal['send']
  createRoutes(
    targets: Target[],
    options?: RouteOptions,
  ): Promise<
    Awaited<ReturnType<typeof createRoutes>> &
      Pick<WorkspaceClient, 'call' | 'keys'> & { receive(text?: string, docId?: string): Promise<RelayedDocument> }
  >
}

export interface RelayedDocument {
  id: string
  call: Call
  handle(name?: string): ReturnType<TestWorkflowEnvironment['client']['workflow']['getHandle']>
  status(): Promise<string>
  deliveries(): Promise<Record<string, { status: string; attempts: number; path: string }>>
  workflowStatus(name: string): Promise<string>
  /** Makes the next try of its enrichments due. A try that is under way plans a later one when it ends, so this is repeated while a test waits. */
  makeTryDue(): Promise<void>
  retry(name?: string): Promise<Answer>
  outcomes(): Promise<string[]>
}

/** Waits in the server's time. A server that skips time takes almost no real time for it. */
export const until = async (
  env: TestWorkflowEnvironment,
  description: string,
  check: () => Promise<boolean>,
  stepMs = 600_000,
): Promise<void> => {
  // The server does not skip time while an attempt runs, so the number of steps alone is no measure of real time.
  const deadline = Date.now() + 60_000
  for (let step = 0; step < 600 || Date.now() < deadline; step += 1) {
    if (await check()) return
    await env.sleep(stepMs)
  }
  throw new Error(`timed out waiting for: ${description}`)
}
