import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker'
import { messageOf, UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'

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
// test/delivery/poison.system.test.ts takes 71 s instead of 103 s. A busy worker must not lose its workflows within it, because a replay
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

/** Creates a worker of the task queue. After `run()`, `shutdown()` lets running attempts finish within the grace period. */
export const createWorker = async (
  config: WorkerConfig,
  activities: object,
  workflows?: WorkflowSource,
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
      ...(workflows ?? (await defaultWorkflows())),
      ...versioning(config),
      activities,
      maxConcurrentActivityTaskExecutions: config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS,
      maxCachedWorkflows: config.TEMPORAL_MAX_CACHED_WORKFLOWS,
      workflowTaskPollerBehavior: { type: 'autoscaling' },
      activityTaskPollerBehavior: { type: 'autoscaling' },
      // Attempts send few heartbeats by themselves, and the saved state of an upload must not be delayed.
      maxHeartbeatThrottleInterval: heartbeatThrottleMs,
      stickyQueueScheduleToStartTimeout: stickyTaskTimeoutMs,
      shutdownGraceTime: config.RELAY_SHUTDOWN_GRACE_MS,
    })
    return { worker, close: () => connection.close() }
  } catch (thrown) {
    await connection.close()
    throw thrown
  }
}
