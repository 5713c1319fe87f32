import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createReceive } from '../../src/archive/receive.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { deliveryActivities } from '../support/delivery-activities.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'

// Field lesson R8: a destination that hangs and one that always answers 500 must not slow down the others.

const documents = 12
const slots = 12
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })

let database: TestDatabase
let env: TestWorkflowEnvironment
let good: HttpTarget
let broken: HttpTarget
let healthy: HttpTarget
let hanging: Server
let openRequests = 0
let maxOpenRequests = 0

beforeAll(async () => {
  database = await createTestDatabase()
  env = await startTemporalServer()
  good = await startHttpTarget()
  healthy = await startHttpTarget()
  broken = await startHttpTarget()
  broken.answerWith((_, response) => response.writeHead(500).end('no'))
  hanging = createServer((request) => {
    openRequests += 1
    maxOpenRequests = Math.max(maxOpenRequests, openRequests)
    request.on('close', () => {
      openRequests -= 1
    })
  }).listen(0, '127.0.0.1')
  await once(hanging, 'listening')
})
afterAll(async () => {
  hanging.closeAllConnections()
  hanging.close()
  await env.teardown()
  await good.stop()
  await healthy.stop()
  await broken.stop()
  await outbound.close()
  await database.drop()
})

const hangingUrl = () => `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/`

/**
 * Relays documents through a worker with twelve slots. Each plan is a repository and its destinations; plans are sent in order.
 * @returns the time until the destination `good` has all its documents, in milliseconds
 */
const relay = async (plans: Record<string, string>[], check: () => Promise<void> = async () => {}): Promise<number> => {
  const { db } = database
  good.arrivals.length = 0
  const taskQueue = randomUUID()
  const config = testConfig({
    DELIVERY_MAX_CONCURRENT_PER_DESTINATION: '4',
    TEMPORAL_MAX_CONCURRENT_ATTEMPTS: String(slots),
    TEMPORAL_TASK_QUEUE: taskQueue,
  })
  const temporal = createTemporal(env.client, env.connection, config)
  const sendAll = async () => {
    const repositories = await Promise.all(
      plans.map((plan) =>
        createRoutes(
          db,
          Object.entries(plan).map(([name, url]) => ({ name, config: { url } })),
        ),
      ),
    )
    const startedAt = performance.now()
    // The documents for faulty destinations are first in the queue.
    for (const routes of repositories) {
      for (let sent = 0; sent < documents; sent += 1) {
        const received = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
        if (!received.created) throw new Error('not created')
        await Promise.all(received.messages.map(temporal.send))
      }
    }
    await until('the good destination has all its documents', () => good.arrivals.length === documents)
    const tookMs = performance.now() - startedAt
    await check()
    return tookMs
  }
  return withWorker(env, deliveryActivities({ db, config, outbound }), sendAll, {
    taskQueue,
    maxConcurrentActivityTaskExecutions: slots,
    shutdownGraceTime: 100,
  })
}

const relayWithoutFaults = () => relay([{ first: healthy.origin, second: healthy.origin }, { good: good.origin }])

/** Relays while the two faulty destinations occupy as many slots as they can. */
const relayWithFaults = () =>
  relay([{ hanging: hangingUrl(), broken: broken.origin }, { good: good.origin }], async () => {
    expect(maxOpenRequests).toBeLessThanOrEqual(4)

    const attempts = await database
      .db('deliveries')
      .join('destinations', 'destinations.id', 'deliveries.destination_id')
      .where({ 'destinations.name': 'hanging' })
      .select<{ status: string; attempts: number }[]>('deliveries.status', 'attempts')
    expect(attempts).toHaveLength(documents)
    // Four deliveries hang and the others wait for a slot. None has used an attempt yet.
    expect(attempts.every((delivery) => delivery.status === 'pending' && delivery.attempts === 0)).toBe(true)
  })

test('a destination that hangs and one that always fails do not slow down the others', async () => {
  // Other load on the machine adds to both times, so one good pair of three is enough.
  let [withoutFaultsMs, withFaultsMs] = [await relayWithoutFaults(), await relayWithFaults()]
  for (let pair = 1; pair < 3 && withFaultsMs >= 2 * withoutFaultsMs; pair += 1) {
    await database.db('deliveries').delete()
    maxOpenRequests = 0
    ;[withoutFaultsMs, withFaultsMs] = [await relayWithoutFaults(), await relayWithFaults()]
  }
  expect(withFaultsMs).toBeLessThan(2 * withoutFaultsMs)
})
