import { decodeTime } from 'ulid'
import { listPartitions } from '../../src/db/partitions.ts'
import { createTestDatabase } from '../support/database.ts'
import { captureAt, createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { maintenanceActivities } from './maintenance.ts'

const dayMs = 86_400_000

const [database, env] = await Promise.all([createTestDatabase().then(share), createTimeSkippingTemporal().then(share)])

test('over months, the maintenance jobs remove expired rows and create partitions ahead of time', async () => {
  const { db } = database
  const { workspaceId } = await createRoutes(db, [{ name: 'archive' }])
  const activities = maintenanceActivities(db, env)
  const summaries: string[] = []

  await withWorker(env, activities, async (taskQueue) => {
    // Without this timeout, an idle server would skip time to the end of the default run timeout of ten years.
    const run = (job: string) =>
      env.client.workflow.execute('maintenance', {
        workflowId: `relay-${job}`,
        args: [{ job, everyMs: dayMs, forMs: dayMs }],
        taskQueue,
        workflowRunTimeout: '1m',
      })
    for (let week = 0; week < 9; week += 1) {
      await run('create-partitions')
      await captureAt(db, workspaceId, new Date(await env.currentTimeMs()))
      summaries.push(await run('apply-retention'))
      await env.sleep(7 * dayMs)
    }
  })

  const now = await env.currentTimeMs()
  const ages = async (table: string, id: string) =>
    (await db(table).where({ workspace_id: workspaceId }).orderBy(id).pluck(id)).map((found: string) =>
      Math.round((now - decodeTime(found)) / dayMs),
    )
  expect(await ages('captured_requests', 'id')).toEqual([35, 28, 21, 14, 7])
  expect(await ages('captured_bodies', 'request_id')).toEqual([7])
  expect((await listPartitions(db, 'captured_bodies')).length).toBeLessThan(30)
  expect(summaries[0]).toMatch(
    /^0 rows of captured_bodies, 0 rows of captured_requests, .* 0 partitions, contents of 0 documents, 0 documents, 0 contents of captured bodies, 0 idempotency keys, 0 incidents, 0 events removed$/,
  )
  expect(summaries.at(-1)).toMatch(/\d+ partitions \(captured_bodies_\d{8}, /)
})
