import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createMaintenanceActivities } from '../../activities/maintenance.ts'
import { maintenanceJobs } from '../../src/maintenance.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createReconcile } from '../../src/delivery/reconcile.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { createCheckIncidents } from '../../src/notices/check-incidents.ts'
import { createOutbox } from '../../src/db/outbox.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createLog } from '../../src/log.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { listPollers } from '../../src/temporal/pollers.ts'
import { createSchedules } from '../../src/temporal/schedules.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { createTimeSkippingTemporal, startTemporalDevServer, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'

const hour = 3_600_000
const config = testConfig({ OUTBOX_SWEEP_AGE_MS: '0', OUTBOX_SWEEP_INTERVAL_MS: '1000', TEMPORAL_START_TIMEOUT_MS: '60000' })
const jobs = maintenanceJobs(config)

let database: TestDatabase
let env: TestWorkflowEnvironment

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Creates the real activities. The sweep starts workflows on a task queue without a worker. */
const maintenanceActivities = () => {
  const { db } = database
  const temporal = createTemporal(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: 'nobody' })
  const launcher = createLauncher(temporal, createOutbox(db), config, createLog('silent'))
  return createMaintenanceActivities({
    db,
    stores: { postgres: createPostgresStore(db), s3: undefined },
    release: createRelease(db, config),
    launcher,
    checkIncidents: createCheckIncidents(db, config),
    reconcile: createReconcile(db, temporal, createBulkRetries(db, config), launcher.sendAll, config),
    config,
  })
}

const receive = async (): Promise<void> => {
  const { db } = database
  await createReceive(db, config)(await receivedDocument(await createRoutes(db, [{ name: 'archive' }]), { data: 'hello' }))
}
const list = async (query: string) => {
  const ids: string[] = []
  for await (const { workflowId } of env.client.workflow.list({ query })) ids.push(workflowId)
  return ids
}
const isOutboxEmpty = async () => (await database.db('outbox').select('key')).length === 0

describe('the schedules of the maintenance jobs, on the dev server', () => {
  // Each test creates the same schedules, so each needs a new server.
  beforeEach(async () => {
    env = await startTemporalDevServer()
  })
  afterEach(() => env.teardown())

  test('are created once, follow the configuration, and stay paused if an operator paused them', async () => {
    const { client, connection } = env
    const schedules = createSchedules(client, connection, config)
    expect(await schedules.findMissing(jobs)).toEqual(jobs.map(({ name }) => `relay-${name}`))
    await Promise.all([schedules.ensure(jobs), schedules.ensure(jobs)])
    expect(await schedules.findMissing(jobs)).toEqual([])

    const sweep = client.schedule.getHandle('relay-sweep-outbox')
    expect(await sweep.describe()).toMatchObject({
      spec: { intervals: [{ every: hour }] },
      action: { args: [{ job: 'sweep-outbox', everyMs: 1_000, forMs: hour }] },
      policies: { overlap: 'BUFFER_ONE' },
      state: { paused: false, note: expect.stringContaining('Temporal') },
    })
    await sweep.pause('the target is being moved')
    await createSchedules(client, connection, config).ensure(maintenanceJobs({ ...config, OUTBOX_SWEEP_INTERVAL_MS: 7_000 }))
    expect(await sweep.describe()).toMatchObject({
      action: { args: [{ job: 'sweep-outbox', everyMs: 7_000, forMs: hour }] },
      state: { paused: true, note: 'the target is being moved' },
    })
  })

  test('run the jobs on a worker repeatedly, and each run returns a summary', async () => {
    await receive()
    await withWorker(env, maintenanceActivities(), async (taskQueue) => {
      // relay doctor reports the workers by their polls.
      const pollers = (name: string) => listPollers(env.connection, 'default', { ...config, TEMPORAL_TASK_QUEUE: name })
      await until('the worker polls', async () => (await pollers(taskQueue)).length === 1)
      expect(await pollers('a queue without workers')).toEqual([])
      await createSchedules(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: taskQueue }).ensure(jobs)
      await until('the message is sent', isOutboxEmpty)
      await receive()
      await until('the second message is sent', isOutboxEmpty)
      // A frequent job repeats within one run, so that it does not flood the list of workflows.
      const running = (await list(`WorkflowType = 'maintenance' and ExecutionStatus = 'Running'`)).filter((id) =>
        id.startsWith('relay-sweep-outbox'),
      )
      expect(running).toHaveLength(1)
      await until('a run of an hourly job is listed with its summary', async () => {
        const ended = await list(`WorkflowType = 'maintenance' and ExecutionStatus = 'Completed'`)
        const partitions = ended.find((id) => id.startsWith('relay-create-partitions'))
        return partitions !== undefined && (await env.client.workflow.getHandle(partitions).result()) === 'all partitions exist'
      })
    })
  })
})

describe('a maintenance job, on the time-skipping server', () => {
  beforeAll(async () => {
    env = await createTimeSkippingTemporal()
  })
  afterAll(() => env.teardown())

  test('has no schedule: creating one is an error', async () => {
    await expect(createSchedules(env.client, env.connection, config).ensure(jobs)).rejects.toThrow('schedule')
  })

  test('that runs often repeats within one run', async () => {
    const times: number[] = []
    const runMaintenance = async ({ atMs }: { atMs: number }) => `${times.push(atMs)} times`
    const input = { job: 'sweep-outbox', everyMs: 15_000, forMs: hour }
    await withWorker(env, { runMaintenance }, async (taskQueue) => {
      expect(await env.client.workflow.execute('maintenance', { workflowId: 'relay-often', args: [input], taskQueue })).toMatch(/ times$/)
    })
    expect(times.at(-1)! - times[0]!).toBeLessThan(hour)
    // 240 less the time that the activities take.
    expect(times.length).toBeGreaterThan(200)
    expect(times.length).toBeLessThanOrEqual(240)
    const { events } = await env.client.workflow.getHandle('relay-often').fetchHistory()
    // Temporal suggests a new run at 4,096 events.
    expect(events!.length).toBeLessThan(4_000)
  })

  test('runs as one activity, and a run with an unknown job fails', async () => {
    await receive()
    await withWorker(env, maintenanceActivities(), async (taskQueue) => {
      const run = (name: string) =>
        env.client.workflow.execute('maintenance', {
          workflowId: `relay-${name}`,
          args: [{ job: name, everyMs: hour, forMs: hour }],
          taskQueue,
        })
      expect(await run('sweep-outbox')).toBe('1 messages sent')
      await expect(run('polish')).rejects.toMatchObject({
        cause: { cause: { message: 'this worker has no job polish: delete its schedule, or upgrade the worker' } },
      })
    })
  })
})
