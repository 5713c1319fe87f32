// `npm run record-histories` runs stories on a real server and writes their histories into `unreleased/`: all stories, or those named after
// `--`. It never writes into the folder of a release: its recordings prove that workflows of that release survive an upgrade.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker'
import { repeatAttempts } from '../../activities/delivery.ts'
import { repeat } from '../../activities/repeat.ts'
import { readConfig } from '../../src/config/config.ts'
import { findTemporal } from '../../src/dev/find-temporal.ts'
import { bundleOf, dataConverter } from '../../src/temporal/data-converter.ts'
import { controlQueueOf, documentWorkflowId, migrationQueueOf, sideQueueOf } from '../../workflows/ids.ts'
import type {
  BatchActivities,
  BulkRetryActivities,
  DeliveryActivities,
  DocumentMigrationActivities,
  DeliveryState,
  DocumentInput,
  MaintenanceActivities,
  NoticeActivities,
  SideWorkActivities,
  SideWorkOutcome,
} from '../../workflows/messages.ts'
import { documentOptions } from '../../workflows/options.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { deliveriesOf, standaloneStories, stories, type StandaloneStory, type Story } from './stories.ts'

const identity = 'recorder'
const folder = new URL('unreleased/', import.meta.url)
// Lowered from 4,096, so that a short story reaches a new run.
const settings = ['limit.historyCount.suggestContinueAsNew=60']
const say = (line: string) => void process.stderr.write(`${line}\n`)

const inputOf = ({ name, destinations = ['archive'], input }: Story): DocumentInput => ({
  documentId: name,
  workspace: 'acme/invoices',
  repoId: 'Z1',
  docId: '005056B5A3F21EEFA9C1D04F7B6E8C11',
  compId: 'data',
  destinations: destinations.map((id) => ({ id, name: id, connector: 'webhook' })),
  policy: { maxRetries: 10, ttlMs: 3_600_000, initialIntervalMs: 50, maxIntervalMs: 50 },
  retryWindowMs: 60_000,
  attemptTimeoutMs: 60_000,
  heartbeatTimeoutMs: 30_000,
  ...input,
})

const activitiesOf = (story: Story): { activities: DeliveryActivities; attempted: Promise<void> } => {
  const attempts = new Map<string, number>()
  const first = Promise.withResolvers<void>()
  const activities: DeliveryActivities = {
    attemptDelivery: async ({ destinationId }) => {
      const attempt = (attempts.get(destinationId) ?? 0) + 1
      attempts.set(destinationId, attempt)
      first.resolve()
      return story.answer(attempt, destinationId)
    },
    recordCancellation: async () => 'failed',
    recordTermination: async () => undefined,
  }
  return { activities: repeatAttempts(activities), attempted: first.promise }
}

const standaloneActivities = ({
  rounds = 2,
  sent = () => ({ status: 'delivered' }),
  ran,
}: StandaloneStory): BatchActivities &
  BulkRetryActivities &
  DocumentMigrationActivities &
  MaintenanceActivities &
  NoticeActivities &
  SideWorkActivities => {
  let calls = 0
  const run = async (): Promise<SideWorkOutcome> => {
    calls += 1
    return ran ? ran(calls) : { status: 'idle' }
  }
  return {
    processBatch: async () => ({ count: (calls += 1) > rounds ? 0 : 500 }),
    retryNextPage: async () => {
      calls += 1
      const done = { retriedDocuments: 200 * calls, retriedDeliveries: 200 * calls }
      return { status: calls > rounds ? 'completed' : 'running', matchedDocuments: 600, ...done }
    },
    migrateNextPage: async () => {
      calls += 1
      return { status: calls > rounds ? 'completed' : 'running', rows: 600, judgedRows: 50 * calls }
    },
    recordBulkRetryCancellation: async () => {},
    runMaintenance: async () => 'sent 0',
    sendNotice: async () => repeat(sent((calls += 1))),
    sendEvents: run,
    enrichDocuments: run,
    bringLateData: run,
    recordNoticeCancellation: async () => {},
  }
}

const runStory = async (client: Client, story: Story, attempted: Promise<void>, taskQueue: string): Promise<void> => {
  const input = inputOf(story)
  const document = await client.workflow.start('document', {
    ...documentOptions(input, { registered: story.registered ?? true }),
    taskQueue,
  })
  const until = async (destinationId: string, status: string) => {
    const delivery = client.workflow.getHandle(
      deliveriesOf({ ...input, destinations: input.destinations.filter(({ id }) => id === destinationId) })[0]!,
    )
    for (;;) {
      const state = await delivery.query<DeliveryState>('status').catch(() => undefined)
      if (state?.status === status) return delivery
      await delay(50)
    }
  }
  await story.act?.({ client, input, document, taskQueue, attempted, until })
  await document.result().catch(() => {})
}

const runStandaloneStory = async (client: Client, { type, options, act }: StandaloneStory, taskQueue: string): Promise<void> => {
  const workflow = await client.workflow.start(type, { ...options, taskQueue })
  await act?.(workflow)
  await workflow.result().catch(() => {})
}

const workflowsOf = (input: DocumentInput) => [documentWorkflowId(input, input.revision), ...deliveriesOf(input)]

/** Returns the histories of all runs of these workflows, the oldest run first. */
const historiesOf = async (client: Client, workflowIds: string[]) => {
  const histories: { workflowId: string; history: unknown }[] = []
  for (const workflowId of workflowIds) {
    for (const runId of await runsOf(client, workflowId)) {
      const history = await client.workflow.getHandle(workflowId, runId).fetchHistory()
      histories.push({ workflowId, history: withoutTraces(historyToJSON(history)) })
    }
  }
  return histories
}

const runsOf = async (client: Client, workflowId: string): Promise<string[]> => {
  const runs: { runId: string; startTime: Date }[] = []
  for await (const run of client.workflow.list({ query: `WorkflowId = '${workflowId}'` })) runs.push(run)
  return runs.toSorted((a, b) => Number(a.startTime) - Number(b.startTime)).map(({ runId }) => runId)
}

// Stack traces contain paths of this machine, and replay does not need them.
const withoutTraces = (json: string): unknown => JSON.parse(json, (key, value: unknown) => (key === 'stackTrace' ? undefined : value))

process.env.TEST_TEMPORAL_BIN ||= await findTemporal({ config: readConfig(), say })
// The database of the server.
process.env.TEST_WORK_DIR ||= await mkdtemp(join(tmpdir(), 'record-histories-'))
const env = await startTemporalServer(settings)
const client = new Client({ connection: env.connection, identity })
const workflowBundle = await bundleWorkflowCode({
  ...bundleOf(fileURLToPath(new URL('../../workflows/index.ts', import.meta.url))),
  logger: new DefaultLogger('ERROR'),
})

const requested = process.argv.slice(2)
const isRequested = ({ name }: { name: string }) => requested.length === 0 || requested.includes(name)
if (requested.length === 0) await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const record = async (name: string, activities: object, run: (taskQueue: string) => Promise<void>, workflowIds: string[]) => {
  const taskQueue = `record-${name}`
  const common = { connection: env.nativeConnection, identity, dataConverter, activities }
  const worker = await Worker.create({ ...common, taskQueue, workflowBundle })
  let work = () => worker.runUntil(run(taskQueue))
  for (const queueOf of [controlQueueOf, migrationQueueOf, sideQueueOf]) {
    const other = await Worker.create({ ...common, taskQueue: queueOf(taskQueue) })
    const inner = work
    work = () => other.runUntil(inner)
  }
  await work()
  // The list of workflows lags behind.
  await delay(1_500)
  const histories = await historiesOf(client, workflowIds)
  await writeFile(new URL(`${name}.json`, folder), `${JSON.stringify(histories)}\n`)
  say(`${name}: ${histories.length} histories`)
}
for (const story of standaloneStories.filter(isRequested)) {
  await record(story.name, standaloneActivities(story), (taskQueue) => runStandaloneStory(client, story, taskQueue), [
    story.options.workflowId,
  ])
}
for (const story of stories.filter(isRequested)) {
  const { activities, attempted } = activitiesOf(story)
  await record(story.name, activities, (taskQueue) => runStory(client, story, attempted, taskQueue), workflowsOf(inputOf(story)))
}
await env.teardown()
