import { randomUUID } from 'node:crypto'
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { DefaultLogger, makeTelemetryFilterString, Runtime, Worker, type WorkerOptions } from '@temporalio/worker'
import { dataConverter } from '../../src/temporal/data-converter.ts'
import { attributeTypes } from '../../src/temporal/search-attributes.ts'
import { controlQueueOf, sideQueueOf } from '../../workflows/ids.ts'
import { disposable } from './disposable.ts'

/** Keeps the log of the SDK out of the output of the tests. */
export const silenceSdkLog = () => {
  // A process has one runtime, but jest loads this module again for each test file, so a second install is refused.
  try {
    Runtime.install({
      logger: new DefaultLogger('ERROR'),
      shutdownSignals: [],
      telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR' }) } },
    })
  } catch (thrown) {
    if (!(thrown instanceof Error) || thrown.name !== 'IllegalStateError') throw thrown
  }
}

/** A server that ends when it is disposed of. */
export type TemporalEnvironment = TestWorkflowEnvironment & AsyncDisposable

/** Starts a server. The SDK gives it five seconds, which is not always enough on a busy machine. */
export const startWithRetries = async <T>(start: () => Promise<T>, tries = 6): Promise<T> => {
  try {
    return await start()
  } catch (thrown) {
    if (tries === 1) throw thrown
    return startWithRetries(start, tries - 1)
  }
}

/**
 * Starts the server that skips time: hours of back-off pass in milliseconds while a test awaits a result. It supports neither listing
 * workflows nor schedules.
 */
export const createTimeSkippingTemporal = async (): Promise<TemporalEnvironment> => {
  silenceSdkLog()
  const env = await startWithRetries(() =>
    TestWorkflowEnvironment.createTimeSkipping({
      server: { executable: { type: 'existing-path', path: process.env.TEST_TIME_SKIPPING_BIN! }, extraArgs: [] },
    }),
  )
  // This server silently never starts a child workflow that has an unregistered search attribute.
  await env.connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes: attributeTypes })
  return disposable(env, () => env.teardown())
}

/**
 * Corrects what the server that skips time tells an activity that it repeats: when it has planned the run. A real server tells when the run is
 * due, which is later by the delay.
 */
const withDueTime = (env: TestWorkflowEnvironment): WorkerOptions['interceptors'] => ({
  activity: [
    ({ info }) => ({
      inbound: {
        execute: async (input, next) => {
          if (info.attempt > 1) Object.assign(info, { currentAttemptScheduledTimestampMs: await env.currentTimeMs() })
          return next(input)
        },
      },
    }),
  ],
})

/** Runs a worker with these activities until `work` ends. Its task queue is random unless the options name one. */
export const withWorker = async <T>(
  env: TestWorkflowEnvironment,
  activities: object,
  work: (taskQueue: string) => Promise<T>,
  options: Partial<WorkerOptions> = {},
): Promise<T> => {
  const { taskQueue = randomUUID() } = options
  const common = {
    connection: env.nativeConnection,
    namespace: env.namespace ?? 'default',
    activities,
    // As in the product's worker.
    dataConverter,
    // As in the product's worker. With the default, an attempt learns of a cancellation late.
    maxHeartbeatThrottleInterval: 1_000,
    ...(env.supportsTimeSkipping && { interceptors: withDueTime(env) }),
  }
  const worker = await Worker.create({
    ...common,
    workflowBundle: { codePath: process.env.TEST_WORKFLOW_BUNDLE! },
    ...options,
    taskQueue,
  })
  const control = await Worker.create({ ...common, taskQueue: controlQueueOf(taskQueue) })
  const side = await Worker.create({ ...common, taskQueue: sideQueueOf(taskQueue) })
  return side.runUntil(() => control.runUntil(() => worker.runUntil(work(taskQueue))))
}

/** Starts a worker with these activities, on a task queue of its own. `ended` is rejected if the worker fails. */
export const startWorker = async (env: TestWorkflowEnvironment, activities: object) => {
  const stopped = Promise.withResolvers<void>()
  const started = Promise.withResolvers<string>()
  const ended = withWorker(env, activities, (taskQueue) => {
    started.resolve(taskQueue)
    return stopped.promise
  })
  return {
    taskQueue: await Promise.race([started.promise, ended.then(() => '')]),
    ended,
    stop: () => {
      stopped.resolve()
      return ended
    },
  }
}
