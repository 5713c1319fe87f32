import type { Client } from '@temporalio/client'
import { maintenanceJobs } from '../../src/maintenance/jobs.ts'
import { listPollers } from '../../src/temporal/pollers.ts'
import { createSchedules } from '../../src/temporal/schedules.ts'
import { createTestDatabase } from '../support/database.ts'
import { receiveDocument } from '../support/maintenance.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { config, maintenanceActivities } from './maintenance.ts'

const hour = 3_600_000
const jobs = maintenanceJobs(config).map((job) => (job.name === 'sweep-outbox' ? { ...job, intervalMs: 1_000 } : job))

const database = share(await createTestDatabase())

const list = async (client: Client, query: string) => {
  const ids: string[] = []
  for await (const { workflowId } of client.workflow.list({ query })) ids.push(workflowId)
  return ids
}
const isOutboxEmpty = async () => (await database.db('outbox').select('key')).length === 0

describe('the schedules of the maintenance jobs', () => {
  // Each test creates the same schedules, so each needs a new server.

  test('are created once, follow the configuration, and stay paused if an operator paused them', async () => {
    await using env = await startTemporalServer()
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
    await createSchedules(client, connection, config).ensure(jobs.map((job) => ({ ...job, intervalMs: 7_000 })))
    expect(await sweep.describe()).toMatchObject({
      action: { args: [{ job: 'sweep-outbox', everyMs: 7_000, forMs: hour }] },
      state: { paused: true, note: 'the target is being moved' },
    })
  })

  test('run the jobs on a worker repeatedly, and each run returns a summary', async () => {
    await using env = await startTemporalServer()
    await receiveDocument(database.db, config)
    await withWorker(env, maintenanceActivities(database.db, env), async (taskQueue) => {
      // relay doctor reports the workers by their polls.
      const pollers = (name: string) => listPollers(env.connection, env.namespace ?? 'default', { ...config, TEMPORAL_TASK_QUEUE: name })
      await until('the worker polls', async () => (await pollers(taskQueue)).length === 1)
      expect(await pollers('a queue without workers')).toEqual([])
      await createSchedules(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: taskQueue }).ensure(jobs)
      await until('the message is sent', isOutboxEmpty)
      await receiveDocument(database.db, config)
      await until('the second message is sent', isOutboxEmpty)
      // A frequent job repeats within one run, so that it does not flood the list of workflows.
      const running = (await list(env.client, `WorkflowType = 'maintenance' and ExecutionStatus = 'Running'`)).filter((id) =>
        id.startsWith('relay-sweep-outbox'),
      )
      expect(running).toHaveLength(1)
      await until('a run of an hourly job is listed with its summary', async () => {
        const ended = await list(env.client, `WorkflowType = 'maintenance' and ExecutionStatus = 'Completed'`)
        const partitions = ended.find((id) => id.startsWith('relay-create-partitions'))
        return partitions !== undefined && (await env.client.workflow.getHandle(partitions).result()) === 'all partitions exist'
      })
    })
  })
})
