import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { DefaultLogger, makeTelemetryFilterString, NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker'
import type { Config } from '../config.ts'
import { messageOf, UserError } from '../errors.ts'
import type { Log } from '../log.ts'

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

// Written by `npm run build`. A checkout bundles at the start instead, which takes a few seconds.
const builtBundle = fileURLToPath(new URL('../../workflow-bundle.js', import.meta.url))
const workflowsPath = fileURLToPath(new URL('../../workflows/index', import.meta.url))

type WorkflowSource = Pick<WorkerOptions, 'workflowBundle' | 'workflowsPath'>

const defaultWorkflows = (): WorkflowSource =>
  existsSync(builtBundle) ? { workflowBundle: { codePath: builtBundle } } : { workflowsPath: `${workflowsPath}.ts` }

/** Installs the SDK's runtime with the relay's log, and without signal handlers. Call it once per process, before the first worker. */
export const installRuntime = (log: Log): void => {
  Runtime.install({
    shutdownSignals: [],
    telemetryOptions: { logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN' }) } },
    logger: new DefaultLogger('INFO', ({ level, message, meta }) => {
      const { error, ...rest } = meta ?? {}
      const line = error instanceof Error ? { ...rest, reason: error.message } : rest
      if (level === 'ERROR') log.error(line, message)
      else if (level === 'WARN') log.warn(line, message)
      // At info level, the SDK logs every start and stop of a worker.
      else log.debug(line, message)
    }),
  })
}

const heartbeatThrottleMs = 1_000

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

/** Creates a worker of the task queue. After `run()`, `shutdown()` lets running attempts finish within the grace period. */
export const createWorker = async (
  config: WorkerConfig,
  activities: object,
  workflows = defaultWorkflows(),
): Promise<{ worker: Worker; close(): Promise<void> }> => {
  const { connectionOptions, namespace } = config.temporal
  const connection = await NativeConnection.connect(connectionOptions).catch((thrown: unknown) => {
    throw new UserError(`Cannot connect to Temporal at ${connectionOptions.address ?? 'its default address'}: ${messageOf(thrown)}`, {
      cause: thrown,
    })
  })
  try {
    const worker = await Worker.create({
      connection,
      namespace: namespace ?? 'default',
      taskQueue: config.TEMPORAL_TASK_QUEUE,
      ...workflows,
      ...versioning(config),
      activities,
      maxConcurrentActivityTaskExecutions: config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS,
      maxCachedWorkflows: config.TEMPORAL_MAX_CACHED_WORKFLOWS,
      workflowTaskPollerBehavior: { type: 'autoscaling' },
      activityTaskPollerBehavior: { type: 'autoscaling' },
      // Attempts send few heartbeats by themselves, and the saved state of an upload must not be delayed.
      maxHeartbeatThrottleInterval: heartbeatThrottleMs,
      shutdownGraceTime: config.RELAY_SHUTDOWN_GRACE_MS,
    })
    return { worker, close: () => connection.close() }
  } catch (thrown) {
    await connection.close()
    throw thrown
  }
}
