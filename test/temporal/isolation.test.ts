import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { randomUUID } from 'node:crypto'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createReceipts } from '../../src/db/receipts.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { deliveryActivities } from '../support/delivery-activities.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { startTemporalDevServer, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'

// Field lesson R8: one destination hangs, another answers 500 for ever, and the others do not notice.

const documents = 12
const slots = 12
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })

let database: TestDatabase
let env: TestWorkflowEnvironment
let good: HttpTarget
let broken: HttpTarget
let healthy: HttpTarget
let hanging: Server
let held = 0
let heldMost = 0

beforeAll(async () => {
  database = await createTestDatabase()
  env = await startTemporalDevServer()
  good = await startHttpTarget()
  healthy = await startHttpTarget()
  broken = await startHttpTarget()
  broken.answerWith((_, response) => response.writeHead(500).end('no'))
  hanging = createServer((request) => {
    held += 1
    heldMost = Math.max(heldMost, held)
    request.on('close', () => {
      held -= 1
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

/** Sends documents to these destinations, a wiring after the other, through a worker of twelve slots. @returns when the good one had all of its own */
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
  const story = async () => {
    const wirings = await Promise.all(
      plans.map((plan) =>
        createWiring(
          db,
          Object.entries(plan).map(([name, url]) => ({ name, config: { url } })),
        ),
      ),
    )
    const begun = performance.now()
    // those that go wrong are first in line
    for (const wiring of wirings) {
      for (let sent = 0; sent < documents; sent += 1) {
        const received = await createReceipts(db, config).receive(await receiptOf(wiring, { data: 'hello' }))
        if (!received.created) throw new Error('not created')
        await Promise.all(received.messages.map(temporal.send))
      }
    }
    await until('all that is for the good one', () => good.arrivals.length === documents)
    const tookMs = performance.now() - begun
    await check()
    return tookMs
  }
  return withWorker(env, deliveryActivities({ db, config, outbound }), story, {
    taskQueue,
    maxConcurrentActivityTaskExecutions: slots,
    shutdownGraceTime: 100,
  })
}

const alone = () => relay([{ first: healthy.origin, second: healthy.origin }, { good: good.origin }])

/** While the two at fault have everything they can have. */
const beside = () =>
  relay([{ hanging: hangingUrl(), broken: broken.origin }, { good: good.origin }], async () => {
    expect(heldMost).toBeLessThanOrEqual(4)

    const attempts = await database
      .db('deliveries')
      .join('destinations', 'destinations.id', 'deliveries.destination_id')
      .where({ 'destinations.name': 'hanging' })
      .select<{ status: string; attempts: number }[]>('deliveries.status', 'attempts')
    expect(attempts).toHaveLength(documents)
    // four hang and the others wait for a place: none of it has cost an attempt yet
    expect(attempts.every((delivery) => delivery.status === 'pending' && delivery.attempts === 0)).toBe(true)
  })

test('one destination that hangs and one that fails for ever do not slow the others', async () => {
  // what else the machine does comes on top of either time: of three pairs the one that shows least of it counts
  let [aloneMs, besideMs] = [await alone(), await beside()]
  for (let tried = 1; tried < 3 && besideMs >= 2 * aloneMs; tried += 1) {
    await database.db('deliveries').delete()
    heldMost = 0
    ;[aloneMs, besideMs] = [await alone(), await beside()]
  }
  expect(besideMs).toBeLessThan(2 * aloneMs)
})
