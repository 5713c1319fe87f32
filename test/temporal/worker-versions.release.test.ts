import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { repeatAttempts } from '../../activities/delivery.ts'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import { runProgram } from '../../src/programs/programs.ts'
import { makeCurrent } from '../../src/temporal/worker-version.ts'
import { connectWorker, startTemporalWorker } from '../../src/temporal/worker.ts'
import { type AttemptInput, type DeliveryActivities, type DeliveryInput, retrySignal, wakeSignal } from '../../workflows/messages.ts'
import { deliveryOptions } from '../../workflows/options.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { temporalVariables } from '../support/temporal-cluster.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { until } from '../support/until.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

const env = share(await startTemporalServer())

const configOf = (buildId: string, name: string) =>
  testConfig({
    ...temporalVariables(env),
    TEMPORAL_TASK_QUEUE: name,
    TEMPORAL_WORKER_DEPLOYMENT: name,
    TEMPORAL_WORKER_BUILD_ID: buildId,
  })

/** Starts a worker of this build whose attempts all have this outcome. @returns a function that stops it */
const startBuild = async (buildId: string, name: string, outcome: AttemptOutcome) => {
  const activities: DeliveryActivities = {
    attemptDelivery: async () => outcome,
    recordCancellation: async () => 'failed',
    recordTermination: async () => undefined,
  }
  const config = configOf(buildId, name)
  const worker = await startTemporalWorker(
    config,
    await connectWorker(config.temporal),
    { targets: repeatAttempts(activities), control: activities, migration: activities, side: activities },
    { workflowBundle: { codePath: process.env.TEST_WORKFLOW_BUNDLE! } },
  )
  return worker.stop
}

// The start, a workflow task, and the activity that it schedules. A repeated attempt adds no event.
const eventsBeforeAttempt = 4

const policy: AttemptInput['policy'] = { maxRetries: 5, ttlMs: 3_600_000, initialIntervalMs: 1_000, maxIntervalMs: 1_000 }

const waits: [name: string, outcome: AttemptOutcome, status: string][] = [
  ['a manual retry', { status: 'failed', error: 'credentials refused' }, 'failed'],
  // Later than the promotion on a slow machine: an attempt that comes during it may still end with the old build.
  ['its next attempt', { status: 'retrying', delayMs: 15_000, failures: 1, error: 'HTTP 503' }, 'retrying'],
  ['its turn', { status: 'waiting' }, 'pending'],
]

test.each(waits)('a delivery that waits for %s moves from the old build to the one that is promoted', async (_, outcome, status) => {
  const name = randomUUID()
  const input: DeliveryInput = {
    documentId: randomUUID(),
    workspace: 'acme/invoices',
    repoId: 'Z1',
    docId: 'DOC1',
    compId: 'data',
    destination: { id: 'archive', name: 'archive', connector: 'webhook' },
    policy,
    retryWindowMs: 3_600_000,
    attemptTimeoutMs: 60_000,
    heartbeatTimeoutMs: 30_000,
  }
  const stopOld = await startBuild('1', name, outcome)
  expect(await makeCurrent(configOf('1', name))).toEqual({ deploymentName: name, buildId: '1', previousBuildId: undefined })
  const handle = await env.client.workflow.start('delivery', { ...deliveryOptions(input, { registered: true }), taskQueue: name })
  // Not a query: a build that has just become current may not get it in time.
  await until('the delivery waits', async () => {
    const { raw, historyLength } = await handle.describe()
    const hasEnded = raw.pendingActivities?.every(({ attempt }) => Number(attempt) > 1) === true && !raw.pendingWorkflowTask
    return hasEnded && historyLength > eventsBeforeAttempt
  })

  const stopNew = await startBuild('2', name, { status: 'delivered' })
  expect(await makeCurrent(configOf('2', name))).toMatchObject({ buildId: '2', previousBuildId: '1' })
  await stopOld()
  if (status === 'failed') await handle.signal(retrySignal, { requestId: 'manual', policy })
  if (status === 'pending') await handle.signal(wakeSignal)
  expect(await handle.result()).toMatchObject({ status: 'delivered' })
  const { raw } = await handle.describe()
  expect(raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion).toMatchObject({ buildId: '2', deploymentName: name })
  await stopNew()
})

test('a build that no worker has cannot be promoted, and neither can workers without a build', async () => {
  const config = configOf('1', randomUUID())
  await expect(makeCurrent(config, 1_000)).rejects.toThrow(/^The build 1 of .* could not be made current: /)
  await expect(makeCurrent({ ...config, TEMPORAL_WORKER_BUILD_ID: undefined })).rejects.toThrow('TEMPORAL_WORKER_BUILD_ID is not set')
})

test('relay promote says which build is current, and which was before', async () => {
  const name = randomUUID()
  const promote = (buildId: string, ...args: string[]) =>
    runProgram(process.execPath, [main, 'promote', ...args], {
      env: {
        PATH: process.env['PATH']!,
        ...temporalVariables(env),
        TEMPORAL_TASK_QUEUE: name,
        TEMPORAL_WORKER_DEPLOYMENT: name,
        TEMPORAL_WORKER_BUILD_ID: buildId,
      },
      timeoutMs: 60_000,
    })
  const stopOld = await startBuild('1', name, { status: 'delivered' })
  expect(await promote('1')).toBe(`The current build of ${name} is 1.\n`)
  const stopNew = await startBuild('2', name, { status: 'delivered' })
  expect(JSON.parse(await promote('2', '--json'))).toEqual({ deployment: name, build_id: '2', previous_build_id: '1' })
  expect(await promote('1')).toBe(`The current build of ${name} is 1. It was 2 before.\n`)
  await stopOld()
  await stopNew()
})
