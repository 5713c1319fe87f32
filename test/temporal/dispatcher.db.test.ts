import { setTimeout as delay } from 'node:timers/promises'
import { createReceive } from '../../src/archive/receive.ts'
import { createLog } from '../../src/base/log.ts'
import { listParticipants } from '../../src/db/duties.ts'
import type { OutboxMessage } from '../../src/db/outbox.ts'
import { dispatchShares, startGraceMs, type Start } from '../../src/db/starts.ts'
import { findOverdue } from '../../src/delivery/overdue.ts'
import { createDispatcher, dispatchDuty, type Dispatcher } from '../../src/temporal/dispatcher.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { noteAllBegun } from '../support/starts.ts'
import { until } from '../support/until.ts'

const running: Dispatcher[] = []

const database = share(await createTestDatabase())
afterEach(async () => {
  for (const dispatcher of running.splice(0)) await dispatcher.close()
})
beforeEach(async () => {
  await noteAllBegun(database.db)
  await database.db('duties').delete()
})

type Routes = Awaited<ReturnType<typeof createRoutes>>

/** Commits documents that were received one after the other, and that were not begun. */
const receive = async (count: number, routes?: Routes): Promise<string[]> => {
  const { db } = database
  const target = routes ?? (await createRoutes(db, [{ name: 'archive' }]))
  const ids: string[] = []
  for (let index = 0; index < count; index += 1) {
    const { documents } = await createReceive(db, testConfig())(await receivedDocument(target, { data: 'hello' }))
    ids.push(...documents.map(({ documentId }) => documentId))
  }
  const longAgo = Date.now() - 10_000
  for (const [index, id] of ids.entries()) {
    await db('deliveries')
      .where({ document_id: id })
      // A running dispatcher may have begun it.
      .whereNotNull('begin_at')
      .update({ begin_at: new Date(longAgo + index) })
  }
  return ids
}

interface Options {
  /** False if no worker begins what was started. */
  begins?: boolean
  /** @returns the error of a call to Temporal, if it fails */
  fails?: (start: Start) => Error | undefined
  limits?: Parameters<typeof createDispatcher>[1]
}

// Attempts begin as if in another worker: the dispatcher is not told, and sees it in the database.
const seesSoon = { aloneMs: 100 }

/** Starts a dispatcher. Its Temporal notes what was started, and attempts begin at once, as the database says. */
const startDispatcher = ({ begins = true, fails = () => undefined, limits = {} }: Options = {}) => {
  const { db } = database
  const started: Start[] = []
  const begin = (start: Start) => db('deliveries').where({ document_id: start.input.documentId }).update({ begin_at: null })
  const send = async (message: OutboxMessage | Start) => {
    const start = message as Start
    const failure = fails(start)
    if (failure) throw failure
    started.push(start)
    if (begins) await begin(start)
  }
  const dispatcher = createDispatcher(
    { db, temporal: { send }, config: testConfig(), log: createLog('silent') },
    { ...seesSoon, ...limits },
  )
  running.push(dispatcher)
  dispatcher.start()
  return { ...dispatcher, started, begin, idsOf: () => started.map(({ input }) => input.documentId) }
}

const untilNothingWaits = () =>
  until('nothing waits', async () => (await database.db('deliveries').whereNotNull('begin_at').select('document_id')).length === 0)

test('what a crash has left is begun, the oldest first, and each document once', async () => {
  const ids = await receive(30)
  const dispatcher = startDispatcher()
  await untilNothingWaits()
  await dispatcher.close()
  expect(dispatcher.idsOf().toSorted()).toEqual(ids.toSorted())
  // Documents that are started together start in any order.
  const places = dispatcher.idsOf().map((id, place) => Math.abs(ids.indexOf(id) - place))
  expect(Math.max(...places)).toBeLessThanOrEqual(7)
})

test('a document that the process which has committed it may be beginning is left to it for a moment', async () => {
  const routes = await createRoutes(database.db, [{ name: 'archive' }])
  const received = await createReceive(database.db, testConfig())(await receivedDocument(routes, { data: 'hello' }))
  expect(received.atOnce).toBe(true)
  const delivery = database.db('deliveries').where({ document_id: received.documents[0]!.documentId })
  const { begin_at: beginAt, status_since: plannedAt } = await delivery.clone().first()
  expect(beginAt.getTime() - plannedAt.getTime()).toBe(startGraceMs)
  const beginIn = (ms: number) => delivery.clone().update({ begin_at: database.db.raw(`now() + ? * interval '1 millisecond'`, [ms]) })
  // On a busy machine, the moment may pass before the test looks.
  await beginIn(60_000)
  const dispatcher = startDispatcher()
  await delay(500)
  expect(dispatcher.started).toEqual([])
  await beginIn(0)
  await until('it is begun', () => dispatcher.started.length === 1)
  await dispatcher.close()
  const { urgency, ...start } = dispatcher.started[0]!
  expect(urgency).toBe('quiet')
  expect(start).toMatchObject(received.messages[0]!)
})

test('the next document of a workspace waits for its turn, and the first one of another workspace does not', async () => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const create = async (to: Routes) => (await createReceive(db, testConfig())(await receivedDocument(to, { data: 'hello' }))).atOnce
  expect([await create(routes), await create(routes), await create(routes)]).toEqual([true, false, false])
  expect(await create(await createRoutes(db, [{ name: 'archive' }]))).toBe(true)
  await noteAllBegun(db)
  expect(await create(routes)).toBe(true)
})

test('while no attempt begins, a few documents are open, and a place is kept for a workspace that has none open', async () => {
  await receive(40)
  const dispatcher = startDispatcher({ begins: false, limits: { stuckMs: 600_000 } })
  await until('the window is full', () => dispatcher.started.length === 7)
  await delay(300)
  expect(dispatcher.started).toHaveLength(7)
  const [quiet] = await receive(1)
  await until('the place is taken', () => dispatcher.idsOf().at(-1) === quiet)
  expect(dispatcher.started.at(-1)).toMatchObject({ urgency: 'quiet' })
  for (const start of dispatcher.started.slice(0, 2)) await dispatcher.begin(start)
  await until('the next one is started', () => dispatcher.started.length >= 9)
  expect(dispatcher.started.at(-1)).toMatchObject({ urgency: 'busy' })
})

test('a delivery that this worker has begun makes room at once, and a document keeps its place until all of its deliveries have begun', async () => {
  const routes = await createRoutes(database.db, [{ name: 'archive' }, { name: 'mail' }])
  await receive(40, routes)
  // It looks for what others have begun after a minute only.
  const dispatcher = startDispatcher({ begins: false, limits: { busyMs: 60_000, stuckMs: 600_000 } })
  await until('the window is full', () => dispatcher.started.length === 7)
  const { documentId } = dispatcher.started[0]!.input
  dispatcher.noteBegun({ documentId, destinationId: routes.destinations['mail']! })
  await delay(300)
  expect(dispatcher.started).toHaveLength(7)
  dispatcher.noteBegun({ documentId, destinationId: routes.destinations['archive']! })
  await until('the next one is started', () => dispatcher.started.length === 8)
})

test('a document that is due again before the dispatcher has seen that it was begun is begun once more', async () => {
  const { db } = database
  const [id] = await receive(1)
  const dispatcher = startDispatcher({ begins: false, limits: { stuckMs: 600_000 } })
  await until('it is begun', () => dispatcher.started.length === 1)
  // As if another worker had held it at once, and its data had come.
  await db('deliveries').where({ document_id: id }).update({ begin_as: 'delivery', begin_at: db.fn.now() })
  await until('it is begun again', () => dispatcher.started.length === 2)
  expect(dispatcher.started.map(({ kind }) => kind)).toEqual(['startDocument', 'startDelivery'])
})

test('a document of one workspace does not wait for the thousands of another', async () => {
  const flood = await receive(60)
  const [single] = await receive(1)
  const dispatcher = startDispatcher()
  await until('it is begun', () => dispatcher.idsOf().includes(single!))
  expect(dispatcher.idsOf().indexOf(single!)).toBeLessThan(9)
  await untilNothingWaits()
  await dispatcher.close()
  expect(dispatcher.started).toHaveLength(flood.length + 1)
})

test('a release of hundreds does not hold up new documents of the same workspace', async () => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const held = await receive(80, routes)
  await db('deliveries').whereIn('document_id', held).update({ begin_as: 'delivery' })
  const fresh = await receive(8, routes)
  const dispatcher = startDispatcher()
  await untilNothingWaits()
  await dispatcher.close()
  const kinds = dispatcher.started.slice(0, 12).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'startDocument').length).toBeGreaterThanOrEqual(fresh.length - 1)
  expect(kinds).toContain('startDelivery')
  expect(dispatcher.started.find(({ kind }) => kind === 'startDelivery')).toMatchObject({ urgency: 'bulk' })
})

const heldBy = async () => {
  const rows: { holder: string; shares: number }[] = await database
    .db('duties')
    .whereLike('name', 'dispatch-%')
    .where('held_until', '>', database.db.fn.now())
    .groupBy('holder')
    .select('holder')
    .count({ shares: '*' })
  return rows.map(({ shares }) => shares).toSorted((one, other) => one - other)
}

test('several dispatchers have shares of the workspaces, and each document is begun by one of them', async () => {
  const limits = { leaseMs: 60_000, renewMs: 100 }
  const first = startDispatcher({ limits })
  await until('the first one has all', heldBy, (held) => held.join() === '16')
  const second = startDispatcher({ limits })
  const third = startDispatcher({ limits })
  await until('they have divided them', heldBy, (held) => held.join() === '4,6,6')
  const workspaces = 40
  const ids: string[] = []
  for (let count = 0; count < workspaces; count += 1) ids.push(...(await receive(2)))
  await untilNothingWaits()
  expect([first, second, third].flatMap(({ idsOf }) => idsOf()).toSorted()).toEqual(ids.toSorted())
  for (const { started } of [first, second, third]) expect(started.length).toBeGreaterThan(0)
  // Any worker may have the first task of a document.
  const eager = () => first.started.filter((start) => start.kind === 'startDocument' && start.eager)
  expect(eager()).toEqual([])

  await second.close()
  await until('the others have its shares', heldBy, (held) => held.join() === '8,8')
  await third.close()
  await until('the first one has all again', heldBy, (held) => held.join() === '16')
  await receive(2)
  await untilNothingWaits()
  expect(eager()).toHaveLength(2)
})

test('the shares of a dispatcher that is lost are taken over when its lease ends', async () => {
  const { db } = database
  const rows = [...Array.from({ length: dispatchShares }, (_, number) => `dispatch-${number}`), 'dispatch/lost']
  await db('duties').insert(rows.map((name) => ({ name, holder: 'lost', held_until: db.raw(`now() + interval '1 second'`) })))
  const dispatcher = startDispatcher()
  const ids = await receive(20)
  await untilNothingWaits()
  await dispatcher.close()
  expect(dispatcher.idsOf().toSorted()).toEqual(ids.toSorted())
  await db('duties')
    .where({ name: 'dispatch/lost' })
    .update({ held_until: db.raw(`now() - interval '2 hours'`) })
  const another = startDispatcher()
  await until('nothing is left of it', async () => (await db('duties').where({ holder: 'lost' })).length === 0)
  await another.close()
})

test('more dispatchers than shares: those without a share stand by, and the work that is not divided is done once', async () => {
  const { db } = database
  let looks = 0
  const sideWork = [{ everyMs: 1_000, startDue: async () => void (looks += 1) }]
  const dispatchers = Array.from({ length: dispatchShares + 2 }, () => {
    const dispatcher = createDispatcher(
      { db, temporal: { send: async () => {} }, sideWork, config: testConfig(), log: createLog('silent') },
      { renewMs: 100 },
    )
    running.push(dispatcher)
    dispatcher.start()
    return dispatcher
  })
  await until('each share has another holder', heldBy, (held) => held.length === dispatchShares)
  const [before, startedAt] = [looks, performance.now()]
  await delay(3_000)
  // One looks once a second. A dispatcher more would double it.
  expect(looks - before).toBeLessThanOrEqual(Math.ceil((performance.now() - startedAt) / 1_000))
  await Promise.all(dispatchers.map(({ close }) => close()))
  expect(await heldBy()).toEqual([])
})

test('a document that Temporal refuses does not hold up the others, and is tried again', async () => {
  const [refused, ...others] = await receive(10)
  let isRefused = true
  const dispatcher = startDispatcher({
    fails: ({ input }) => (isRefused && input.documentId === refused ? Object.assign(new Error('refused'), { code: 3 }) : undefined),
    limits: { refusedMs: 1_500 },
  })
  await until('the others are begun', () => dispatcher.started.length === others.length)
  isRefused = false
  await untilNothingWaits()
  await dispatcher.close()
  expect(dispatcher.idsOf().at(-1)).toBe(refused)
})

test('nothing is lost while Temporal is unavailable', async () => {
  const ids = await receive(10)
  let isAway = true
  let calls = 0
  const dispatcher = startDispatcher({
    fails: () => {
      calls += 1
      return isAway ? Object.assign(new Error('14 UNAVAILABLE'), { code: 14 }) : undefined
    },
  })
  await until('it has tried', () => calls > 3)
  expect(calls).toBeLessThan(30)
  isAway = false
  await untilNothingWaits()
  await dispatcher.close()
  expect(dispatcher.idsOf().toSorted()).toEqual(ids.toSorted())
})

test('a document that no worker begins does not keep its place for ever: the reconciler asks about it', async () => {
  const { db } = database
  const stuck = await receive(4)
  const dispatcher = startDispatcher({ begins: false, limits: { stuckMs: 300 } })
  await untilNothingWaits()
  await dispatcher.close()
  expect(dispatcher.idsOf().toSorted()).toEqual(stuck.toSorted())
  expect(await db('deliveries').whereIn('document_id', stuck).where({ status: 'pending', begin_at: null })).toHaveLength(4)
  // But not at once: Temporal has just been told.
  await db('deliveries')
    .whereIn('document_id', stuck)
    .update({ next_attempt_at: new Date(0) })
  const overdue = await findOverdue(db, 3_600_000, undefined)
  expect(overdue.filter(({ documentId }) => stuck.includes(documentId))).toEqual([])
})

test('a delivery of such a document that is due again is not left to the reconciler', async () => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }, { name: 'mail' }])
  const [id] = await receive(1, routes)
  const dispatcher = startDispatcher({ begins: false, limits: { stuckMs: 500 } })
  await until('it is begun', () => dispatcher.started.length === 1)
  const delivery = (name: string) => db('deliveries').where({ document_id: id, destination_id: routes.destinations[name]! })
  await delivery('archive').update({ begin_as: 'delivery', begin_at: db.fn.now() })
  await until('it is begun again', () => dispatcher.started.length === 2)
  expect(dispatcher.started[1]).toMatchObject({ kind: 'startDelivery', input: { destination: { name: 'archive' } } })
  expect(await delivery('mail').first('begin_at')).toEqual({ begin_at: null })
})

test('a document is begun with all of its deliveries, and a retry under one request id however often it is sent', async () => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }, { name: 'backup' }])
  await receive(1, routes)
  const [retried] = await receive(1, routes)
  await db('deliveries').where({ document_id: retried }).update({ begin_as: 'retry', status: 'retrying' })
  const first = startDispatcher({ begins: false })
  await until('all are started', () => first.started.length === 3)
  await first.close()
  const second = startDispatcher()
  await untilNothingWaits()
  await second.close()
  const document = first.started.find(({ kind }) => kind === 'startDocument')
  expect(document).toMatchObject({ input: { revision: 1, destinations: [{ name: 'archive' }, { name: 'backup' }] } })
  const requestsOf = (started: Start[]) => started.flatMap((start) => (start.kind === 'retryDelivery' ? [start.requestId] : []))
  expect(requestsOf(first.started)).toHaveLength(2)
  expect(requestsOf(second.started)).toEqual(requestsOf(first.started))
})

test('side work is looked for at its interval, one look at a time, also after a look that fails', async () => {
  const looks: number[] = []
  let isLooking = false
  let overlaps = 0
  const startDue = async () => {
    if (isLooking) overlaps += 1
    isLooking = true
    looks.push(performance.now())
    await delay(30)
    isLooking = false
    // As while the database or Temporal is away.
    if (looks.length === 1) throw new Error('no answer')
  }
  const sideWork = [{ everyMs: 100, startDue }]
  const temporal = { send: async () => {} }
  const dispatcher = createDispatcher({ db: database.db, temporal, sideWork, config: testConfig(), log: createLog('silent') })
  running.push(dispatcher)
  dispatcher.start()
  await until('it has looked five times', () => looks.length >= 5)
  expect(overlaps).toBe(0)
  for (let look = 1; look < looks.length; look += 1) expect(looks[look]! - looks[look - 1]!).toBeGreaterThanOrEqual(100)
})

test('operators see each worker while it runs, and for an hour when it was stopped', async () => {
  const { db } = database
  const worker = { name: '71@host', version: '0.1.0', buildId: 'b1', startedAt: '2026-11-29T09:00:00.000Z' }
  const dispatcher = createDispatcher(
    { db, temporal: { send: async () => {} }, config: testConfig(), log: createLog('silent'), worker },
    { leaseMs: 60_000, renewMs: 100 },
  )
  running.push(dispatcher)
  const started = new Date()
  dispatcher.start()
  const listed = () => listParticipants<typeof worker>(db, dispatchDuty)
  await until('it is listed', async () => (await listed()).length === 1)
  const [seen] = await listed()
  expect(seen).toMatchObject({ about: worker, isPresent: true })
  await until('it is seen again', async () => (await listed())[0]!.lastSeenAt > seen!.lastSeenAt)
  await dispatcher.close()
  const [stopped] = await listed()
  expect(stopped).toMatchObject({ about: worker, isPresent: false })
  expect(stopped!.lastSeenAt.getTime()).toBeGreaterThan(started.getTime() - 60_000)
})
