import { createArchiveDocuments } from '../../src/archive/documents.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createUpdate } from '../../src/archive/update.ts'
import { newId } from '../../src/base/ids.ts'
import type { Database } from '../../src/db/database.ts'
import { createAcknowledge } from '../../src/delivery/acknowledge.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { createSetMetadata } from '../../src/delivery/set-metadata.ts'
import { transition } from '../../src/delivery/transition.ts'
import { eventIdOf, eventIdPattern, eventNames, eventPositionOf, eventTypes } from '../../src/domain/events.ts'
import { createEvents, measureHeldBack } from '../../src/events/event-log.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { createHeldBackMetric } from '../../src/observe/metrics.ts'
import { deleteWorkspace } from '../../src/workspace/delete-workspace.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, insertNumberedDocuments, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { createList } from './event-list.ts'

const { db } = share(await createTestDatabase())
const config = testConfig()
const events = createEvents(db)
const actor = { type: 'system', userId: null } as const

type Routes = Awaited<ReturnType<typeof createRoutes>>

const receive = async (routes: Routes, docId = newId()) => {
  await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }, docId))
  const { id } = await db('documents').where({ doc_id: docId, superseded_at: null }).first('id')
  return { documentId: id as string, docId }
}

const attempt = async (routes: Routes, documentId: string, name: string, operation: 'attemptDelivered' | 'attemptFailed') => {
  const delivery = { documentId, destinationId: routes.destinations[name]! }
  const job = (await createLoadJob(db, config)({ ...delivery, ...firstRound }))!
  const end =
    operation === 'attemptDelivered'
      ? {
          outcome: 'delivered' as const,
          result: { path: 's3://bucket/key', bytesSent: 1, sha256: 'ab', sizeBytes: 5, answer: { etag: '"e"' } },
        }
      : { outcome: 'permanent' as const, endedBy: 'permanent_error' as const, error: { code: 'http_403' as never, message: 'HTTP 403' } }
  await createRecordAttempt(db, config)(delivery, job, { ...end, operation, id: newId(), durationMs: 1, bytesSent: 1 })
}

const list = createList(db, events)

/** Reads everything after a cursor, in pages. */
const readAll = async (workspaceId: string, after?: string, limit = 3) => {
  const found = []
  let cursor = after
  for (;;) {
    const { items, nextCursor, hasMore } = await list(workspaceId, { after: cursor, limit })
    found.push(...items)
    cursor = nextCursor
    if (!hasMore) return { found, names: found.map(({ event }) => event), cursor }
  }
}

test('each outcome is one event, in the order in which it happened, with what its schema says', async () => {
  const routes = await createRoutes(db, [{ name: 'a' }, { name: 'b' }])
  const { workspaceId } = routes
  const { documentId, docId } = await receive(routes)
  await attempt(routes, documentId, 'a', 'attemptDelivered')
  await attempt(routes, documentId, 'b', 'attemptFailed')
  await createAcknowledge(db)(workspaceId, documentId, actor)
  await createSetMetadata(db, { findConnector: () => undefined })(workspaceId, { repoId: 'Z1', docId }, { erpObjectType: 'BKPF' }, actor)
  await createUpdate(db, config)({ ...(await receivedDocument(routes, { data: 'changed' }, docId)), whole: true })
  await createArchiveDocuments(db).delete(routes.repositoryId, docId)
  await createErase(db)(workspaceId, documentId, actor)

  const { found, names } = await readAll(workspaceId)
  expect(names).toEqual([
    'document.received',
    'delivery.delivered',
    'delivery.failed',
    'document.failed',
    'document.acknowledged',
    'document.metadata_updated',
    'document.superseded',
    'document.received',
    'document.deleted',
    // The failed delivery is cancelled: what remains was delivered.
    'delivery.cancelled',
    'document.delivered',
    'document.erased',
  ])
  expect(found.map(({ id }) => id)).toEqual(found.map(({ id }) => id).toSorted())
  for (const { id, event, data } of found) {
    expect(id).toMatch(eventIdPattern)
    expect(eventIdOf(eventPositionOf(id))).toBe(id)
    expect(eventTypes[event].data.strict().parse(data)).toEqual(data)
  }
  expect(found[1]!.data).toEqual({
    document_id: documentId,
    repo_id: 'Z1',
    doc_id: docId,
    comp_id: 'data',
    revision: 1,
    destination_id: routes.destinations['a'],
    attempts: 1,
    location: 's3://bucket/key',
    receipt: expect.objectContaining({ sha256: 'ab', target: { etag: '"e"' } }),
  })
  expect(found[2]!.data).toMatchObject({ destination_id: routes.destinations['b'], ended_by: 'permanent_error', error_code: 'http_403' })
})

test('a document without a destination is received and discarded, and a cancelled delivery ends its document', async () => {
  const nowhere = await createRoutes(db, [])
  await createReceive(db, config)(await receivedDocument(nowhere, { data: 'x', other: 'y' }))
  expect((await readAll(nowhere.workspaceId)).names).toEqual([
    'document.received',
    'document.discarded',
    'document.received',
    'document.discarded',
  ])
  expect((await readAll(nowhere.workspaceId)).found[1]!.data).toMatchObject({ reason: 'no_connection' })

  const routes = await createRoutes(db, [{ name: 'a' }])
  const { documentId } = await receive(routes)
  await transition(db, 'cancel', { documentId, destinationId: routes.destinations['a']! }, 'destination_deleted')
  const { found, names } = await readAll(routes.workspaceId)
  expect(names).toEqual(['document.received', 'delivery.cancelled', 'document.failed'])
  expect(found[1]!.data).toMatchObject({ ended_by: 'destination_deleted', error_code: null })
})

test('thousands of deliveries that one statement cancels are an event each', async () => {
  const routes = await createRoutes(db, [{ name: 'archive' }])
  await insertNumberedDocuments(db, routes, 2_000)
  const { cursor } = await readAll(routes.workspaceId, undefined, 1_000)
  await db('deliveries').where({ workspace_id: routes.workspaceId }).update({ status: 'cancelled' })
  const { names } = await readAll(routes.workspaceId, cursor, 1_000)
  expect(names.filter((name) => name === 'delivery.cancelled')).toHaveLength(2_000)
  expect(names.filter((name) => name === 'document.failed')).toHaveLength(2_000)
  expect(names).toHaveLength(4_000)
})

test('a reader passes over other types, and begins where it is told', async () => {
  const routes = await createRoutes(db, [{ name: 'a' }])
  const { workspaceId } = routes
  const latest = await list(workspaceId, { after: 'latest', limit: 10 })
  expect(latest).toMatchObject({ items: [], hasMore: false })
  const { documentId } = await receive(routes)
  await attempt(routes, documentId, 'a', 'attemptDelivered')
  const only = await list(workspaceId, { types: ['document.delivered'], limit: 10 })
  expect(only.items.map(({ event }) => event)).toEqual(['document.delivered'])
  const rest = await list(workspaceId, { after: latest.nextCursor, limit: 2 })
  expect(rest).toMatchObject({ items: [{ event: 'document.received' }, { event: 'delivery.delivered' }], hasMore: true })
  expect((await readAll(workspaceId, rest.nextCursor)).names).toEqual(['document.delivered'])
  const after = await list(workspaceId, { after: 'latest', limit: 10 })
  expect((await readAll(workspaceId, after.nextCursor)).names).toEqual([])
})

test('a transaction that commits after a later one is not missed: its events and later ones appear when it has ended', async () => {
  const { workspaceId } = await createRoutes(db, [])
  const add = (trx: Database, name: string) =>
    trx.raw('select add_event(?, ?, ?)', [workspaceId, 'document.received', JSON.stringify({ name })])
  const slow = await db.transaction()
  await add(slow, 'slow')
  await add(db, 'fast')
  const before = await events.list(workspaceId, { limit: 3 })
  expect(before.items).toEqual([])
  await add(slow, 'slow again')
  await slow.commit()
  const { found } = await readAll(workspaceId, before.nextCursor)
  expect(found.map(({ data }) => data['name'])).toEqual(['slow', 'slow again', 'fast'])

  const lost = await db.transaction()
  await add(lost, 'lost')
  await lost.rollback()
  expect((await readAll(workspaceId, before.nextCursor)).found).toHaveLength(3)
})

test('the age of the oldest event that a long transaction holds back is measured, and is 0 again after it', async () => {
  const { workspaceId } = await createRoutes(db, [])
  const add = (trx: Database) => trx.raw('select add_event(?, ?, ?)', [workspaceId, 'document.received', '{}'])
  const isNotHeldBack = () => until('no event is held back', async () => (await measureHeldBack(db)) === 0)
  const long = await db.transaction()
  await long.raw('select pg_current_xact_id()')
  await isNotHeldBack()
  await add(db)
  await add(db)
  await db('events')
    .where({ workspace_id: workspaceId })
    .update({ created_at: db.raw(`created_at - interval '90 seconds'`) })
  expect(await measureHeldBack(db)).toBeGreaterThanOrEqual(90)
  expect((await createHeldBackMetric(db).get()).values[0]!.value).toBeGreaterThanOrEqual(90)
  await long.rollback()
  await isNotHeldBack()
})

test('an event that is held back is a known cursor, of which a webhook may have told, and is not moved back', async () => {
  const { workspaceId } = await createRoutes(db, [{ name: 'a' }])
  const long = await db.transaction()
  await long.raw('select pg_current_xact_id()')
  await db.raw('select add_event(?, ?, ?)', [workspaceId, 'document.received', '{}'])
  const beyond = eventIdOf(await db('events').where({ workspace_id: workspaceId }).first('epoch', 'transaction', 'number'))
  expect(await events.list(workspaceId, { limit: 10 })).toMatchObject({ items: [] })
  expect(await events.list(workspaceId, { after: beyond, limit: 10 })).toEqual({ items: [], nextCursor: beyond, hasMore: false })
  await long.rollback()
})

test('a cursor is an event of the workspace, or the place before the first that is kept: any other is refused', async () => {
  const { workspaceId } = await createRoutes(db, [])
  const add = (id: string) => db.raw('select add_event(?, ?, ?)', [id, 'document.received', '{}'])
  const beginning = await events.beginning(workspaceId)
  expect(await list(workspaceId, { after: 'latest', limit: 10 })).toEqual({ items: [], nextCursor: beginning, hasMore: false })
  expect(await list(workspaceId, { limit: 10 })).toEqual({ items: [], nextCursor: beginning, hasMore: false })
  expect(await list(workspaceId, { after: beginning, limit: 10 })).toEqual({ items: [], nextCursor: beginning, hasMore: false })
  await add(workspaceId)
  const other = await createRoutes(db, [])
  await add(other.workspaceId)
  const [own] = (await readAll(workspaceId, beginning)).found
  const [foreign] = (await readAll(other.workspaceId)).found
  const at = eventPositionOf(own!.id)
  const unknown = [
    foreign!.id,
    eventIdOf({ ...at, number: at.number + 1 }),
    eventIdOf({ ...at, transaction: at.transaction - 1 }),
    eventIdOf({ ...at, transaction: at.transaction + 1 }),
    eventIdOf({ ...at, epoch: at.epoch - 1 }),
    eventIdOf({ ...at, epoch: at.epoch + 1 }),
    eventIdOf({ epoch: 0, transaction: 0, number: 1 }),
    'f'.repeat(own!.id.length),
  ]
  for (const after of unknown) {
    await expect(
      events.list(workspaceId, { after, limit: 10 }).then(({ items }) => `${after}: ${items.length} events`),
    ).rejects.toMatchObject({
      code: 'gone',
      message: expect.stringContaining('does not have the event'),
    })
  }
  expect(await list(workspaceId, { after: own!.id, limit: 10 })).toEqual({ items: [], nextCursor: own!.id, hasMore: false })
})

test('a transaction that runs in another database of the server holds nothing back', async () => {
  await using other = await createTestDatabase()
  const { workspaceId } = await createRoutes(db, [])
  const long = await other.db.transaction()
  await long.raw('select pg_current_xact_id()')
  await db.raw('select add_event(?, ?, ?)', [workspaceId, 'document.received', '{}'])
  const page = await until(
    'the event is read while the transaction runs',
    () => events.list(workspaceId, { limit: 10 }),
    ({ items }) => items.length > 0,
  )
  expect(page.items).toHaveLength(1)
  await long.rollback()
})

test('a reader that follows writers of many transactions gets every event once and in order', async () => {
  const { workspaceId } = await createRoutes(db, [])
  const total = 40
  let running = 8
  const write = async (writer: number) => {
    for (let index = 0; index < total; index += 1) {
      await db.transaction(async (trx) => {
        await trx.raw('select add_event(?, ?, ?)', [workspaceId, 'document.received', JSON.stringify({ writer, index })])
        await trx.raw('select pg_sleep(random() * 0.01)')
        await trx.raw('select add_event(?, ?, ?)', [workspaceId, 'document.delivered', JSON.stringify({ writer, index })])
      })
    }
    running -= 1
  }
  const writing = Promise.all(Array.from({ length: running }, (_, writer) => write(writer)))
  const seen: string[] = []
  let cursor: string | undefined
  for (let isLast = false; ; isLast = running === 0) {
    const { items, nextCursor } = await (isLast ? list : events.list)(workspaceId, { after: cursor, limit: 7 })
    seen.push(...items.map(({ event, data }) => `${String(data['writer'])} ${String(data['index'])} ${event}`))
    cursor = nextCursor
    if (isLast && items.length === 0) break
  }
  await writing
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen).toHaveLength(8 * total * 2)
  for (let writer = 0; writer < 8; writer += 1) {
    expect(seen.filter((text) => text.startsWith(`${writer} `))).toEqual(
      Array.from({ length: total }, (_, index) => [`${writer} ${index} document.received`, `${writer} ${index} document.delivered`]).flat(),
    )
  }
})

describe('every epoch of a server comes after all epochs of the database', () => {
  const hour = 3_600_000_000
  test.each([
    ['that ended before the server was started, as after a restart or a restore', -hour],
    ['that ended just before', -1],
    ['that began in the same microsecond', 0],
    ['that began later, as when a standby takes over, or a dump is restored into an old server', hour],
    ['of a server whose clock was wrong', 50 * 365 * 24 * hour],
  ])('%s', async (_, later) => {
    await using copy = await createTestDatabase()
    const { workspaceId } = await createRoutes(copy.db, [])
    const add = (name: string) => copy.db.raw('select add_event(?, ?, ?)', [workspaceId, 'document.received', JSON.stringify({ name })])
    const { rows } = await copy.db.raw<{ rows: { started: number }[] }>(
      'select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint as started',
    )
    const { started } = rows[0]!
    const epoch = started + later
    // The copy has the events of transactions that this server has not reached yet.
    await copy.db('event_epochs').insert({ epoch, server_started_at: copy.db.raw("now() - interval '1 year'") })
    const old = { workspace_id: workspaceId, epoch, transaction: 2 ** 40, type: 'document.received' }
    const [copied] = await copy.db('events').insert({ ...old, data: '{"name":"copied"}' }, ['epoch', 'transaction', 'number'])
    await Promise.all([add('written'), add('written'), add('written')])
    await add('written')
    const listThere = createList(copy.db, createEvents(copy.db))
    const all = await listThere(workspaceId, { limit: 10 })
    expect(all.items.map(({ data }) => data['name'])).toEqual(['copied', 'written', 'written', 'written', 'written'])
    expect((await listThere(workspaceId, { after: eventIdOf(copied), limit: 10 })).items).toEqual(all.items.slice(1))
    const [first, ...others] = new Set(all.items.slice(1).map(({ id }) => eventPositionOf(id).epoch))
    expect(others).toEqual([])
    expect(first).toBe(later < -1_000_000 ? started : epoch + 1 + (started % 1_000_000))
    // Whatever copy has these events knows that this epoch was taken.
    expect(await copy.db('event_epochs').where({ epoch: first }).first()).toBeDefined()
  })
})

test('retention removes old events up to the first that is kept, and a reader that has not come so far is told', async () => {
  const routes = await createRoutes(db, [{ name: 'a' }], { workspaceSettings: { events_days: 3 } })
  const { workspaceId } = routes
  for (const name of ['one', 'two', 'three']) {
    await db.raw('select add_event(?, ?, ?)', [workspaceId, 'document.received', JSON.stringify({ name })])
  }
  const { found } = await readAll(workspaceId)
  const day = 86_400_000
  const age = (id: string, days: number) =>
    db('events')
      .where({ workspace_id: workspaceId, number: eventPositionOf(id).number })
      .update({ created_at: new Date(Date.now() - days * day) })
  await age(found[0]!.id, 5)
  await age(found[1]!.id, 4)
  const retention = createRetention(db, config, { batchRows: 1 })
  await retention.removeExpired(new Date(), new AbortController().signal)
  expect((await readAll(workspaceId)).found.map(({ id }) => id)).toEqual([found[2]!.id])
  await expect(events.list(workspaceId, { after: found[0]!.id, limit: 1 })).rejects.toMatchObject({
    code: 'gone',
    message: expect.stringContaining('have been removed'),
  })
  // It has read everything that was removed.
  expect((await readAll(workspaceId, found[1]!.id)).found).toHaveLength(1)
})

test('a workspace that keeps no events gets none, and a deleted one leaves none', async () => {
  const routes = await createRoutes(db, [{ name: 'a' }], { workspaceSettings: { events_days: 0 } })
  const { documentId } = await receive(routes)
  await attempt(routes, documentId, 'a', 'attemptDelivered')
  expect((await readAll(routes.workspaceId)).found).toEqual([])

  const other = await createRoutes(db, [])
  await createReceive(db, config)(await receivedDocument(other, { data: 'x' }))
  await deleteWorkspace(db, `acme/${other.workspaceSlug}`, { confirmed: true })
  expect(await db('events').where({ workspace_id: other.workspaceId })).toEqual([])
})

test('every type of event is described', () => {
  expect(eventNames.length).toBe(new Set(eventNames).size)
  for (const name of eventNames) expect(eventTypes[name].summary).not.toBe('')
})

test('the page of a reader is read from the index, however many events there are', async () => {
  const { workspaceId } = await createRoutes(db, [])
  await db.raw(
    `insert into events (workspace_id, epoch, transaction, type, data)
     select ?, 1, number, 'document.received', '{}' from generate_series(1, 20000) as number`,
    [workspaceId],
  )
  await db.raw('analyze events')
  const { rows } = await db.raw<{ rows: { 'QUERY PLAN': string }[] }>(
    `explain select * from events
     where workspace_id = ? and (epoch, transaction, number) > (1, 5000, 0)
       and (epoch, transaction) < ((select current_event_epoch()), (select event_horizon()))
     order by epoch, transaction, number limit 100`,
    [workspaceId],
  )
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  expect(plan).toContain('events_pkey')
  expect(plan).not.toMatch(/Sort|Seq Scan on events/)
})
