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
import { until } from '../support/wired.ts'

const config = testConfig({ OUTBOX_SWEEP_AGE_MS: '0', OUTBOX_SWEEP_INTERVAL_MS: '1000' })

let database: TestDatabase
let env: TestWorkflowEnvironment

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())
afterEach(() => env.teardown())

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
const isSwept = async () => (await database.db('outbox').select('key')).length === 0

describe('the schedules of the chores, on the dev server', () => {
  beforeEach(async () => {
    env = await startTemporalDevServer()
  }, 60_000)

  it('are made once, changed where the configuration has changed, and stay paused where an operator has paused them', async () => {
    const { client, connection } = env
    const schedules = createSchedules(client, connection, config)
    expect(await schedules.findMissing(allChores())).toEqual(allChores().map(({ name }) => `relay-${name}`))
    await Promise.all([schedules.ensure(allChores()), schedules.ensure(allChores())])
    expect(await schedules.findMissing(allChores())).toEqual([])

    const sweep = client.schedule.getHandle('relay-sweep-outbox')
    expect(await sweep.describe()).toMatchObject({
      spec: { intervals: [{ every: 1_000 }] },
      policies: { overlap: 'SKIP' },
      state: { paused: false, note: expect.stringContaining('Temporal') },
    })
    await sweep.pause('the target is being moved')
    await createSchedules(client, connection, { ...config, OUTBOX_SWEEP_INTERVAL_MS: 7_000 }).ensure(allChores())
    expect(await sweep.describe()).toMatchObject({
      spec: { intervals: [{ every: 7_000 }] },
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
      const told: unknown[] = []
      await until('both runs are listed', async () => {
        told.length = 0
        for await (const { workflowId } of env.client.workflow.list({
          query: `WorkflowType = 'chore' and ExecutionStatus = 'Completed'`,
        })) {
          if (workflowId.startsWith('relay-sweep-outbox')) told.push(await env.client.workflow.getHandle(workflowId).result())
        }
        return told.filter((each) => each === '1 messages sent').length === 2
      })
      for (const each of told) expect(each).toMatch(/^[01] messages sent$/)
    })
  })
})

describe('a chore, on the time-skipping server', () => {
  beforeEach(async () => {
    env = await createTimeSkippingTemporal()
  }, 60_000)

  it('has no schedule there, and the worker is told so', async () => {
    await expect(createSchedules(env.client, env.connection, config).ensure(allChores())).rejects.toThrow('schedule')
  })

  it('is one activity; a chore that no worker knows is a failed run', async () => {
    await receive()
    await withWorker(env, choreActivities(), async (taskQueue) => {
      const run = (name: string) => env.client.workflow.execute('chore', { workflowId: `relay-${name}`, args: [name], taskQueue })
      expect(await run('sweep-outbox')).toBe('1 messages sent')
      await expect(run('polish')).rejects.toMatchObject({
        cause: { cause: { message: 'this worker knows no chore polish: delete its schedule, or update the worker' } },
      })
    })
  })
})
