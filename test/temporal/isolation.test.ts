import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { Worker } from '@temporalio/worker'
import { createActivities } from '../../activities/delivery.ts'
import { findConnector } from '../../src/connectors/index.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createDeliveries } from '../../src/db/deliveries.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { startTemporalDevServer } from '../support/temporal.ts'

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

/** Sends documents to these destinations, a wiring after the other, through a worker of twelve slots. */
const relay = async (plans: Record<string, string>[], story: () => Promise<void>): Promise<void> => {
  const { db } = database
  const taskQueue = randomUUID()
  const config = testConfig({
    DELIVERY_MAX_CONCURRENT_PER_DESTINATION: '4',
    TEMPORAL_MAX_CONCURRENT_ATTEMPTS: String(slots),
    TEMPORAL_TASK_QUEUE: taskQueue,
  })
  const activities = createActivities({
    deliveries: createDeliveries(db),
    contents: { postgres: createPostgresStore(db), s3: undefined },
    findConnector,
    openCredentials: () => ({}),
    downloadUrl: () => undefined,
    keyRing: createKeyRing(config.RELAY_SECRET_KEYS),
    outbound,
    config,
  })
  const temporal = createTemporal(env.client, env.connection, config)
  const worker = await Worker.create({
    connection: env.nativeConnection,
    taskQueue,
    workflowBundle: { codePath: process.env.TEST_WORKFLOW_BUNDLE! },
    activities,
    maxConcurrentActivityTaskExecutions: slots,
    shutdownGraceTime: 100,
  })
  await worker.runUntil(async () => {
    const wirings = await Promise.all(
      plans.map((plan) =>
        createWiring(
          db,
          Object.entries(plan).map(([name, url]) => ({ name, config: { url } })),
        ),
      ),
    )
    begun = Date.now()
    // those that go wrong are first in line
    for (const wiring of wirings) {
      for (let sent = 0; sent < documents; sent += 1) {
        const received = await createReceipts(db, config).receive(await receiptOf(wiring, { data: 'hello' }))
        if (!received.created) throw new Error('not created')
        await Promise.all(received.messages.map(temporal.send))
      }
    }
    await story()
  })
}

let begun = 0
const untilArrived = async (count: number) => {
  while (good.arrivals.length < count) await delay(20)
  return Date.now() - begun
}

test('one destination that hangs and one that fails for ever do not slow the others', async () => {
  let aloneMs = 0
  await relay([{ first: healthy.origin, second: healthy.origin }, { good: good.origin }], async () => {
    aloneMs = await untilArrived(documents)
  })
  good.arrivals.length = 0

  await relay([{ hanging: hangingUrl(), broken: broken.origin }, { good: good.origin }], async () => {
    const besideMs = await untilArrived(documents)
    expect(besideMs).toBeLessThan(2 * aloneMs)
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
})
