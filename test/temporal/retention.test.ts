import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { decodeTime } from 'ulid'
import { createChoreActivities } from '../../activities/chores.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createHeld } from '../../src/db/held.ts'
import { createOutbox } from '../../src/db/outbox.ts'
import { listPartitions } from '../../src/db/partitions.ts'
import { createLog } from '../../src/log.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { captureAt, createWiring, testConfig } from '../support/factories.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'

let database: TestDatabase
let env: TestWorkflowEnvironment
const config = testConfig()
const dayMs = 86_400_000

beforeAll(async () => {
  ;[database, env] = await Promise.all([createTestDatabase(), createTimeSkippingTemporal()])
})
afterAll(async () => {
  await env.teardown()
  await database.drop()
})

test('the chores keep a relay going for months: what is too old goes, and there is always a partition for what comes', async () => {
  const { db } = database
  const { workspaceId } = await createWiring(db, [{ name: 'archive' }])
  const activities = createChoreActivities({
    db,
    stores: { postgres: createPostgresStore(db), s3: undefined },
    held: createHeld(db, config),
    launcher: createLauncher({ send: () => Promise.resolve() }, createOutbox(db), config, createLog('silent')),
    config,
  })
  const told: string[] = []

  await withWorker(env, activities, async (taskQueue) => {
    // with nothing else to wait for, the server's clock would run ahead to the end of the run's ten years
    const run = (name: string) =>
      env.client.workflow.execute('chore', {
        workflowId: `relay-${name}`,
        args: [{ name, everyMs: dayMs, forMs: dayMs }],
        taskQueue,
        workflowRunTimeout: '1m',
      })
    for (let week = 0; week < 9; week += 1) {
      await run('make-partitions')
      await captureAt(db, workspaceId, new Date(await env.currentTimeMs()))
      told.push(await run('end-retention'))
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
  expect(told[0]).toMatch(/^0 of captured_bodies, 0 of captured_requests, .* 0 partitions, the content of 0 documents removed$/)
  expect(told.at(-1)).toMatch(/\d+ partitions \(captured_bodies_\d{8}, /)
})
