import { setTimeout as delay } from 'node:timers/promises'
import { CancelledFailure } from '@temporalio/common'
import { MockActivityEnvironment } from '@temporalio/testing'
import { DeliveryError, type Connector } from '../../src/connectors/connector.ts'
import { findConnector } from '../../src/connectors/index.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing, credentialsOf } from '../../src/security/seal.ts'
import type { AttemptInput, AttemptOutcome } from '../../workflows/messages.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { deliveryActivities } from '../support/delivery-activities.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'
import { startHttpTarget, type HttpTarget } from '../support/http-target.ts'
import { until } from '../support/until.ts'

const config = testConfig({ DELIVERY_HEARTBEAT_TIMEOUT_MS: '1000' })
const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
const policy = { maxRetries: 2, ttlMs: 3_600_000, initialIntervalMs: 10_000, maxIntervalMs: 60_000 }

let database: TestDatabase
let target: HttpTarget

beforeAll(async () => {
  database = await createTestDatabase()
  target = await startHttpTarget()
})
afterAll(async () => {
  await target.stop()
  await outbound.close()
  await database.drop()
})
beforeEach(() => {
  target.arrivals.length = 0
  target.answerWith((_, response) => response.end('taken'))
})

/** A document that waits for its delivery, and the activity that is to make it. */
const waiting = async (credentials: object = {}, limits: object = {}, find = findConnector) => {
  const { db } = database
  const wiring = await createWiring(db, [{ name: 'target', config: { url: `${target.origin}/in`, ...limits } }])
  const destinationId = wiring.destinations['target']!
  const sealed = keyRing.seal(credentials, credentialsOf(wiring.workspaceId, destinationId))
  await db('destinations').where({ id: destinationId }).update({ credentials_sealed: sealed })
  const received = await createReceipts(db, config).receive(await receiptOf(wiring, { data: 'hello' }))
  if (!received.created) throw new Error('not created')
  const { documentId } = received.messages[0]!

  const { attemptDelivery, recordCancellation } = deliveryActivities({
    db,
    findConnector: find,
    openCredentials: (consignment) =>
      keyRing.open(consignment.destination.credentialsSealed, credentialsOf(consignment.workspaceId, consignment.destination.id)),
    outbound,
    config,
  })
  const input: AttemptInput = { documentId, destinationId, policy, failures: 0, remainingMs: policy.ttlMs, attemptTimeoutMs: 5_000 }
  const attempt = (more: Partial<AttemptInput> = {}, environment = new MockActivityEnvironment()): Promise<AttemptOutcome> =>
    environment.run(attemptDelivery, { ...input, ...more })
  const delivery = () => db('deliveries').where({ document_id: documentId }).first()
  const attempts = () => db('delivery_attempts').where({ document_id: documentId }).orderBy('number')
  return { db, documentId, destinationId, attempt, recordCancellation, delivery, attempts }
}

describe('an attempt', () => {
  it('delivers, and is recorded', async () => {
    const { attempt, delivery, attempts } = await waiting()
    target.answerWith((_, response) => setTimeout(() => response.end('taken'), 250))
    const began = Date.now()
    expect(await attempt()).toEqual({ status: 'delivered' })
    const tookMs = Date.now() - began
    expect(target.arrivals.map(({ body }) => body.toString())).toEqual(['hello'])
    expect(await delivery()).toMatchObject({ status: 'delivered', attempts: 1 })
    expect(await attempts()).toMatchObject([{ number: 1, outcome: 'delivered', bytes_sent: 5, answer: { status: 200, body: 'taken' } }])
    const [{ started_at, duration_ms }] = await attempts()
    expect(started_at.getTime()).toBeGreaterThanOrEqual(began)
    expect(duration_ms).toBeGreaterThanOrEqual(249)
    expect(duration_ms).toBeLessThanOrEqual(tookMs)
  })

  it('run a second time, delivers nothing a second time', async () => {
    const { attempt, attempts } = await waiting()
    await attempt()
    expect(await attempt()).toEqual({ status: 'delivered' })
    expect(target.arrivals).toHaveLength(1)
    expect(await attempts()).toHaveLength(1)
  })

  it('that fails tells when to try again, and what was wrong', async () => {
    target.answerWith((_, response) => {
      response.statusCode = 503
      response.end('busy')
    })
    const { attempt, delivery, attempts } = await waiting()
    const outcome = await attempt()
    expect(outcome).toMatchObject({ status: 'retrying', failures: 1, error: expect.stringContaining('503') })
    expect((outcome as { inMs: number }).inMs).toBeGreaterThanOrEqual(10_000)
    expect((outcome as { inMs: number }).inMs).toBeLessThanOrEqual(11_000)
    expect(await delivery()).toMatchObject({ status: 'retrying', attempts: 1, last_error: expect.stringContaining('503') })
    expect(await attempts()).toMatchObject([{ outcome: 'retryable', answer: { status: 503, body: 'busy' } }])
  })

  it('obeys the Retry-After of its target', async () => {
    target.answerWith((_, response) => {
      response.writeHead(429, { 'retry-after': '30' })
      response.end()
    })
    const { attempt } = await waiting()
    expect((await attempt()) as { inMs: number }).toMatchObject({ status: 'retrying', inMs: expect.any(Number) })
    expect(((await attempt()) as { inMs: number }).inMs).toBeGreaterThanOrEqual(30_000)
  })

  it('is recorded whatever its target says, also what the database cannot hold', async () => {
    const said = 'disk\0full \uD83D'
    const find = (): Connector => ({
      ...findConnector('webhook')!,
      deliver: async () => {
        throw new DeliveryError('disk_full', said, { answer: { status: 507, body: said } })
      },
    })
    const { attempt, attempts } = await waiting({}, {}, find)
    expect(await attempt()).toMatchObject({ status: 'retrying' })
    const shown = 'disk\uFFFDfull \uFFFD'
    expect(await attempts()).toMatchObject([{ outcome: 'retryable', error_message: shown, answer: { status: 507, body: shown } }])
  })

  it('that was the last one fails the delivery', async () => {
    target.answerWith((_, response) => {
      response.statusCode = 500
      response.end()
    })
    const { db, destinationId, attempt, delivery } = await waiting()
    expect(await attempt({ failures: 2 })).toMatchObject({ status: 'failed', error: expect.stringContaining('gave up after 3 attempts') })
    expect(await delivery()).toMatchObject({ status: 'failed' })
    expect(await db('destinations').where({ id: destinationId }).first()).toMatchObject({ status: 'failing' })
  })

  it('fails at once on what no retry can mend', async () => {
    target.answerWith((_, response) => {
      response.statusCode = 410
      response.end()
    })
    const { attempt, attempts } = await waiting()
    expect(await attempt()).toMatchObject({ status: 'failed' })
    expect(await attempts()).toMatchObject([{ outcome: 'permanent' }])
  })

  it('reads the config as it is now', async () => {
    const { db, destinationId, attempt } = await waiting()
    await db('destinations')
      .where({ id: destinationId })
      .update({ config: JSON.stringify({ url: 'http://127.0.0.1:1/' }) })
    expect(await attempt()).toMatchObject({ status: 'retrying' })
    expect(target.arrivals).toEqual([])
  })

  it('records one that was cut off before it, and counts it', async () => {
    const { attempt, attempts } = await waiting()
    const environment = new MockActivityEnvironment({ heartbeatDetails: { startedAt: Date.now() - 5_000, bytesSent: 3 } })
    expect(await attempt({}, environment)).toEqual({ status: 'delivered' })
    expect(await attempts()).toMatchObject([
      { number: 1, outcome: 'interrupted' },
      { number: 2, outcome: 'delivered' },
    ])
  })

  it('gives up where the one that was cut off was the last', async () => {
    const { attempt, delivery } = await waiting()
    const environment = new MockActivityEnvironment({ heartbeatDetails: { startedAt: Date.now() - 5_000, bytesSent: 3 } })
    expect(await attempt({ failures: 2 }, environment)).toMatchObject({ status: 'failed' })
    expect(target.arrivals).toEqual([])
    expect(await delivery()).toMatchObject({ status: 'failed', attempts: 1 })
  })

  it('ends when its time is up, and that is an outcome like another', async () => {
    target.answerWith(() => {})
    const { attempt } = await waiting()
    expect(await attempt({ attemptTimeoutMs: 300 })).toMatchObject({ status: 'retrying', error: expect.stringContaining('300 ms') })
  })

  it('heartbeats while it is under way', async () => {
    target.answerWith((_, response) => void delay(1_200).then(() => response.end()))
    const { attempt } = await waiting()
    const environment = new MockActivityEnvironment()
    const beats: unknown[] = []
    environment.on('heartbeat', (details: unknown) => beats.push(details))
    await attempt({}, environment)
    expect(beats).toContainEqual({ startedAt: expect.any(Number), bytesSent: 5 })
  })

  it('stops when it is cancelled, and leaves the record to who cancelled it', async () => {
    target.answerWith(() => {})
    const { attempt, attempts } = await waiting()
    const environment = new MockActivityEnvironment()
    const stopped = attempt({}, environment)
    await until('a request', () => target.arrivals.length > 0)
    environment.cancel()
    await expect(stopped).rejects.toThrow(CancelledFailure)
    expect(await attempts()).toEqual([])
  })

  it('goes nowhere once its destination is deleted', async () => {
    const { db, destinationId, attempt, delivery } = await waiting()
    await db('destinations').where({ id: destinationId }).update({ deleted_at: db.fn.now() })
    expect(await attempt()).toEqual({ status: 'cancelled' })
    expect(await attempt()).toEqual({ status: 'cancelled' })
    expect(target.arrivals).toEqual([])
    expect(await delivery()).toMatchObject({ status: 'cancelled' })
  })

  it('tells of credentials that do not open without showing them', async () => {
    const { db, destinationId, attempt, delivery } = await waiting({ bearer_token: 'canary-token' })
    const foreign = createKeyRing([`other:${Buffer.alloc(32, 9).toString('base64')}`])
    await db('destinations')
      .where({ id: destinationId })
      .update({ credentials_sealed: foreign.seal({ bearer_token: 'canary-token' }, ['x']) })
    expect(await attempt()).toMatchObject({ status: 'retrying', error: expect.stringContaining('RELAY_SECRET_KEYS') })
    expect(JSON.stringify(await delivery())).not.toContain('canary')
  })
})

describe('what a connector saves of an upload', () => {
  it('is handed to the next run, and lies sealed in the heartbeat between them', async () => {
    const saved: unknown[] = []
    const uploading: Connector = {
      ...findConnector('webhook')!,
      deliver: async (parcel, _target, context) => {
        saved.push(context.saved)
        context.save({ uploadUrl: 'https://upload.example/?token=canary' })
        return { path: 'there', bytesSent: parcel.sizeBytes }
      },
    }
    const { db, attempt, documentId } = await waiting({}, {}, () => uploading)
    const first = new MockActivityEnvironment()
    const beats: unknown[] = []
    first.on('heartbeat', (details: unknown) => beats.push(details))
    await attempt({}, first)
    expect(beats.length).toBeGreaterThan(0)
    expect(JSON.stringify(beats)).not.toContain('canary')

    // the worker was lost with this heartbeat as its last, before anything was recorded
    await db('deliveries').where({ document_id: documentId }).update({ status: 'pending' })
    await attempt({}, new MockActivityEnvironment({ heartbeatDetails: beats[0] }))
    // sealed for this delivery alone, and of no use to another, or once its key is gone
    const another = await waiting({}, {}, () => uploading)
    await another.attempt({}, new MockActivityEnvironment({ heartbeatDetails: beats[0] }))
    expect(saved).toEqual([undefined, { uploadUrl: 'https://upload.example/?token=canary' }, undefined])
  })
})

describe('an attempt at a busy destination', () => {
  it('waits without touching target, budget or record, and is made once there is a place', async () => {
    const { attempt, delivery, attempts } = await waiting({}, { max_concurrent_deliveries: 1 })
    let answer = () => {}
    target.answerWith((_, response) => {
      answer = () => response.end('taken')
    })
    const first = attempt()
    await until('a request', () => target.arrivals.length > 0)

    expect(await attempt()).toEqual({ status: 'waiting', inMs: expect.any(Number) })
    expect(target.arrivals).toHaveLength(1)
    expect(await delivery()).toMatchObject({ status: 'pending', attempts: 0 })
    expect(await attempts()).toEqual([])

    answer()
    expect(await first).toEqual({ status: 'delivered' })
    expect(await attempt({ waits: 1 })).toEqual({ status: 'delivered' })
  })

  it('waits as well where its destination takes so many a minute, by its own config', async () => {
    const { attempt, attempts } = await waiting({}, { max_deliveries_per_minute: 1 })
    expect(await attempt()).toEqual({ status: 'delivered' })
    // else it would be told that this is delivered
    expect(await attempt()).toEqual({ status: 'waiting', inMs: expect.any(Number) })
    expect(target.arrivals).toHaveLength(1)
    expect(await attempts()).toHaveLength(1)
  })

  it('goes on at once where it takes the place of a run that was cut off', async () => {
    const { attempt, attempts } = await waiting({}, { max_concurrent_deliveries: 1 })
    let answer = () => {}
    target.answerWith((_, response) => {
      answer = () => response.end('taken')
    })
    const first = attempt()
    await until('a request', () => target.arrivals.length > 0)
    target.answerWith((_, response) => response.end('taken'))
    const environment = new MockActivityEnvironment({ heartbeatDetails: { startedAt: Date.now() - 5_000, bytesSent: 3 } })
    expect(await attempt({}, environment)).toEqual({ status: 'delivered' })
    answer()
    await first
    expect(await attempts()).toMatchObject([{ outcome: 'interrupted' }, { outcome: 'delivered' }])
  })
})

describe('recording a cancellation', () => {
  it('ends the delivery, however often it runs, unless it has arrived', async () => {
    const { documentId, destinationId, recordCancellation, delivery } = await waiting()
    const environment = new MockActivityEnvironment()
    await environment.run(recordCancellation, { documentId, destinationId })
    await environment.run(recordCancellation, { documentId, destinationId })
    expect(await delivery()).toMatchObject({ status: 'cancelled' })

    const arrived = await waiting()
    await arrived.attempt()
    await environment.run(arrived.recordCancellation, arrived)
    expect(await arrived.delivery()).toMatchObject({ status: 'delivered' })
  })
})
