import { maintenanceJobs } from '../../src/maintenance/jobs.ts'
import { createSchedules } from '../../src/temporal/schedules.ts'
import { createTestDatabase } from '../support/database.ts'
import { receiveDocument } from '../support/maintenance.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { config, maintenanceActivities } from './maintenance.ts'

// On the server that skips time. On the others, schedules start the jobs: schedules.system.test.ts.

const hour = 3_600_000

const [database, env] = await Promise.all([createTestDatabase().then(share), createTimeSkippingTemporal().then(share)])

test('a maintenance job has no schedule on the server that skips time: creating one is an error', async () => {
  await expect(createSchedules(env.client, env.connection, config).ensure(maintenanceJobs(config))).rejects.toThrow('schedule')
})

test('a maintenance job that runs often repeats within one run', async () => {
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

test('a maintenance job runs as one activity, and a run with an unknown job fails', async () => {
  await receiveDocument(database.db, config)
  await withWorker(env, maintenanceActivities(database.db, env), async (taskQueue) => {
    const run = (name: string) =>
      env.client.workflow.execute('maintenance', {
        workflowId: `relay-${name}`,
        args: [{ job: name, everyMs: hour, forMs: hour }],
        taskQueue,
      })
    expect(await run('sweep-outbox')).toBe('1 messages sent, 0 lines called')
    await expect(run('polish')).rejects.toMatchObject({
      cause: { cause: { message: 'this worker has no job polish: delete its schedule, or upgrade the worker' } },
    })
  })
})
