import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import type { Database } from '../../src/db/database.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { catchUpMs, renewLease, withdrawAttempt } from '../../src/delivery/slots.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { waitsForLock } from '../support/locks.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

// The statements by which workers share the limits of a destination. Each load stands for the start of an attempt on some worker.

const database = share(await createTestDatabase())

const arrange = async (config: object) => {
  const { db } = database
  const workerConfig = testConfig()
  const recordAttempt = createRecordAttempt(db, workerConfig)
  const routes = await createRoutes(db, [{ name: 'archive', config }])
  const destinationId = routes.destinations['archive']!
  /** Receives a document and starts an attempt. @param on the connection that starts it @returns the attempt, or undefined if it got no slot */
  const start = async (on: Database = db) => {
    const { messages } = await createReceive(db, workerConfig)(await receivedDocument(routes, { data: 'hello' }))
    const delivery = { documentId: messages[0]!.input.documentId, destinationId }
    const attemptId = newId()
    const job = (await createLoadJob(on, workerConfig)(
      { ...delivery, ...firstRound },
      { attemptId, continues: undefined, hasPlace: true, isCalled: true },
    ))!
    expect([job.attemptId, job.hasSlot]).toEqual(job.hasSlot ? [attemptId, true] : [null, false])
    if (!job.hasSlot) return undefined
    return {
      attemptId,
      record: () =>
        recordAttempt(delivery, job, { id: attemptId, operation: 'attemptDelivered', outcome: 'delivered', durationMs: 1, bytesSent: 1 }),
      withdraw: () => withdrawAttempt(db, delivery, attemptId),
    }
  }
  const startMany = async (count: number) =>
    (await Promise.all(Array.from({ length: count }, () => start()))).filter((attempt) => attempt !== undefined)
  const expire = () =>
    db('destination_slots').where({ destination_id: destinationId }).whereNotNull('holder').update({ leased_until: new Date() })
  return { db, routes, destinationId, start, startMany, expire }
}

describe('the slots of a destination', () => {
  test('are leased to as many attempts as its limit, whichever start at the same time, from the first one on', async () => {
    const { startMany } = await arrange({ max_concurrent_deliveries: 5 })
    const first = await startMany(30)
    expect(first).toHaveLength(5)
    expect(await startMany(5)).toEqual([])
    await Promise.all(first.slice(0, 3).map(({ record }) => record()))
    await first[3]!.withdraw()
    expect(await startMany(20)).toHaveLength(4)
  })

  test('follow a changed limit', async () => {
    const { db, destinationId, startMany } = await arrange({ max_concurrent_deliveries: 1 })
    expect(await startMany(3)).toHaveLength(1)
    await db('destinations')
      .where({ id: destinationId })
      .update({ config: JSON.stringify({ max_concurrent_deliveries: 3 }) })
    const more = await startMany(5)
    expect(more).toHaveLength(2)
    await db('destinations')
      .where({ id: destinationId })
      .update({ config: JSON.stringify({ max_concurrent_deliveries: 1 }) })
    for (const { record } of more) await record()
    expect(await startMany(5)).toEqual([])
  })

  test('are the default of the installation, if the destination sets no valid limit', async () => {
    const { startMany } = await arrange({ max_concurrent_deliveries: 'many' })
    expect(await startMany(20)).toHaveLength(testConfig().DELIVERY_MAX_CONCURRENT_PER_DESTINATION)
  })

  test('become free when the lease of a lost worker has run out, unless the attempt has renewed it', async () => {
    const { db, destinationId, start, expire } = await arrange({ max_concurrent_deliveries: 1 })
    const lost = (await start())!
    expect(await start()).toBeUndefined()
    await expire()
    await renewLease(db, destinationId, lost.attemptId, 60_000)
    expect(await start()).toBeUndefined()
    await expire()
    expect(await start()).toBeDefined()
    // The slot belongs to the other attempt now.
    await renewLease(db, destinationId, lost.attemptId, 60_000)
    await lost.record()
    expect(await start()).toBeUndefined()
  })
})

test('an attempt returns its slot, although another one that started at the same time has locked it', async () => {
  const { db, destinationId, start } = await arrange({ max_concurrent_deliveries: 1, max_deliveries_per_minute: 60_000 })
  const slot = () => db('destination_slots').where({ destination_id: destinationId })
  const first = (await start())!
  const lease = (await slot().first('holder', 'leased_until'))!
  await slot().update({ holder: null, leased_until: '-infinity' })

  // The other one finds the slot free, waits for the gate, and locks the slot after the first one has taken it.
  const [gate, other] = [await db.transaction(), await db.transaction()]
  await gate('destination_gates').where({ destination_id: destinationId }).forUpdate().first()
  const refused = start(other)
  await until('the other attempt waits for the gate', () => waitsForLock(db))
  await slot().update(lease)
  await gate.commit()
  expect(await refused).toBeUndefined()
  const free = db('destination_slots').where({ destination_id: destinationId }).forUpdate().skipLocked()
  expect(await free).toEqual([])

  const recorded = first.record()
  await Promise.race([recorded, until('the first attempt waits for its slot', () => waitsForLock(db))])
  await other.commit()
  await recorded
  expect(await slot()).toMatchObject([{ holder: null }])
})

describe('the deliveries per minute of a destination', () => {
  test('are reached and never exceeded by attempts that start at the same time', async () => {
    const perMinute = 600
    const { startMany } = await arrange({ max_deliveries_per_minute: perMinute, max_concurrent_deliveries: 1_000 })
    const startedAt = performance.now()
    let started = 0
    // A burst of five seconds, and as many again at the pace of the limit.
    while (started < 60) {
      started += (await startMany(8)).length
      const allowed = ((performance.now() - startedAt + catchUpMs) / (60_000 + catchUpMs)) * perMinute + 1
      expect(started).toBeLessThanOrEqual(allowed)
    }
  }, 120_000)

  test('do not start an attempt that gets no slot, and no slot is leased without a start', async () => {
    const { db, destinationId, startMany } = await arrange({ max_deliveries_per_minute: 1, max_concurrent_deliveries: 2 })
    const [only, ...none] = await startMany(6)
    expect(none).toEqual([])
    await only!.record()
    expect(await startMany(6)).toEqual([])
    expect(await db('destination_slots').where({ destination_id: destinationId }).whereNotNull('holder')).toEqual([])
  })
})
