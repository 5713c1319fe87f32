import * as fc from 'fast-check'
import { ulid } from 'ulid'
import { destinationsOf } from '../../src/app/use-cases.ts'
import { createDocuments } from '../../src/archive/document-list.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createUpdate } from '../../src/archive/update.ts'
import { AppError } from '../../src/base/errors.ts'
import { newId, timeOfId } from '../../src/base/ids.ts'
import { isLostRace } from '../../src/db/errors.ts'
import { ensurePartitions } from '../../src/db/partitions.ts'
import { createAcknowledge } from '../../src/delivery/acknowledge.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createRecordAttempt, type AttemptEnd } from '../../src/delivery/record-attempt.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { createRetry } from '../../src/delivery/retry.ts'
import { transition } from '../../src/delivery/transition.ts'
import { transitions, type DeliveryOperation } from '../../src/domain/delivery-states.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { createConnections } from '../../src/routing/connections.ts'
import { deleteWorkspace } from '../../src/workspace/delete-workspace.ts'
import { bulkPageOf } from '../support/bulk-page.ts'
import { findWrongCounters, foldAll } from '../support/counters.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { check } from '../support/properties.ts'
import { share } from '../support/share.ts'
import { withoutManifests } from '../support/without-manifests.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const config = testConfig({ RETENTION_ATTEMPTS_DAYS: '100' })
const actor = { type: 'system', userId: null } as const

const database = share(await createTestDatabase())

/** Two workspaces with three destinations each, one of them behind an inactive connection, and one workspace that discards documents. */
const createWorld = async () => {
  const { db } = database
  const plans = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
  const routes = [
    await createRoutes(db, plans, { inactive: ['b'] }),
    await createRoutes(db, plans, { repoId: 'Z2', inactive: ['c'] }),
    await createRoutes(db, []),
  ]
  return { routes, attemptIds: [newId()] }
}

type World = Awaited<ReturnType<typeof createWorld>>

/** Numbers that choose what an operation works on. */
interface Choice {
  which: number
  other: number
  hours: number
}

const pick = <Item>(items: readonly Item[], index: number): Item | undefined => items[index % items.length]

const findDelivery = async ({ which }: Choice) => {
  const { rows } = await database.db.raw<{ rows: { documentId: string; destinationId: string; workspaceId: string }[] }>(
    `
    select document_id as "documentId", destination_id as "destinationId", workspace_id as "workspaceId"
    from deliveries
    order by document_id, destination_id
    `,
  )
  return pick(rows, which)
}

const receive = async ({ routes }: World, { which, other, hours }: Choice) => {
  const components = Object.fromEntries(Array.from({ length: 1 + (other % 2) }, (_, index) => [`data${index}`, 'hello']))
  const incoming = await receivedDocument(pick(routes, which)!, components)
  await createReceive(database.db, config)({ ...incoming, receivedAt: new Date(Date.now() + hours * hourMs) })
}

const recordAttempt = async ({ attemptIds }: World, choice: Choice, end: Pick<AttemptEnd, 'operation' | 'outcome' | 'error'>) => {
  const delivery = await findDelivery(choice)
  if (!delivery) return
  const job = await createLoadJob(database.db, config)({ ...delivery, ...firstRound })
  if (!job) return
  // Sometimes an attempt that was recorded before, as lost for example, is recorded again.
  const id = choice.other % 3 === 0 ? pick(attemptIds, choice.other)! : ulid(Date.now() + choice.hours * hourMs)
  attemptIds.push(id)
  await createRecordAttempt(database.db, config)(delivery, job, { id, durationMs: 1, bytesSent: 1, ...end })
}

const operations: Record<string, (world: World, choice: Choice) => Promise<unknown>> = {
  receive,
  receiveMore: receive,
  update: async ({ routes }, choice) => {
    const documents = await database
      .db('documents')
      .join('archive_documents', 'archive_documents.id', 'archive_document_id')
      .orderBy('documents.id')
      .select<{ workspaceId: string; docId: string }[]>('documents.workspace_id as workspaceId', 'documents.doc_id as docId')
    const found = pick(documents, choice.which)
    if (!found) return
    const route = routes.find(({ workspaceId }) => workspaceId === found.workspaceId)
    if (!route) return
    const incoming = await receivedDocument(route, { data0: 'changed' }, found.docId)
    await createUpdate(database.db, config)({ ...incoming, whole: choice.other % 2 === 0 })
  },
  deliver: (world, choice) => recordAttempt(world, choice, { operation: 'attemptDelivered', outcome: 'delivered' }),
  deliverMore: (world, choice) => recordAttempt(world, choice, { operation: 'attemptDelivered', outcome: 'delivered' }),
  failOnce: (world, choice) =>
    recordAttempt(world, choice, {
      operation: 'attemptRetryable',
      outcome: 'retryable',
      error: { code: pick(['http_503', 'timeout'], choice.other)!, message: 'x' },
    }),
  fail: (world, choice) =>
    recordAttempt(world, choice, { operation: 'attemptFailed', outcome: 'permanent', error: { code: 'auth_failed', message: 'x' } }),
  change: async (_, choice) => {
    const delivery = await findDelivery(choice)
    if (delivery) await transition(database.db, pick(Object.keys(transitions) as DeliveryOperation[], choice.other)!, delivery)
  },
  retryDocument: async (_, choice) => {
    const delivery = await findDelivery(choice)
    if (delivery) await createRetry(database.db, config).retryDocument({ ...delivery, actor })
  },
  acknowledge: async (_, choice) => {
    const documents = await database.db('documents').where({ status: 'failed' }).orderBy('id').select('id', 'workspace_id')
    const found = pick(documents, choice.which)
    if (found) await createAcknowledge(database.db)(found.workspace_id, found.id, actor)
  },
  erase: async (_, choice) => {
    const delivery = await findDelivery(choice)
    if (delivery) await createErase(database.db)(delivery.workspaceId, delivery.documentId, actor)
  },
  retryAll: async ({ routes }, { which }) => {
    const { workspaceId, workspaceSlug } = pick(routes, which)!
    const bulkRetries = createBulkRetries(database.db)
    const { bulkRetry } = await bulkRetries.start({ id: workspaceId, userSlug: 'acme', workspaceSlug }, 'retry', {}, actor)
    await bulkPageOf(database.db, { config })(bulkRetry.id, 10, () => {})
  },
  toggle: async ({ routes }, { which, other }) => {
    const { workspaceId, connections } = pick(routes, which)!
    const connectionId = pick(Object.values(connections), other)
    if (connectionId === undefined) return
    await createConnections(database.db).update(workspaceId, connectionId, { isActive: which % 2 === 0 }, actor, 5)
    await createRelease(database.db).releaseBatch(connectionId, 5)
  },
  deleteDestination: async ({ routes }, { which, other }) => {
    const { workspaceId, destinations } = pick(routes, which)!
    const destinationId = pick(Object.values(destinations), other)
    if (destinationId !== undefined && other % 10 === 0)
      await destinationsOf(database.db).delete(workspaceId, destinationId, actor, { limit: 5, keepConnections: false })
  },
  // Status changes always have the present time, so this makes some of them older.
  letTimePass: async (_, choice) => {
    const delivery = await findDelivery(choice)
    if (!delivery) return
    await database
      .db('deliveries')
      .where({ document_id: delivery.documentId })
      .update({ status_since: new Date(Date.now() - choice.hours * hourMs) })
  },
  // Without attempts, which are counted by the repository of their document.
  removeByHand: (_, { which, other }) =>
    database.db.transaction(async (trx) => {
      const ids = await trx('documents').orderBy('id').pluck('id')
      if (other % 5 !== 0 || ids.length === 0) return
      const id = pick(ids, which)
      await trx('documents').where({ id }).forUpdate().select('id')
      const attempts = await trx('delivery_attempts').where({ document_id: id }).select('id')
      if (attempts.length === 0) await trx('documents').where({ id }).delete()
    }),
  fold: (_, { other }) => foldAll(database.db, 1 + other),
  foldMore: (_, { other }) => foldAll(database.db, 1 + other),
}

const choice = fc.record({ which: fc.nat(30), other: fc.nat(30), hours: fc.nat(60) })
const step = fc.tuple(fc.constantFrom(...Object.keys(operations)), choice)

const run = async (world: World, [name, chosen]: [string, Choice]) => {
  try {
    await operations[name]!(world, chosen)
  } catch (thrown) {
    // Operations that meet may abort one another, which must leave no trace in the counters. What one deleted or ended, another one refuses.
    if (!(thrown instanceof AppError) && !isLostRace(thrown)) throw thrown
  }
}

const listTotals = async (workspaceId: string) => {
  const documents = createDocuments(database.db)
  const rows = await database
    .db('documents')
    .where({ workspace_id: workspaceId })
    .select('repo_id', 'status', 'acknowledged_at', 'received_at')
  const times: Date[] = rows.map(({ received_at }) => received_at)
  const page = { page: 1, perPage: 1 }
  for (const status of [undefined, 'failed', 'delivered'] as const) {
    for (const acknowledged of [undefined, true, false]) {
      for (const repoId of [undefined, 'Z1']) {
        for (const [dateFrom, dateTo] of [
          [undefined, undefined],
          [times[0], undefined],
          [undefined, times[1]],
          [times[1], times[2]],
        ]) {
          const expected = rows.filter(
            (row) =>
              (status === undefined || row.status === status) &&
              (acknowledged === undefined || (row.acknowledged_at !== null) === acknowledged) &&
              (repoId === undefined || row.repo_id === repoId) &&
              (!dateFrom || row.received_at >= dateFrom) &&
              (!dateTo || row.received_at <= dateTo),
          ).length
          const filter = { status, acknowledged, repoId, dateFrom, dateTo }
          const { total } = await documents.list(workspaceId, { ...filter, ...page })
          expect({ filter, total }).toEqual({ filter, total: expected })
        }
      }
    }
  }
}

test('counters equal the numbers of rows, whatever operations have changed them, one after another or at the same time', async () => {
  const walk = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 5, maxLength: 12 })
  const property = fc.asyncProperty(walk, async (groups) => {
    const world = await createWorld()
    for (let index = 0; index < 3; index += 1) await receive(world, { which: index, other: index, hours: index })
    for (const group of groups) {
      await Promise.all(group.map((each) => run(world, each)))
      expect(await findWrongCounters(database.db)).toEqual([])
    }
    await listTotals(world.routes[0]!.workspaceId)
    await foldAll(database.db)
    expect(await findWrongCounters(database.db)).toEqual([])
    expect(await database.db('counter_deltas')).toEqual([])
    expect(await database.db('counters').where('count', '<=', 0)).toEqual([])
    await listTotals(world.routes[0]!.workspaceId)
  })
  await check(property, 12)
}, 180_000)

test('folding while many transactions write and roll back loses and doubles nothing', async () => {
  const world = await createWorld()
  const written = new AbortController()
  const folding = (async () => {
    while (!written.signal.aborted) await Promise.all([foldAll(database.db, 3), foldAll(database.db, 3)])
  })()
  const write = async (index: number) => {
    await receive(world, { which: index, other: index, hours: index % 50 })
    await run(world, ['fail', { which: index, other: index, hours: 0 }])
    const rollBack = database.db.transaction(async (trx) => {
      await trx('documents').update({ status: 'discarded' })
      throw new Error('rolled back')
    })
    await rollBack.catch(() => {})
  }
  await Promise.all(
    Array.from({ length: 4 }, async (_, lane) => {
      for (let index = 0; index < 10; index += 1) await write(lane * 10 + index)
    }),
  )
  written.abort()
  await folding
  expect(await findWrongCounters(database.db)).toEqual([])
  await foldAll(database.db)
  expect(await findWrongCounters(database.db)).toEqual([])
}, 120_000)

test('the deletion of a workspace removes its counters, and leaves those of others', async () => {
  const { db } = database
  const world = await createWorld()
  for (let index = 0; index < 4; index += 1) await receive(world, { which: index % 2, other: index, hours: index })
  await foldAll(db)
  const { workspaceId, workspaceSlug } = world.routes[0]!
  await db('deliveries').where({ workspace_id: workspaceId }).update({ status: 'delivered' })
  await db('outbox').delete()
  await Promise.all([deleteWorkspace(db, `acme/${workspaceSlug}`, { confirmed: true }), foldAll(db, 1), foldAll(db, 1)])
  expect(await db('documents').where({ workspace_id: workspaceId })).toEqual([])
  await foldAll(db)
  expect(await db('counters').where({ workspace_id: workspaceId })).toEqual([])
  expect(await findWrongCounters(db)).toEqual([])
  expect(await db('counters').where({ workspace_id: world.routes[1]!.workspaceId })).not.toEqual([])
})

test('retention removes the counters of attempts together with their rows and partitions', async () => {
  // A database of its own, because retention drops the partitions into which the other tests write.
  const { db, drop } = await createTestDatabase()
  try {
    const { workspaceId } = await createRoutes(db, [])
    const lastDay = 165
    for (const day of [0, 40, 80, 120, lastDay]) {
      const moment = new Date(Date.now() + day * dayMs)
      await ensurePartitions(db, moment)
      for (let count = 0; count < 3; count += 1) {
        const id = ulid(moment.getTime() + count * 2 * hourMs)
        const attempt = { workspace_id: workspaceId, document_id: id, destination_id: id, number: 1, duration_ms: 1, outcome: 'delivered' }
        await db('delivery_attempts').insert({ id, started_at: timeOfId(id), ...attempt })
      }
    }
    await foldAll(db)
    await withoutManifests(db)
    const now = new Date(Date.now() + lastDay * dayMs)
    const { partitions } = await createRetention(db, config, { batchRows: 3 }).removeExpired(now, new AbortController().signal)
    expect(partitions).toContainEqual(expect.stringMatching(/^delivery_attempts_/))
    const oldest = now.getTime() - config.RETENTION_ATTEMPTS_DAYS * dayMs
    // The hour in which the retention ends is removed in part.
    expect(await findWrongCounters(db, new Date(Math.ceil(oldest / hourMs) * hourMs))).toEqual([])
    const ofAttempts = db('counters').where({ kind: 'attempts', workspace_id: workspaceId })
    const before = (period: string, time: number) => ofAttempts.clone().where({ period }).where('since', '<', new Date(time))
    expect(await before('hour', oldest - hourMs)).toEqual([])
    expect(await before('day', oldest - dayMs)).toEqual([])
    expect(await before('hour', now.getTime() + dayMs)).not.toEqual([])
  } finally {
    await drop()
  }
})
