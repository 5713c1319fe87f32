import { createDeliveries, type AttemptRecord } from '../../src/db/deliveries.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const received = async (...names: string[]) => {
  const { db } = database
  const wiring = await createWiring(
    db,
    names.map((name) => ({ name })),
  )
  const receipt = await createReceipts(db, testConfig()).receive(await receiptOf(wiring, { data: 'hello' }))
  if (!receipt.created) throw new Error('not created')
  const { documentId } = receipt.messages[0]!
  const contentId = (await db('documents').where({ id: documentId }).first('content_id'))!.content_id as string
  const attempt = (name: string, status: AttemptRecord['status'], more: Partial<AttemptRecord> = {}): AttemptRecord => ({
    documentId,
    destinationId: wiring.destinations[name]!,
    contentId,
    overwrites: 0,
    status,
    startedAt: new Date(),
    durationMs: 5,
    outcome: status === 'delivered' ? 'delivered' : 'retryable',
    ...(status !== 'delivered' && { error: { code: 'http_503', message: 'HTTP 503' } }),
    ...more,
  })
  const statusNow = async () => (await db('documents').where({ id: documentId }).first('status'))?.status as string
  return { db, wiring, documentId, attempt, statusNow, deliveries: createDeliveries(db) }
}

describe('a document status', () => {
  it.each([
    [['delivered', 'delivered'], 'delivered'],
    [['delivered', 'pending'], 'pending'],
    [['delivered', 'held'], 'pending'],
    [['retrying', 'pending'], 'retrying'],
    [['retrying', 'delivered'], 'retrying'],
    [['failed', 'retrying'], 'failed'],
    [['failed', 'delivered'], 'failed'],
    [['cancelled', 'delivered'], 'delivered'],
    [['cancelled', 'pending'], 'pending'],
    [['cancelled', 'cancelled'], 'failed'],
  ])('of deliveries %j is %s', async (statuses, expected) => {
    const { db, wiring, documentId, statusNow } = await received('a', 'b')
    for (const [index, name] of ['a', 'b'].entries()) {
      await db('deliveries')
        .where({ document_id: documentId, destination_id: wiring.destinations[name] })
        .update({ status: statuses[index] })
    }
    expect(await statusNow()).toBe(expected)
  })

  it('is right where all deliveries end at the same moment', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `d${index}`)
    for (let round = 0; round < 10; round += 1) {
      const { attempt, deliveries, statusNow } = await received(...names)
      await Promise.all(names.map((name) => deliveries.record(attempt(name, 'delivered'))))
      expect(await statusNow()).toBe('delivered')
    }
  })
})

describe('recording an attempt', () => {
  it('counts it, keeps what the target said, and marks the delivery', async () => {
    const { db, attempt, deliveries, documentId, statusNow } = await received('a')
    expect(await deliveries.record(attempt('a', 'retrying', { answer: { status: 503, body: 'busy' } }))).toMatchObject({
      status: 'retrying',
    })
    expect(await statusNow()).toBe('retrying')
    expect(await deliveries.record(attempt('a', 'delivered', { location: '/inbox/x', bytesSent: 5 }))).toMatchObject({
      status: 'delivered',
    })
    expect(await statusNow()).toBe('delivered')
    expect(await db('deliveries').where({ document_id: documentId })).toMatchObject([
      { status: 'delivered', attempts: 2, location: '/inbox/x', last_error: null, delivered_at: expect.any(Date) },
    ])
    expect(await db('delivery_attempts').where({ document_id: documentId }).orderBy('number')).toMatchObject([
      { number: 1, outcome: 'retryable', error_code: 'http_503', answer: { status: 503, body: 'busy' } },
      { number: 2, outcome: 'delivered', error_code: null, bytes_sent: 5 },
    ])
  })

  it('asks for another one where the document was appended to while it was sent', async () => {
    const { db, attempt, deliveries, documentId } = await received('a')
    expect(await deliveries.record(attempt('a', 'delivered', { contentId: 'what it was before' }))).toMatchObject({ status: 'retrying' })
    expect(await db('deliveries').where({ document_id: documentId })).toMatchObject([
      { status: 'retrying', attempts: 1, delivered_at: null },
    ])
    expect(await deliveries.record(attempt('a', 'delivered'))).toMatchObject({ status: 'delivered' })
  })

  it('changes nothing once the document is delivered', async () => {
    const { db, attempt, deliveries, documentId } = await received('a')
    await deliveries.record(attempt('a', 'delivered'))
    expect(await deliveries.record(attempt('a', 'failed'))).toMatchObject({ status: 'delivered' })
    expect(await db('deliveries').where({ document_id: documentId })).toMatchObject([{ status: 'delivered', attempts: 1 }])
  })

  it('leaves a cancelled delivery cancelled, unless the document has arrived after all', async () => {
    const { attempt, deliveries, documentId, wiring } = await received('a')
    await deliveries.cancel(documentId, wiring.destinations['a']!)
    expect(await deliveries.record(attempt('a', 'retrying'))).toMatchObject({ status: 'cancelled' })
    expect(await deliveries.record(attempt('a', 'delivered'))).toMatchObject({ status: 'delivered' })
  })

  it('tells of the destination: failing after a delivery has failed, connected after a success', async () => {
    const { db, attempt, deliveries, wiring } = await received('a')
    const destination = () => db('destinations').where({ id: wiring.destinations['a'] }).first('status', 'last_error', 'last_delivered_at')
    await deliveries.record(attempt('a', 'retrying'))
    expect(await destination()).toEqual({ status: 'connected', last_error: null, last_delivered_at: null })
    await deliveries.record(attempt('a', 'failed'))
    expect(await destination()).toEqual({ status: 'failing', last_error: 'HTTP 503', last_delivered_at: null })
    await deliveries.record(attempt('a', 'delivered'))
    expect(await destination()).toEqual({ status: 'connected', last_error: null, last_delivered_at: expect.any(Date) })
  })
})
