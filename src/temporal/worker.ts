import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { NativeConnection, Worker, type WorkerOptions } from '#temporal-worker'
import { controlQueueOf, migrationQueueOf, sideQueueOf } from '../../workflows/ids.ts'
import { messageOf, UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { dataConverter } from './data-converter.ts'
import { describeTemporalError, isTemporalError } from './errors.ts'

type WorkerConfig = Pick<
  Config,
  | 'temporal'
  | 'TEMPORAL_TASK_QUEUE'
  | 'TEMPORAL_MAX_CONCURRENT_ATTEMPTS'
  | 'TEMPORAL_MAX_CACHED_WORKFLOWS'
  | 'TEMPORAL_WORKER_BUILD_ID'
  | 'TEMPORAL_WORKER_DEPLOYMENT'
  | 'RELAY_SHUTDOWN_GRACE_MS'
>

// Written by `npm run build`. A checkout bundles its workflows when the first worker starts.
const builtBundle = fileURLToPath(new URL('../../workflow-bundle.js', import.meta.url))

type WorkflowSource = Pick<WorkerOptions, 'workflowBundle' | 'workflowsPath'>

const defaultWorkflows = async (): Promise<WorkflowSource> => {
  if (existsSync(builtBundle)) return { workflowBundle: { codePath: builtBundle } }
  const { bundleCheckout } = await import('./checkout-bundle.ts')
  return { workflowBundle: { code: await bundleCheckout() } }
}

const heartbeatThrottleMs = 1_000

// How long a workflow task waits for the worker that has the workflow in its memory. After that, any worker takes it and replays the
// history. While a worker is lost, each of its workflows waits for this long, once: with 3 s instead of the SDK's default of 10 s,
// test/delivery/poison.release.test.ts takes 71 s instead of 103 s. A busy worker must not lose its workflows within it, because a replay
// costs it more than the delay.
const stickyTaskTimeoutMs = 3_000

/**
 * Returns the options of worker versioning. A delivery may be open for days, so running workflows move to the version that becomes
 * current. The recorded histories in test/replay prove that they can.
 */
const versioning = ({ TEMPORAL_WORKER_BUILD_ID: buildId, TEMPORAL_WORKER_DEPLOYMENT: deploymentName }: WorkerConfig) =>
  buildId
    ? {
        workerDeploymentOptions: {
          useWorkerVersioning: true as const,
          version: { buildId, deploymentName },
          defaultVersioningBehavior: 'AUTO_UPGRADE' as const,
        },
      }
    : {}

// The native client has no limit of its own: behind a path that drops packets it would wait for ever.
const connectTimeoutMs = 5_000

/** Connects to Temporal as workers do. @throws `UserError` if it does not answer */
export const connectWorker = async ({ connectionOptions }: Config['temporal']): Promise<NativeConnection> => {
  const timeout = new AbortController()
  const tooLate = sleep(connectTimeoutMs, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(`no answer within ${connectTimeoutMs} ms`)
  })
  const connecting = NativeConnection.connect(connectionOptions)
  try {
    return await Promise.race([connecting, tooLate])
  } catch (thrown) {
    connecting.then((connection) => connection.close()).catch(() => {})
    throw new UserError(`Cannot connect to Temporal at ${connectionOptions.address ?? 'its default address'}: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  } finally {
    timeout.abort()
    tooLate.catch(() => {})
  }
}

// The SDK waits 30 s for the answer to a report, and to its word that a worker is gone, of a server that is silent or of another program at its address.
const silentMaxMs = 3_000
const askPauseMs = 100

/** Waits until no activity runs and Temporal has not answered for `silentMaxMs`: what is still to be reported then cannot be. */
const untilUnreachable = async (workers: Worker[], connection: NativeConnection, signal: AbortSignal): Promise<undefined> => {
  const answers = () =>
    connection
      .withDeadline(Date.now() + silentMaxMs, () => connection.workflowService.getSystemInfo({}))
      .then(
        () => true,
        () => false,
      )
  for (let since = performance.now(); !signal.aborted && performance.now() - since < silentMaxMs;) {
    const isBusy = workers.some((worker) => worker.getStatus().numInFlightActivities > 0)
    if (isBusy || (await answers())) since = performance.now()
    await sleep(askPauseMs)
  }
}

interface Activities {
  /** Activities that call a target. */
  targets: object
  /** Activities that call no target. They run in a worker of their own, so that targets that hang take none of its places. */
  control: object
  /** Activities that copy from old content servers. They run in a worker of their own, so that they take no place of a delivery. */
  migration: object
  /** Activities of side work. They run in a worker of their own, so that they take no place of a delivery. */
  side: object
}

// Maintenance jobs that run at the same time, with some batches.
const maxConcurrentControl = 16

// Each copies several documents at a time. Further migrations wait for the end of a page.
const maxConcurrentMigrations = 2

// Runs of side work. Each makes a few calls at a time. Further queues wait for the end of a run, which takes 20 seconds unless a system hangs.
const maxConcurrentSideWork = 20

/**
 * Starts the workers of all task queues, whose connection it closes in the end. They run at once: the SDK can close the connection of no worker
 * that has not run.
 */
export const startTemporalWorker = async (
  config: WorkerConfig,
  connection: NativeConnection,
  { targets, control, migration, side }: Activities,
  workflows?: WorkflowSource,
) => {
  const common = {
    connection,
    namespace: config.temporal.namespace ?? 'default',
    dataConverter,
    ...versioning(config),
    activityTaskPollerBehavior: { type: 'autoscaling' },
    // Attempts send few heartbeats by themselves, and the saved state of an upload must not be delayed.
    maxHeartbeatThrottleInterval: heartbeatThrottleMs,
    shutdownGraceTime: config.RELAY_SHUTDOWN_GRACE_MS,
  } as const
  const taskQueue = config.TEMPORAL_TASK_QUEUE
  const running: { worker: Worker; ended: Promise<void> }[] = []
  const start = async (options: WorkerOptions) => {
    const worker = await Worker.create(options)
    const ended = worker.run()
    // It may fail before the caller waits for it.
    ended.catch(() => {})
    running.push({ worker, ended })
  }
  /** Lets running attempts finish within RELAY_SHUTDOWN_GRACE_MS and be reported if Temporal answers, and closes the connection. @throws if the worker has failed */
  const stop = async (): Promise<void> => {
    for (const { worker } of running) if (worker.getState() === 'RUNNING') worker.shutdown()
    const ended = Promise.allSettled(running.map((each) => each.ended))
    const hasEnded = new AbortController()
    const workers = running.map(({ worker }) => worker)
    const outcomes = await Promise.race([ended, untilUnreachable(workers, connection, hasEnded.signal)])
    hasEnded.abort()
    // A worker that still waits for an answer keeps the connection.
    if (outcomes === undefined) return
    await connection.close()
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }
  try {
    await start({
      ...common,
      taskQueue,
      ...(workflows ?? (await defaultWorkflows())),
      activities: targets,
      maxConcurrentActivityTaskExecutions: config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS,
      maxCachedWorkflows: config.TEMPORAL_MAX_CACHED_WORKFLOWS,
      workflowTaskPollerBehavior: { type: 'autoscaling' },
      stickyQueueScheduleToStartTimeout: stickyTaskTimeoutMs,
    })
    const startQueue = (queue: string, activities: object, max: number) =>
      start({ ...common, taskQueue: queue, activities, maxConcurrentActivityTaskExecutions: max })
    await startQueue(controlQueueOf(taskQueue), control, maxConcurrentControl)
    await startQueue(migrationQueueOf(taskQueue), migration, maxConcurrentMigrations)
    await startQueue(sideQueueOf(taskQueue), side, maxConcurrentSideWork)
    const ended = Promise.all(running.map((each) => each.ended)).then(() => {})
    ended.catch(() => {})
    return {
      // The first one that does not run, if any.
      state: (): string => running.map(({ worker }) => worker.getState()).find((state) => state !== 'RUNNING') ?? 'RUNNING',
      /** Settles when the worker ends by itself. */
      ended,
      stop,
    }
  } catch (thrown) {
    await stop().catch(() => {})
    if (isTemporalError(thrown)) throw new UserError(describeTemporalError(thrown, config.temporal), { cause: thrown })
    throw thrown
  }
}

export type TemporalWorker = Awaited<ReturnType<typeof startTemporalWorker>>
