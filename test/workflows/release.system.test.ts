import { createBatchActivities } from '../../activities/batches.ts'
import { createLog } from '../../src/base/log.ts'
import type { Database } from '../../src/db/database.ts'
import { createAttemptNow } from '../../src/delivery/attempt-now.ts'
import { createRelease, releaseMessage } from '../../src/delivery/release.ts'
import { measureWaiting } from '../../src/delivery/to-begin.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createDispatcher } from '../../src/temporal/dispatcher.ts'
import { checkAgainSignal, type AttemptInput } from '../../workflows/messages.ts'
import { batchOptions } from '../../workflows/options.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, insertNumberedDocuments, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'

// The release runs on the real database and the dev server. It starts deliveries on a task queue without a worker.

const MiB = 1024 * 1024
const config = testConfig({ TEMPORAL_TASK_QUEUE: 'nobody' })

const database = share(await createTestDatabase())
const env = share(await startTemporalServer())

/** Creates an active connection with this many held deliveries. */
const createHeldDeliveries = async (db: Database, count: number) => {
  const routes = await createRoutes(db, [{ name: 'archive' }])
  await insertNumberedDocuments(db, routes, count, { status: 'held' })
  return { connectionId: routes.connections['archive']!, destinationId: routes.destinations['archive']! }
}

describe('the release of 10,000 held documents', () => {
  test('releases each delivery once, with bounded memory and bounded history', async () => {
    const { db } = database
    const { connectionId } = await createHeldDeliveries(db, 10_000)
    // The dispatcher would begin them. 10,000 real starts would take minutes.
    const { processBatch } = createBatchActivities({
      db,
      release: createRelease(db),
      attemptNow: createAttemptNow(db, testConfig()),
      sendAll: async () => {},
      batchSize: 50,
    })
    // Measured after each batch. The first value includes the memory of the worker itself.
    const memoryBytes: number[] = []
    const measured: typeof processBatch = async (subject) => {
      const outcome = await processBatch(subject)
      memoryBytes.push(process.memoryUsage().rss)
      return outcome
    }

    const events = await withWorker(env, { processBatch: measured }, async (taskQueue) => {
      const { subject } = releaseMessage({ workspace: 'acme/invoices', id: connectionId, name: 'archive' })
      const handle = await env.client.workflow.signalWithStart('releaseDeliveries', {
        ...batchOptions(subject),
        taskQueue,
        signal: checkAgainSignal,
        signalArgs: [],
      })
      expect(await handle.result()).toBe('released 10000 deliveries')
      const query = `WorkflowId = '${handle.workflowId}'`
      // The list of workflows lags behind their starts.
      await until('all runs are listed', async () => (await env.client.workflow.count(query)).count >= 3)
      const eventCounts: number[] = []
      for await (const { runId } of env.client.workflow.list({ query })) {
        eventCounts.push((await env.client.workflow.getHandle(handle.workflowId, runId).fetchHistory()).events!.length)
      }
      return eventCounts
    })

    expect(await measureWaiting(db)).toMatchObject({ count: 10_000 })
    expect(await db('deliveries').where({ connection_id: connectionId }).groupBy('status').select('status').count({ total: '*' })).toEqual([
      { status: 'pending', total: 10_000 },
    ])
    // 200 full batches and an empty one: two runs that continue as new, and a last one.
    expect(events).toHaveLength(3)
    expect(Math.max(...events)).toBeLessThan(1_000)
    expect(Math.max(...memoryBytes) - memoryBytes[0]!).toBeLessThan(100 * MiB)
  }, 180_000)

  test('is completed by the dispatcher if the worker dies after a batch', async () => {
    const { db } = database
    await db('deliveries').update({ begin_at: null })
    const { connectionId, destinationId } = await createHeldDeliveries(db, 10)
    await createRelease(db).releaseBatch(connectionId, 50)
    const attemptDelivery = async ({ documentId }: AttemptInput) => {
      await db('deliveries').where({ document_id: documentId, destination_id: destinationId }).update({ status: 'delivered' })
      return { status: 'delivered' } as const
    }
    await withWorker(env, { attemptDelivery }, async (taskQueue) => {
      const temporal = createTemporal(env.client, env.connection, { ...config, TEMPORAL_TASK_QUEUE: taskQueue })
      const dispatcher = createDispatcher({ db, temporal, config, log: createLog('silent') })
      dispatcher.start()
      await until(
        'all are delivered',
        async () => (await db('deliveries').where({ connection_id: connectionId, status: 'pending' })).length === 0,
      )
      await dispatcher.close()
    })
    expect(await db('deliveries').where({ connection_id: connectionId, status: 'delivered' })).toHaveLength(10)
  })
})
