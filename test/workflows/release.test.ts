import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createBatchActivities } from '../../activities/batches.ts'
import type { Database } from '../../src/db/database.ts'
import { createHeld, releaseOf } from '../../src/db/held.ts'
import { createOutbox, keyOf, type OutboxMessage } from '../../src/db/outbox.ts'
import { createLog } from '../../src/log.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { batchOptions } from '../../workflows/messages.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, testConfig } from '../support/factories.ts'
import { startTemporalDevServer, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'

// The release itself, with the real database and the dev server. What it starts waits on a task queue that nobody works on.

const MiB = 1024 * 1024
const config = testConfig({ DELIVERY_BATCH_SIZE: '50', TEMPORAL_TASK_QUEUE: 'nobody' })

let database: TestDatabase
let env: TestWorkflowEnvironment

beforeAll(async () => {
  database = await createTestDatabase()
  env = await startTemporalDevServer()
})
afterAll(async () => {
  await env.teardown()
  await database.drop()
})

/** An active connection that holds this many documents. */
const holding = async (db: Database, count: number) => {
  const wiring = await createWiring(db, [{ name: 'archive' }])
  const row = {
    workspaceId: wiring.workspaceId,
    repositoryId: wiring.repositoryId,
    connectionId: wiring.connections['archive']!,
    destinationId: wiring.destinations['archive']!,
    prefix: wiring.workspaceId.slice(0, 18),
    count,
  }
  await db.raw(
    `
    with document as (
      insert into documents (
        id, workspace_id, repository_id, repo_id, doc_id, comp_id, content_type, size_bytes, status, received_at, modified_at)
      select
        :prefix || lpad(number::text, 8, '0'), :workspaceId, :repositoryId, 'Z1', 'DOC' || number, 'data', 'text/plain', 5, 'pending', now(),
        now()
      from generate_series(1, :count::integer) as number
      returning id
    )
    insert into deliveries (document_id, destination_id, workspace_id, connection_id, status, path)
    select id, :destinationId, :workspaceId, :connectionId, 'held', 'Z1/' || id
    from document
    `,
    row,
  )
  return row
}

describe('the release of 10,000 held documents', () => {
  it('starts each delivery once, in bounded memory and with bounded history', async () => {
    const { db } = database
    const { connectionId } = await holding(db, 10_000)
    const started = new Set<string>()
    let sent = 0
    // in the place of Temporal's client, as ten thousand real starts would take minutes: it only counts
    const temporal = {
      send: async (message: OutboxMessage) => {
        sent += 1
        started.add(keyOf(message))
      },
    }
    const launcher = createLauncher(temporal, createOutbox(db), config, createLog('silent'))
    const { workOffBatch } = createBatchActivities({ db, held: createHeld(db, config), sendAll: launcher.sendAll, config })
    // after each batch; with the first one, the worker itself has come into memory
    const memoryBytes: number[] = []
    const measured: typeof workOffBatch = async (subject) => {
      const outcome = await workOffBatch(subject)
      memoryBytes.push(process.memoryUsage().rss)
      return outcome
    }

    const events = await withWorker(env, { workOffBatch: measured }, async (taskQueue) => {
      const { subject } = releaseOf({ id: connectionId, name: 'archive' })
      const handle = await env.client.workflow.signalWithStart('release', { ...batchOptions(subject), taskQueue })
      expect(await handle.result()).toBe('released 10000')
      const query = `WorkflowId = '${handle.workflowId}'`
      // listed a moment after they are started
      await until('all runs are listed', async () => (await env.client.workflow.count(query)).count >= 3)
      const found: number[] = []
      for await (const { runId } of env.client.workflow.list({ query })) {
        found.push((await env.client.workflow.getHandle(handle.workflowId, runId).fetchHistory()).events!.length)
      }
      return found
    })

    expect(sent).toBe(10_000)
    expect(started.size).toBe(10_000)
    expect(await db('deliveries').where({ connection_id: connectionId }).groupBy('status').select('status').count({ total: '*' })).toEqual([
      { status: 'pending', total: 10_000 },
    ])
    expect(await createOutbox(db).count()).toBe(0)
    // 200 full batches and an empty one: two runs that go on in the next, and the one that ends
    expect(events).toHaveLength(3)
    expect(Math.max(...events)).toBeLessThan(1_000)
    expect(Math.max(...memoryBytes) - memoryBytes[0]!).toBeLessThan(100 * MiB)
  }, 180_000)

  it('loses nothing where the worker dies between a batch and the start of its deliveries: the sweep starts them', async () => {
    const { db } = database
    const { connectionId, destinationId } = await holding(db, 10)
    await createHeld(db, config).releaseBatch(connectionId, 50)
    const temporal = createTemporal(env.client, env.connection, config)
    const launcher = createLauncher(temporal, createOutbox(db), { ...config, OUTBOX_SWEEP_AGE_MS: 0 }, createLog('silent'))
    expect(await launcher.sweep()).toBe(10)
    const query = `WorkflowType = 'delivery' and RelayDestination = '${destinationId}'`
    // listed a moment after they are started
    await until('all are listed', async () => (await env.client.workflow.count(query)).count === 10)
    expect(await createOutbox(db).count()).toBe(0)
  })
})
