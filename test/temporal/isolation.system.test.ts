import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createReceive } from '../../src/archive/receive.ts'
import { createLog } from '../../src/base/log.ts'
import type { Config } from '../../src/config/config.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { createWakeNext } from '../../src/delivery/wake.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createTemporal, type Temporal } from '../../src/temporal/client.ts'
import { createTestDatabase } from '../support/database.ts'
import { deliveryActivities } from '../support/delivery-activities.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'

// Field lesson R8: a destination that hangs and one that always answers 500 must not slow down the others: each destination has slots of its own.

const perDestination = 4
const documents = 3 * perDestination
const slots = 6 * perDestination
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })

let openRequests = 0
let maxOpenRequests = 0

const database = await createTestDatabase()
const env = await startTemporalServer()
const good = await startHttpTarget()
const broken = await startHttpTarget()
broken.answerWith((_, response) => response.writeHead(500).end('no'))
const hanging = createServer((request) => {
  openRequests += 1
  maxOpenRequests = Math.max(maxOpenRequests, openRequests)
  request.on('close', () => {
    openRequests -= 1
  })
}).listen(0, '127.0.0.1')
await once(hanging, 'listening')
afterAll(async () => {
  hanging.closeAllConnections()
  hanging.close()
  await env.teardown()
  await good.stop()
  await broken.stop()
  await outbound.close()
  await database.drop()
})

const hangingUrl = () => `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/`

/** Runs a worker with this many places. */
const withPlaces = async (places: number, work: (parts: { config: Config; send: Temporal['send'] }) => Promise<void>) => {
  const { db } = database
  const taskQueue = randomUUID()
  const config = testConfig({
    DELIVERY_MAX_CONCURRENT_PER_DESTINATION: String(perDestination),
    TEMPORAL_MAX_CONCURRENT_ATTEMPTS: String(places),
    TEMPORAL_TASK_QUEUE: taskQueue,
  })
  const { send } = createTemporal(env.client, env.connection, config)
  const wakeNext = createWakeNext(db, config, (messages) => void Promise.all(messages.map(send)), createLog('silent'))
  const activities = deliveryActivities({ db, config, outbound, wakeNext, recordAttempt: createRecordAttempt(db, config, wakeNext) })
  await withWorker(env, activities, () => work({ config, send }), {
    taskQueue,
    maxConcurrentActivityTaskExecutions: places,
    shutdownGraceTime: 100,
  })
}

test('a destination that hangs and one that always fails leave another destination all of its slots', async () => {
  const { db } = database
  const receive = createReceive(db, testConfig())
  const routeTo = (plan: Record<string, string>) =>
    createRoutes(
      db,
      Object.entries(plan).map(([name, url]) => ({ name, config: { url } })),
    )
  const sendAll = async (routes: Awaited<ReturnType<typeof routeTo>>, send: Temporal['send']) => {
    for (let sent = 0; sent < documents; sent += 1) {
      const received = await receive(await receivedDocument(routes, { data: 'hello' }))
      if (!received.created) throw new Error('not created')
      await Promise.all(received.messages.map(send))
    }
  }
  // Answers as many requests at a time as a destination may have, and holds each of them until they are complete: with one slot less, the
  // destination would never have all its documents.
  const waiting: (() => void)[] = []
  good.answerWith((_, response) => {
    waiting.push(() => response.end())
    if (waiting.length === perDestination) for (const answer of waiting.splice(0)) answer()
  })

  await withPlaces(slots, async ({ send }) => {
    // The documents for faulty destinations are first in the queue.
    await sendAll(await routeTo({ hanging: hangingUrl(), broken: broken.origin }), send)
    await until('the hanging destination has all its slots', () => openRequests === perDestination)
    await until('the broken destination fails', () => broken.arrivals.length > 0)
    await sendAll(await routeTo({ good: good.origin }), send)
    await until('the good destination has all its documents', () => good.arrivals.length === documents)
    expect(openRequests).toBe(perDestination)
    expect(maxOpenRequests).toBe(perDestination)

    const attempts = await db('deliveries')
      .join('destinations', 'destinations.id', 'deliveries.destination_id')
      .where({ 'destinations.name': 'hanging' })
      .select<{ status: string; attempts: number }[]>('deliveries.status', 'attempts')
    expect(attempts).toHaveLength(documents)
    // Four deliveries hang and the others wait for a slot. None has used an attempt yet.
    expect(attempts.every((delivery) => delivery.status === 'pending' && delivery.attempts === 0)).toBe(true)
  })
})

test('twelve targets of one workspace that hang leave the places of a worker to another workspace', async () => {
  const { db } = database
  const receive = createReceive(db, testConfig())
  const sendTo = async (routes: Awaited<ReturnType<typeof createRoutes>>, send: Temporal['send']) => {
    const { messages } = await receive(await receivedDocument(routes, { data: 'hello' }))
    await Promise.all(messages.map(send))
  }
  const before = good.arrivals.length
  good.answerWith((_, response) => response.end())
  await withPlaces(20, async ({ send }) => {
    const bad = await createRoutes(
      db,
      Array.from({ length: 12 }, (_, index) => ({ name: `tarpit ${index}`, config: { url: hangingUrl() } })),
    )
    const open = openRequests
    for (let sent = 0; sent < perDestination; sent += 1) await sendTo(bad, send)
    await until('the workspace has its half of the places', () => openRequests - open === 10)
    const healthy = await createRoutes(db, [{ name: 'good', config: { url: good.origin } }])
    for (let sent = 0; sent < documents; sent += 1) await sendTo(healthy, send)
    // The first idle timeout of a target that hangs comes after a minute.
    await until('the other workspace has its documents', () => good.arrivals.length - before === documents, Boolean, 50_000)
    expect(openRequests - open).toBe(10)
  })
})
