import { randomUUID } from 'node:crypto'
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { DefaultLogger, makeTelemetryFilterString, Runtime, Worker, type WorkerOptions } from '@temporalio/worker'
import { searchAttributes } from '../../workflows/messages.ts'
import { attributeTypes } from '../../src/temporal/search-attributes.ts'

/** Keeps the SDK's log out of the test's output. */
export const quietly = () => {
  // one a process, and jest gives every test file a process or a fresh module registry: the second install is refused
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

// the SDK gives a server five seconds to start, and a busy machine takes longer now and then
const atLast = async <T>(start: () => Promise<T>, tries = 6): Promise<T> => {
  try {
    return await start()
  } catch (thrown) {
    if (tries === 1) throw thrown
    return atLast(start, tries - 1)
  }
}

/** The server that skips time: hours of back-off pass in milliseconds while a test awaits a result. It lists nothing and has no schedules. */
export const createTimeSkippingTemporal = async (): Promise<TestWorkflowEnvironment> => {
  quietly()
  const env = await atLast(() =>
    TestWorkflowEnvironment.createTimeSkipping({
      server: { executable: { type: 'existing-path', path: process.env.TEST_TIME_SKIPPING_BIN! }, extraArgs: [] },
    }),
  )
  // a child that carries an unregistered attribute would never start here, without a word
  await env.connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes: attributeTypes })
  return env
}

/** Runs a worker with these activities, on a task queue of its own unless one is given, for as long as the story takes. */
export const withWorker = async <T>(
  env: TestWorkflowEnvironment,
  activities: object,
  story: (taskQueue: string) => Promise<T>,
  options: Partial<WorkerOptions> = {},
): Promise<T> => {
  const { taskQueue = randomUUID() } = options
  const worker = await Worker.create({
    connection: env.nativeConnection,
    workflowBundle: { codePath: process.env.TEST_WORKFLOW_BUNDLE! },
    activities,
    ...options,
    taskQueue,
  })
  return worker.runUntil(story(taskQueue))
}

/** The real server, in memory: lists, schedules and search attributes work as in production, and time passes as it does. */
export const startTemporalDevServer = async (
  settings: string[] = [],
  attributes = Object.values(searchAttributes),
): Promise<TestWorkflowEnvironment> => {
  quietly()
  return atLast(() =>
    TestWorkflowEnvironment.createLocal({
      server: {
        executable: { type: 'existing-path', path: process.env.TEST_TEMPORAL_BIN! },
        extraArgs: [
          ...attributes.flatMap((key) => ['--search-attribute', `${key.name}=Keyword`]),
          ...settings.flatMap((setting) => ['--dynamic-config-value', setting]),
        ],
      },
    }),
  )
}
