import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createChoreActivities } from '../../activities/chores.ts'
import { allChores } from '../../src/chores.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createHeld } from '../../src/db/held.ts'
import { createOutbox } from '../../src/db/outbox.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createLog } from '../../src/log.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { createSchedules } from '../../src/temporal/schedules.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'
import { createTimeSkippingTemporal, startTemporalDevServer, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'

const hour = 3_600_000
const config = testConfig({ OUTBOX_SWEEP_AGE_MS: '0', OUTBOX_SWEEP_INTERVAL_MS: '1000' })

let database: TestDatabase
let env: TestWorkflowEnvironment

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** The real ones. What the sweep starts waits on a task queue that nobody works on. */
const choreActivities = () => {
  const { db } = database
  const temporal = createTemporal(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: 'nobody' })
  const launcher = createLauncher(temporal, createOutbox(db), config, createLog('silent'))
  return createChoreActivities({
    db,
    stores: { postgres: createPostgresStore(db), s3: undefined },
    held: createHeld(db, config),
    launcher,
    config,
  })
}

const receive = async (): Promise<void> => {
  const { db } = database
  await createReceipts(db, config).receive(await receiptOf(await createWiring(db, [{ name: 'archive' }]), { data: 'hello' }))
}
const list = async (query: string) => {
  const ids: string[] = []
  for await (const { workflowId } of env.client.workflow.list({ query })) ids.push(workflowId)
  return ids
}
const isSwept = async () => (await database.db('outbox').select('key')).length === 0

describe('the schedules of the chores, on the dev server', () => {
  // each test makes the same schedules
  beforeEach(async () => {
    env = await startTemporalDevServer()
  })
  afterEach(() => env.teardown())

  it('are made once, changed where the configuration has changed, and stay paused where an operator has paused them', async () => {
    const { client, connection } = env
    const schedules = createSchedules(client, connection, config)
    expect(await schedules.findMissing(allChores())).toEqual(allChores().map(({ name }) => `relay-${name}`))
    await Promise.all([schedules.ensure(allChores()), schedules.ensure(allChores())])
    expect(await schedules.findMissing(allChores())).toEqual([])

    const sweep = client.schedule.getHandle('relay-sweep-outbox')
    expect(await sweep.describe()).toMatchObject({
      spec: { intervals: [{ every: hour }] },
      action: { args: [{ name: 'sweep-outbox', everyMs: 1_000, forMs: hour }] },
      policies: { overlap: 'BUFFER_ONE' },
      state: { paused: false, note: expect.stringContaining('Temporal') },
    })
    await sweep.pause('the target is being moved')
    await createSchedules(client, connection, { ...config, OUTBOX_SWEEP_INTERVAL_MS: 7_000 }).ensure(allChores())
    expect(await sweep.describe()).toMatchObject({
      action: { args: [{ name: 'sweep-outbox', everyMs: 7_000, forMs: hour }] },
      state: { paused: true, note: 'the target is being moved' },
    })
  })

  it('run the chores on a worker, again and again, and show what each run did', async () => {
    await receive()
    await withWorker(env, choreActivities(), async (taskQueue) => {
      await createSchedules(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: taskQueue }).ensure(allChores())
      await until('the message is sent', isSwept)
      await receive()
      await until('the next one, too', isSwept)
      // what is done often is one run, so that operators see other workflows as well
      const running = (await list(`WorkflowType = 'chore' and ExecutionStatus = 'Running'`)).filter((id) =>
        id.startsWith('relay-sweep-outbox'),
      )
      expect(running).toHaveLength(1)
      await until('an hourly one is listed with what it did', async () => {
        const ended = await list(`WorkflowType = 'chore' and ExecutionStatus = 'Completed'`)
        const partitions = ended.find((id) => id.startsWith('relay-make-partitions'))
        return partitions !== undefined && (await env.client.workflow.getHandle(partitions).result()) === 'partitions are there'
      })
    })
  })
})

describe('a chore, on the time-skipping server', () => {
  beforeAll(async () => {
    env = await createTimeSkippingTemporal()
  })
  afterAll(() => env.teardown())

  it('has no schedule there, and the worker is told so', async () => {
    await expect(createSchedules(env.client, env.connection, config).ensure(allChores())).rejects.toThrow('schedule')
  })

  it('that is to be done often is done again and again within one run', async () => {
    const done: number[] = []
    const runChore = async ({ atMs }: { atMs: number }) => `${done.push(atMs)} times`
    const input = { name: 'sweep-outbox', everyMs: 15_000, forMs: hour }
    await withWorker(env, { runChore }, async (taskQueue) => {
      expect(await env.client.workflow.execute('chore', { workflowId: 'relay-often', args: [input], taskQueue })).toBe('240 times')
    })
    expect(done.at(-1)! - done[0]!).toBeLessThan(hour)
    const { events } = await env.client.workflow.getHandle('relay-often').fetchHistory()
    // Temporal suggests to begin anew at 4,096
    expect(events!.length).toBeLessThan(4_000)
  })

  it('is one activity; a chore that no worker knows is a failed run', async () => {
    await receive()
    await withWorker(env, choreActivities(), async (taskQueue) => {
      const run = (name: string) =>
        env.client.workflow.execute('chore', { workflowId: `relay-${name}`, args: [{ name, everyMs: hour, forMs: hour }], taskQueue })
      expect(await run('sweep-outbox')).toBe('1 messages sent')
      await expect(run('polish')).rejects.toMatchObject({
        cause: { cause: { message: 'this worker knows no chore polish: delete its schedule, or update the worker' } },
      })
    })
  })
})
