import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createAcknowledge } from '../../src/delivery/acknowledge.ts'
import { planExisting } from '../../src/delivery/plan-existing.ts'
import { createRedeliverAppended } from '../../src/delivery/redeliver.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { deliveryStatuses, openOf, type DeliveryStatus } from '../../src/domain/delivery-states.ts'
import { disownContents } from '../../src/maintenance/retention-statements.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createActivityEnvironment } from '../support/activity-environment.ts'
import { createTestDatabase } from '../support/database.ts'
import { attemptActivities } from '../support/delivery-activities.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { insertManifest } from '../support/manifest.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { withoutManifests } from '../support/without-manifests.ts'

// Retention takes the content, and later the rows, of documents with which nothing is left to be done.

const config = testConfig({ RETENTION_DOCUMENTS_DAYS: '1' })
const { db } = share(await createTestDatabase())
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS }), (each) => each.close()))
const target = share(await startHttpTarget())

// Retention runs over all workspaces, and each test counts what it takes.
beforeEach(() => db('workspaces').delete())

const names = ['a', 'b', 'c'] as const
const receiveFor = async (inactive: string[] = []) => {
  const plans = names.map((name) => ({ name, config: { url: `${target.origin}/${name}` } }))
  const routes = await createRoutes(db, plans, { inactive, workspaceSettings: { content_days: 1 } })
  const receive = async () =>
    (await createReceive(db, config)(await receivedDocument(routes, { data: 'an invoice' }, newId()))).documents[0]!.documentId
  const setStatus = (documentId: string, name: string, status: DeliveryStatus) =>
    db('deliveries').where({ document_id: documentId, destination_id: routes.destinations[name] }).update({ status })
  return { ...routes, receive, setStatus, acknowledge: (id: string) => createAcknowledge(db)(routes.workspaceId, id, systemActor) }
}

const removeTwoDaysLater = async () => {
  await withoutManifests(db)
  return createRetention(db, config, { batchRows: 7 }).removeExpired(new Date(Date.now() + 2 * 86_400_000), new AbortController().signal)
}

/** Every way in which three deliveries may stand, without regard to their order. */
const combinations = deliveryStatuses.flatMap((first, index) =>
  deliveryStatuses.slice(index).flatMap((second, next) => deliveryStatuses.slice(index + next).map((third) => [first, second, third])),
)

test('of every combination of deliveries, acknowledged or not, the content and the rows are kept as long as one is open or a failure is not acknowledged', async () => {
  const { receive, setStatus, acknowledge } = await receiveFor()
  const cases: { id: string; of: string; isKept: boolean }[] = []
  for (const statuses of combinations) {
    for (const isAcknowledged of [false, true]) {
      const id = await receive()
      for (const [index, status] of statuses.entries()) await setStatus(id, names[index]!, status)
      const { status } = await db('documents').where({ id }).first('status')
      if (isAcknowledged && status !== 'failed') continue
      if (isAcknowledged) await acknowledge(id)
      const isKept = openOf(statuses.map((each) => ({ status: each }))).length > 0 || (statuses.includes('failed') && !isAcknowledged)
      cases.push({ id, of: `${statuses.join(', ')}${isAcknowledged ? ', acknowledged' : ''}`, isKept })
    }
  }
  expect(cases.length).toBeGreaterThan(combinations.length)
  const ofThose = (ids: string[]) => cases.filter(({ id }) => ids.includes(id)).map(({ of }) => of)
  const kept = cases.filter(({ isKept }) => isKept).map(({ of }) => of)
  const ids = cases.map(({ id }) => id)

  await removeTwoDaysLater()
  expect(ofThose(await db('documents').whereIn('id', ids).whereNotNull('content_id').pluck('id'))).toEqual(kept)

  // Rows of documents without content.
  await db('documents').whereIn('id', ids).update({ content_id: null })
  await removeTwoDaysLater()
  expect(ofThose(await db('documents').whereIn('id', ids).pluck('id'))).toEqual(kept)
})

test.each(['held', 'retrying'] as const)(
  'a delivery that is %s while the failure of another one is acknowledged arrives',
  async (status) => {
    const { workspaceId, connections, destinations, receive, setStatus, acknowledge } = await receiveFor(status === 'held' ? ['b'] : [])
    const id = await receive()
    await setStatus(id, 'a', 'failed')
    await setStatus(id, 'b', status)
    await setStatus(id, 'c', 'delivered')
    await acknowledge(id)
    expect(await removeTwoDaysLater()).toMatchObject({ contents: 0, documents: 0 })

    if (status === 'held') {
      await db('connections').where({ id: connections['b'] }).update({ is_active: true })
      expect(await createRelease(db).releaseBatch(connections['b']!, 10)).toEqual({ count: 1 })
    }
    const policy = { maxRetries: 0, ttlMs: 3_600_000, initialIntervalMs: 1_000, maxIntervalMs: 1_000 }
    const input = {
      documentId: id,
      destinationId: destinations['b']!,
      policy,
      round: 'any',
      attemptTimeoutMs: 60_000,
      workspace: 'acme/any',
    }
    const { attemptDelivery } = attemptActivities({ db, config, outbound })
    expect(await createActivityEnvironment().run(attemptDelivery, input)).toEqual({ status: 'delivered' })
    expect(target.arrivals.at(-1)!.body.toString()).toBe('an invoice')

    // Now nothing is open, and what has failed is still acknowledged.
    expect(await db('documents').where({ workspace_id: workspaceId }).whereNotNull('acknowledged_at').pluck('id')).toEqual([id])
    expect(await removeTwoDaysLater()).toMatchObject({ contents: 1 })
  },
)

test('the manifest of a day that is not over proves nothing', async () => {
  const { workspaceId, receive, setStatus } = await receiveFor()
  const id = await receive()
  for (const name of names) await setStatus(id, name, 'delivered')
  const now = new Date()
  const yesterday = new Date(now.getTime() - (now.getTime() % 86_400_000) - 86_400_000)
  await db('documents').where({ id }).update({ received_at: yesterday })
  const day = await insertManifest(db, workspaceId)
  await db('manifests').where({ day }).update({ day: '2100-01-01' })
  const remove = async (at: Date) => (await createRetention(db, config).removeExpired(at, new AbortController().signal)).contents
  expect([await remove(now), await remove(new Date(now.getTime() + 86_400_000))]).toEqual([0, 1])
})

/** Runs a statement of retention, which waits once it has judged the documents and before it locks them, until a change is made. */
const betweenJudgementAndLock = async (statement: string, workspaceId: string, change: () => Promise<unknown>): Promise<void> => {
  const condition = 'and received_at < :before\n'
  const pausing = statement.replace(condition, `${condition} and pg_advisory_xact_lock_shared(4711)::text is not null\n`)
  expect(pausing).not.toBe(statement)
  const { running } = await db.transaction(async (trx) => {
    await trx.raw('select pg_advisory_xact_lock(4711)')
    const before = new Date(Date.now() + 86_400_000)
    // Every document is in a manifest.
    const proven = { provenTo: 'infinity', provenId: 'Z' }
    const bindings = { workspaceId, before, ...proven, judgedTo: '-infinity', judgedId: '', limit: 100 }
    const removing = Promise.allSettled([db.raw(pausing, bindings)])
    await until('retention waits', async () => (await db('pg_locks').where({ locktype: 'advisory', granted: false })).length > 0)
    await change()
    return { running: removing }
  })
  expect(await running).toMatchObject([{ status: 'fulfilled' }])
}

interface Opened {
  id: string
  destinationId: string
}

const openings: Record<string, (opened: Opened) => Promise<() => Promise<unknown>>> = {
  'planned for a destination that was connected later': async ({ id, destinationId }) => {
    await db('deliveries').where({ document_id: id, destination_id: destinationId }).delete()
    return () => db.transaction((trx) => planExisting(trx, { documentId: id, destinationId, bulkRetryId: 'any' }))
  },
  'planned again after an append': async ({ id }) => {
    return () => db.transaction((trx) => createRedeliverAppended({ RELAY_APPEND_QUIET_MS: 1_000 })(trx, { id, revision: 1 }))
  },
  retried: async ({ id, destinationId }) => {
    await db('deliveries').where({ document_id: id, destination_id: destinationId }).update({ status: 'cancelled' })
    return () => db('deliveries').where({ document_id: id, destination_id: destinationId }).update({ status: 'retrying' })
  },
}

test.each(Object.entries(openings))('what is %s while retention runs keeps its content', async (_, arrange) => {
  const { workspaceId, destinations, receive, setStatus, acknowledge } = await receiveFor()
  const [settled, id] = [await receive(), await receive()]
  for (const each of [settled, id]) {
    await setStatus(each, 'a', 'failed')
    for (const name of ['b', 'c']) await setStatus(each, name, 'delivered')
  }
  const open = await arrange({ id, destinationId: destinations['b']! })
  for (const each of [settled, id]) await acknowledge(each)

  await betweenJudgementAndLock(disownContents, workspaceId, open)

  expect(openOf(await db('deliveries').select('status').where({ document_id: id }))).not.toEqual([])
  expect(await db('documents').whereIn('id', [settled, id]).whereNotNull('content_id').pluck('id')).toEqual([id])
})
