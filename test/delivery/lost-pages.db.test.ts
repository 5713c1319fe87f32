import { createBatchActivities } from '../../activities/batches.ts'
import { createBulkRetryActivities } from '../../activities/bulk-retry.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { systemActor } from '../../src/db/audit.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'
import { createAttemptNow } from '../../src/delivery/attempt-now.ts'
import { createBulkRetries, type BulkAction } from '../../src/delivery/bulk-retry.ts'
import { createRelease } from '../../src/delivery/release.ts'
import type { BatchOutcome, BatchSubject } from '../../workflows/messages.ts'
import { expectSame, runActivity } from '../support/activity-environment.ts'
import { bulkPageOf } from '../support/bulk-page.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

// The answer of a batch or of a page may be lost, as that of an attempt (lost-answers.db.test.ts). The second run goes on where the first one has
// ended, and takes nothing twice.

const config = testConfig()
const { db } = share(await createTestDatabase())

/** Receives three documents for one destination. */
const arrange = async (inactive: string[] = []) => {
  const routes = await createRoutes(db, [{ name: 'archive' }], { inactive })
  const ids: string[] = []
  for (let index = 0; index < 3; index += 1) {
    const { documents } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
    ids.push(documents[0]!.documentId)
  }
  const rows = () => db('deliveries').whereIn('document_id', ids).orderBy('document_id')
  return {
    ...routes,
    ids,
    destinationId: routes.destinations['archive']!,
    connectionId: routes.connections['archive']!,
    rows,
    change: (values: object) => rows().clearOrder().update(values),
  }
}

type Scene = Awaited<ReturnType<typeof arrange>>

test.each<[BatchSubject['action'], string[], (scene: Scene) => Promise<Pick<BatchSubject, 'by' | 'id'>>]>([
  [
    'release',
    ['archive'],
    async ({ connectionId }) => {
      await db('connections').where({ id: connectionId }).update({ is_active: true })
      return { by: 'connection', id: connectionId }
    },
  ],
  [
    'cancel',
    [],
    async ({ destinationId }) => {
      await db('destinations').where({ id: destinationId }).update({ deleted_at: new Date() })
      return { by: 'destination', id: destinationId }
    },
  ],
  [
    'attempt',
    [],
    async ({ destinationId, change }) => {
      await change({ status: 'retrying', next_attempt_at: new Date(Date.now() + 3_600_000), begin_at: null })
      return { by: 'destination', id: destinationId }
    },
  ],
])('a batch whose answer was lost is not taken again: %s', async (action, inactive, prepare) => {
  const scene = await arrange(inactive)
  const subject = { action, ...(await prepare(scene)), workspace: `acme/${scene.workspaceSlug}`, name: 'archive' } as BatchSubject
  const sent: OutboxMessage[] = []
  const { processBatch } = createBatchActivities({
    db,
    release: createRelease(db),
    attemptNow: createAttemptNow(db, config),
    sendAll: async (messages) => void sent.push(...messages),
    batchSize: 2,
  })
  const untouched = await scene.rows()
  const run = async (attempt: number) => (await runActivity(attempt, () => processBatch(subject))).outcome as BatchOutcome
  const changed = async (before: object[]) => {
    const after: { document_id: string }[] = await scene.rows()
    return after.filter((row, index) => JSON.stringify(row) !== JSON.stringify(before[index])).map((row) => row.document_id)
  }

  expect((await run(1)).count).toBe(2)
  expect(await changed(untouched)).toEqual(scene.ids.slice(0, 2))
  const afterFirst = await scene.rows()
  expect((await run(2)).count).toBe(1)
  expect(await changed(afterFirst)).toEqual(scene.ids.slice(2))
  const all = await scene.rows()
  expect((await run(3)).count).toBe(0)
  expect(await scene.rows()).toEqual(all)
  expect(sent).toHaveLength(action === 'release' ? 0 : 3)
})

const startBulk = async (scene: Scene, action: BulkAction, filter: object = {}) => {
  const workspace = { id: scene.workspaceId, userSlug: 'acme', workspaceSlug: scene.workspaceSlug }
  const { bulkRetry, message } = await createBulkRetries(db).start(workspace, action, filter, systemActor)
  const bulkPage = bulkPageOf(db)
  const { retryNextPage } = createBulkRetryActivities({ bulkPage, bulkRetries: createBulkRetries(db) })
  return {
    /** Takes the first document of the page. The worker is lost after it. */
    breakOff: () =>
      bulkPage(bulkRetry.id, 200, () => {
        throw new Error('the worker was lost')
      }),
    run: (attempt: number) => runActivity(attempt, () => retryNextPage(message.input)),
  }
}

test.each<[BulkAction, number, string, (scene: Scene) => Promise<object | undefined>]>([
  ['retry', 3, 'document.retried', async ({ change }) => void (await change({ status: 'failed' }))],
  [
    'acknowledge',
    0,
    'document.acknowledged',
    async ({ ids }) => {
      await db('deliveries').whereIn('document_id', ids).delete()
      await db('documents').whereIn('id', ids).update({ status: 'discarded', is_unconnected: true })
      return undefined
    },
  ],
  [
    'deliver',
    3,
    '',
    async ({ ids, destinationId }) => {
      await db('deliveries').whereIn('document_id', ids).delete()
      await db('documents').whereIn('id', ids).update({ status: 'discarded' })
      return { destinationId }
    },
  ],
])('a page whose worker was lost, and whose answer was lost, takes each document once: %s', async (action, deliveries, event, prepare) => {
  const scene = await arrange()
  const bulk = await startBulk(scene, action, await prepare(scene))
  await expect(bulk.breakOff()).rejects.toThrow('the worker was lost')
  const first = await bulk.run(2)
  expect(first.outcome).toEqual({ status: 'completed', matchedDocuments: 3, retriedDocuments: 3, retriedDeliveries: deliveries })
  const recorded = async () => [await scene.rows(), await db('audit_logs').where({ workspace_id: scene.workspaceId }).orderBy('id')]
  const before = await recorded()
  expectSame(await bulk.run(3), first)
  expect(await recorded()).toEqual(before)
  const audited: string[] = await db('audit_logs')
    .where({ workspace_id: scene.workspaceId, event })
    .orderBy('subject_id')
    .pluck('subject_id')
  expect(audited).toEqual(event === '' ? [] : scene.ids)
})
