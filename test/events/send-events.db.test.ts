import { Webhook } from 'standardwebhooks'
import { destinationsOf } from '../../src/app/use-cases.ts'
import { newId } from '../../src/base/ids.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createInstallation } from '../../src/db/installation.ts'
import type { EventName } from '../../src/domain/events.ts'
import { createEvents } from '../../src/events/event-log.ts'
import { createFindDue, createSendEvents } from '../../src/events/send-events.ts'
import { createEventSubscriptions } from '../../src/events/subscriptions.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createTestDatabase } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { createRoutes, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { saveTarget } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { createList } from './event-list.ts'

const config = testConfig()
const secret = 'whsec_ZmljdGl0aW91cy1zZWNyZXQtb2YtYW4tZXhhbXBsZQ=='
const never = new AbortController().signal
const actor = { type: 'system', userId: null } as const

const { db } = share(await createTestDatabase())
const target = share(await startHttpTarget())
const outbound = share(disposable(createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS }), (each) => each.close()))
const events = createEvents(db)
const list = createList(db, events)
const subscriptions = createEventSubscriptions(db)
const findDue = createFindDue(db)
const sendWith = (secretKeys = config.RELAY_SECRET_KEYS) =>
  createSendEvents({
    db,
    findConnector: createConnectors().find,
    keyRing: createKeyRing(secretKeys),
    outbound,
    installation: createInstallation(db),
    config,
  })
const send = sendWith()

beforeEach(async () => {
  target.arrivals.length = 0
  target.answerWith((_, response) => void response.end())
  await db('event_subscriptions').delete()
  await db('side_queues').delete()
})

const subscribe = async (types: EventName[] = ['document.received'], workspaceSettings: object = {}) => {
  const routes = await createRoutes(db, [{ name: 'inbox' }], { workspaceSettings })
  const { workspaceId } = routes
  const destinationId = routes.destinations['inbox']!
  await saveTarget(db, { workspaceId, id: destinationId }, 'webhook', { url: `${target.origin}/events` }, { secret })
  const wanted = { name: 'Data', events: types, destinationId, isActive: true }
  const { id } = await subscriptions.insert(workspaceId, wanted, actor)
  return {
    ...routes,
    id,
    destinationId,
    /** Adds an event, and waits until nothing hides it any more (event-list.ts). */
    add: async (name: string, type: EventName = 'document.received') => {
      await db.raw('select add_event(?, ?, ?)', [workspaceId, type, JSON.stringify({ name })])
      await list(workspaceId, { after: 'latest', limit: 1 })
    },
    /** Runs the activity. */
    run: () => send({ queueId: id, workspaceId }, never),
    /** Every retry is due. @param run with other settings */
    send: async (run = send) => {
      await db('side_queues').update({ opens_at: db.fn.now() })
      return run({ queueId: id, workspaceId }, never)
    },
    find: () => subscriptions.find(workspaceId, id),
    isDue: async () => (await findDue()).some(({ queueId }) => queueId === id),
  }
}

/** Returns the names that arrived, in order. */
const arrived = () => target.arrivals.map(({ body }) => (JSON.parse(body.toString()) as { data: { name: string } }).data.name)

test('events are sent in their order, each as a signed message of the Standard Webhooks whose id is that of the event', async () => {
  const scene = await subscribe()
  expect(await scene.isDue()).toBe(false)
  for (const name of ['one', 'two', 'three']) await scene.add(name)
  const { id: queueId, workspaceId } = scene
  expect(await findDue()).toEqual([{ queueId, workspaceId, workspace: `acme/${scene.workspaceSlug}`, name: 'Data' }])
  // It is being started.
  expect(await scene.isDue()).toBe(false)
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(arrived()).toEqual(['one', 'two', 'three'])
  const { items } = await events.list(scene.workspaceId, { limit: 10 })
  for (const [index, arrival] of target.arrivals.entries()) {
    const message = new Webhook(secret).verify(arrival.body.toString(), arrival.headers as Record<string, string>)
    const { id, event, createdAt, data } = items[index]!
    expect(message).toEqual({ type: event, timestamp: createdAt.toISOString(), data })
    expect(arrival.headers).toMatchObject({ 'webhook-id': id, 'x-relay-event-type': 'document.received' })
  }
  expect(await scene.find()).toMatchObject({ waitingSince: null, attempts: 0, lastError: null, lastSentAt: expect.any(Date) })
  expect(await scene.isDue()).toBe(false)
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(target.arrivals).toHaveLength(3)
})

test('a receiver that answers 410 stops the subscription, which keeps its place, and gets the event when it is activated again', async () => {
  const scene = await subscribe()
  for (const name of ['one', 'two', 'three']) await scene.add(name)
  let isGone = true
  target.answerWith((_, response) => {
    response.statusCode = isGone && target.arrivals.length > 1 ? 410 : 200
    response.end()
  })
  expect(await scene.send()).toEqual({ status: 'gone' })
  const stopped = await scene.find()
  expect(stopped).toMatchObject({
    isActive: false,
    attempts: 1,
    lastErrorCode: 'http_410',
    nextAttemptAt: null,
    failingSince: expect.any(Date),
    waitingSince: expect.any(Date),
  })
  expect(await scene.isDue()).toBe(false)
  expect(await scene.send()).toEqual({ status: 'gone' })
  expect(arrived()).toEqual(['one', 'two'])
  const entries = await db('audit_logs')
    .where({ subject_id: scene.id, event: 'event_subscription.updated' })
    .select('description', 'actor_type')
  expect(entries).toEqual([
    { description: 'Event subscription Data was stopped, because its receiver answered 410 Gone.', actor_type: 'system' },
  ])
  isGone = false
  await subscriptions.update(scene.workspaceId, scene.id, { isActive: true }, actor)
  expect(await scene.find()).toMatchObject({ isActive: true, attempts: 0, lastError: null, lastErrorCode: null })
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(arrived()).toEqual(['one', 'two', 'two', 'three'])
})

test('a receiver that fails gets the same event again, and later ones wait', async () => {
  const scene = await subscribe()
  for (const name of ['one', 'two', 'three']) await scene.add(name)
  let requests = 0
  target.answerWith((_, response) => {
    requests += 1
    if (requests === 2 || requests === 3) response.statusCode = requests === 2 ? 503 : 401
    response.end()
  })
  expect(await scene.send()).toMatchObject({ status: 'retrying', error: expect.stringContaining('503') })
  const first = await scene.find()
  expect(first).toMatchObject({
    attempts: 1,
    failingSince: expect.any(Date),
    nextAttemptAt: expect.any(Date),
    waitingSince: expect.any(Date),
  })
  expect(first.lastErrorCode).not.toBeNull()
  // An error that a retry of a delivery would not help.
  expect(await scene.send()).toMatchObject({ status: 'retrying' })
  expect(await scene.find()).toMatchObject({ attempts: 2, failingSince: first.failingSince })
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(arrived()).toEqual(['one', 'two', 'two', 'two', 'three'])
  const ids = target.arrivals.map(({ headers }) => headers['webhook-id'])
  expect(new Set(ids).size).toBe(3)
  expect(await scene.find()).toMatchObject({ attempts: 0, failingSince: null, nextAttemptAt: null, lastError: null, waitingSince: null })
})

test('a subscription whose credentials no key opens fails, so that an operator is told', async () => {
  const scene = await subscribe()
  await db('notifications').insert({
    id: newId(),
    workspace_id: scene.workspaceId,
    name: 'On call',
    events: ['event_subscription.failing'],
    quiet_seconds: 0,
    silence_hours: 72,
    destination_id: scene.destinationId,
  })
  await scene.add('one')
  // Simulates the removal of a key that is still needed.
  const sendWithout = sendWith([`other:${Buffer.alloc(32, 7).toString('base64')}`])
  const error = expect.stringContaining('RELAY_SECRET_KEYS')
  expect(await scene.send(sendWithout)).toMatchObject({ status: 'retrying', error })
  expect(await scene.send(sendWithout)).toMatchObject({ status: 'retrying' })
  const failing = { attempts: 2, failingSince: expect.any(Date), lastError: error, lastErrorCode: 'unexpected' }
  expect(await scene.find()).toMatchObject(failing)
  await createCheckIncidents(db, config)(new Date())
  expect(await db('incidents').where({ workspace_id: scene.workspaceId })).toEqual([])
  await db('event_subscriptions')
    .where({ id: scene.id })
    .update({ failing_since: db.raw(`failing_since - interval '16 minutes'`) })
  await createCheckIncidents(db, config)(new Date())
  expect(await db('incidents').where({ workspace_id: scene.workspaceId })).toMatchObject([{ event: 'event_subscription.failing' }])
  // The key is back.
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(await scene.find()).toMatchObject({ attempts: 0, failingSince: null, lastError: null })
})

test("a failure of the relay's own database is none of the receiver", async () => {
  const scene = await subscribe()
  await scene.add('one')
  await db.raw('alter table installation rename to gone')
  try {
    await expect(scene.send(sendWith())).rejects.toThrow(/installation/)
  } finally {
    await db.raw('alter table gone rename to installation')
  }
  expect(target.arrivals).toEqual([])
  expect(await scene.find()).toMatchObject({ attempts: 0, failingSince: null, lastError: null })
})

test('events of other types are passed over, without a workflow', async () => {
  const scene = await subscribe(['document.failed'])
  const before = (await scene.find()).cursor
  await scene.add('other')
  expect(await scene.isDue()).toBe(false)
  const after = await scene.find()
  expect(after.cursor > before).toBe(true)
  expect(after.waitingSince).toBeNull()
  await scene.add('other')
  await scene.add('own', 'document.failed')
  expect(await scene.isDue()).toBe(true)
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(arrived()).toEqual(['own'])
})

test('a replay sends events again with the same ids, also while an attempt waits', async () => {
  const scene = await subscribe()
  for (const name of ['one', 'two']) await scene.add(name)
  await scene.send()
  const { items } = await events.list(scene.workspaceId, { limit: 10 })
  target.answerWith((_, response) => {
    response.statusCode = 500
    response.end()
  })
  await scene.add('three')
  expect(await scene.send()).toMatchObject({ status: 'retrying' })
  target.answerWith((_, response) => void response.end())
  expect(await subscriptions.replay(scene.workspaceId, scene.id, items[0]!.id, actor)).toMatchObject({ attempts: 0, cursor: items[0]!.id })
  expect(await scene.isDue()).toBe(true)
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(arrived()).toEqual(['one', 'two', 'three', 'two', 'three'])
  expect(target.arrivals[3]!.headers['webhook-id']).toBe(items[1]!.id)
})

test('a replay while events are being sent is not overwritten by how far that came', async () => {
  const scene = await subscribe()
  for (const name of ['one', 'two']) await scene.add(name)
  const { items } = await events.list(scene.workspaceId, { limit: 10 })
  const begin = await scene.find()
  let isFirst = true
  target.answerWith((_, response) => {
    const answer = () => void response.end()
    if (!isFirst) return answer()
    isFirst = false
    return void subscriptions.replay(scene.workspaceId, scene.id, begin.cursor, actor).then(answer)
  })
  expect(await scene.send()).toEqual({ status: 'gone' })
  expect((await scene.find()).cursor).toBe(begin.cursor)
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(arrived()).toEqual(['one', 'two', 'one', 'two'])
  expect(items).toHaveLength(2)
})

test('an inactive subscription sends nothing, and goes on where it was', async () => {
  const scene = await subscribe()
  await scene.add('one')
  await subscriptions.update(scene.workspaceId, scene.id, { isActive: false }, actor)
  expect(await scene.isDue()).toBe(false)
  expect(await scene.send()).toEqual({ status: 'gone' })
  await subscriptions.update(scene.workspaceId, scene.id, { isActive: true }, actor)
  expect(await scene.isDue()).toBe(true)
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(arrived()).toEqual(['one'])
})

test('the deletion of its destination stops a subscription', async () => {
  const scene = await subscribe()
  await scene.add('one')
  await destinationsOf(db).delete(scene.workspaceId, scene.destinationId, actor, { limit: 10, keepConnections: false })
  expect(await scene.send()).toEqual({ status: 'gone' })
  expect(await scene.find()).toMatchObject({ isActive: false })
  await expect(subscriptions.update(scene.workspaceId, scene.id, { isActive: true }, actor)).rejects.toMatchObject({
    code: 'validation_failed',
  })
})

test('while the circuit of the destination is open, nothing is sent', async () => {
  const scene = await subscribe()
  await scene.add('one')
  const trialAt = new Date(Date.now() + 3_600_000)
  await db('destination_gates').insert({ destination_id: scene.destinationId, circuit: 'open', trial_at: trialAt })
  expect(await scene.send()).toMatchObject({ status: 'retrying', error: expect.stringContaining('circuit_open') })
  expect(target.arrivals).toEqual([])
})

test('of events that were removed before they could be sent, the rest is sent', async () => {
  const scene = await subscribe()
  for (const name of ['one', 'two']) await scene.add(name)
  const { items } = await events.list(scene.workspaceId, { limit: 1 })
  await db('events').where({ workspace_id: scene.workspaceId }).orderBy('number').limit(1)
  await db.raw(`delete from events where workspace_id = ? and data ->> 'name' = 'one'`, [scene.workspaceId])
  await db('workspaces').where({ id: scene.workspaceId }).update({ events_removed_to: items[0]!.id })
  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(arrived()).toEqual(['two'])
})

test.each([
  ['idle', 200, 1],
  ['retrying', 503, 2],
  ['retrying after an error that no retry of a delivery would help', 401, 2],
])('a run whose answer was lost sends nothing again: %s', async (what, status, requests) => {
  const scene = await subscribe()
  await scene.add('one')
  target.answerWith((__, response) => void response.writeHead(status).end())
  const first = await scene.run()
  expect(first).toMatchObject({ status: what.split(' ')[0] })
  // A run passes over events of other workspaces.
  const recorded = async () => [{ ...(await scene.find()), cursor: undefined }, await db('side_queues')]
  const before = await recorded()
  target.answerWith((__, response) => void response.end())
  expect(await scene.run()).toEqual(first)
  expect(target.arrivals).toHaveLength(1)
  expect(await recorded()).toEqual(before)
  // It is not started while it waits for its time.
  expect(await scene.isDue()).toBe(false)

  expect(await scene.send()).toEqual({ status: 'idle' })
  expect(target.arrivals).toHaveLength(requests)
})
