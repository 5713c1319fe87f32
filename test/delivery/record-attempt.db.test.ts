import { ulid } from 'ulid'
import { destinationsOf } from '../../src/app/use-cases.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { listPartitionEnds } from '../../src/db/partitions.ts'
import { createLoadJob, type DeliveryJob } from '../../src/delivery/delivery-job.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createRecordAttempt, type AttemptEnd } from '../../src/delivery/record-attempt.ts'
import { addSlots } from '../../src/delivery/slots.ts'
import { transition } from '../../src/delivery/transition.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())

/** Receives a document for these destinations. @returns functions that record attempts and read what was recorded */
const receiveDocument = async (...names: string[]) => {
  const { db } = database
  const routes = await createRoutes(
    db,
    names.map((name) => ({ name })),
  )
  const received = await createReceive(db, testConfig())(await receivedDocument(routes, { data: 'hello' }))
  if (!received.created) throw new Error('not created')
  const { documentId } = received.messages[0]!.input
  const refOf = (name: string) => ({ documentId, destinationId: routes.destinations[name]! })
  const record = async (
    name: string,
    operation: AttemptEnd['operation'],
    more: Partial<AttemptEnd> = {},
    loaded: Partial<DeliveryJob> = {},
  ) => {
    const job = (await createLoadJob(db, testConfig())({ ...refOf(name), ...firstRound }))!
    const isDelivered = operation === 'attemptDelivered'
    return createRecordAttempt(db, testConfig())(
      refOf(name),
      { ...job, ...loaded },
      {
        operation,
        outcome: isDelivered ? 'delivered' : 'retryable',
        id: newId(),
        durationMs: 5,
        bytesSent: 5,
        ...(!isDelivered && { error: { code: 'http_503', message: 'HTTP 503' } }),
        ...more,
      },
    )
  }
  const documentStatus = async () => (await db('documents').where({ id: documentId }).first('status'))?.status as string
  return { db, routes, documentId, record, documentStatus, refOf }
}

test('the status of a document is correct if all its deliveries end at the same time', async () => {
  const names = Array.from({ length: 8 }, (_, index) => `d${index}`)
  for (let round = 0; round < 10; round += 1) {
    const { record, documentStatus } = await receiveDocument(...names)
    await Promise.all(names.map((name) => record(name, 'attemptDelivered')))
    expect(await documentStatus()).toBe('delivered')
  }
})

describe('recording an attempt', () => {
  test('counts the attempt, stores the answer of the target and sets the status of the delivery', async () => {
    const { db, record, documentId, documentStatus } = await receiveDocument('a')
    expect(
      await record('a', 'attemptRetryable', {
        error: { code: 'http_503', message: 'HTTP 503', answer: { status: 503, body: 'busy' } },
      }),
    ).toMatchObject({
      status: 'retrying',
    })
    expect(await documentStatus()).toBe('retrying')
    expect(
      await record('a', 'attemptDelivered', {
        durationMs: 250,
        result: {
          path: '/inbox/x',
          bytesSent: 5,
          sha256: 'ab'.repeat(32),
          sizeBytes: 5,
          answer: {
            status: 201,
            etag: '"1"\u0000\ud800',
            version_id: 'v'.repeat(5_000),
            absent: undefined,
            body: 'stored for Acme Ltd',
            note: 'x',
          },
        },
      }),
    ).toMatchObject({
      status: 'delivered',
    })
    expect(await documentStatus()).toBe('delivered')
    expect(await db('deliveries').where({ document_id: documentId })).toMatchObject([
      { status: 'delivered', attempts: 2, location: '/inbox/x', last_error: null, delivered_at: expect.any(Date) },
    ])
    const { id, started_at: startedAt } = await db('delivery_attempts').where({ document_id: documentId, number: 2 }).first()
    expect(await db('deliveries').where({ document_id: documentId }).first('receipt')).toEqual({
      receipt: {
        sha256: 'ab'.repeat(32),
        size_bytes: 5,
        attempt_id: id,
        answered_at: new Date(startedAt.getTime() + 250).toISOString(),
        target: { status: 201, etag: '"1"\ufffd\ufffd', version_id: `${'v'.repeat(997)}...` },
      },
    })
    expect(await db('delivery_attempts').where({ document_id: documentId }).orderBy('number')).toMatchObject([
      { number: 1, outcome: 'retryable', error_code: 'http_503', answer: { status: 503, body: 'busy' } },
      { number: 2, outcome: 'delivered', error_code: null, bytes_sent: 5 },
    ])
  })

  test('is one statement, with its receipt', async () => {
    const { db, record } = await receiveDocument('a')
    const statements: string[] = []
    const note = ({ sql }: { sql: string }) => void statements.push(sql)
    db.on('query', note)
    await record('a', 'attemptDelivered', {
      result: { path: '/inbox/x', bytesSent: 5, sha256: 'ab', sizeBytes: 5, answer: { status: 200 } },
    })
    db.off('query', note)
    // The other one has loaded the job.
    expect(statements).toHaveLength(2)
  })

  test('requires another attempt if the document was appended to during the attempt', async () => {
    const { db, record, documentId } = await receiveDocument('a')
    const { content_id: id } = await db('documents').where({ id: documentId }).first('content_id')
    expect(await record('a', 'attemptDelivered', {}, { content: { id, store: 'postgres', sizeBytes: 4, appends: 0 } })).toMatchObject({
      status: 'retrying',
    })
    expect(await db('deliveries').where({ document_id: documentId })).toMatchObject([
      { status: 'retrying', attempts: 1, delivered_at: null },
    ])
    expect(await record('a', 'attemptDelivered')).toMatchObject({ status: 'delivered' })
  })

  test('changes nothing once the document is delivered', async () => {
    const { db, record, documentId } = await receiveDocument('a')
    await record('a', 'attemptDelivered')
    expect(await record('a', 'attemptFailed')).toMatchObject({ status: 'delivered' })
    expect(await db('deliveries').where({ document_id: documentId })).toMatchObject([{ status: 'delivered', attempts: 1 }])
  })

  test('leaves a cancelled delivery cancelled, unless the attempt delivered the document', async () => {
    const { db, record, refOf } = await receiveDocument('a')
    await transition(db, 'cancel', refOf('a'), 'destination_deleted')
    expect(await record('a', 'attemptRetryable')).toMatchObject({ status: 'cancelled' })
    expect(await record('a', 'attemptDelivered')).toMatchObject({ status: 'delivered' })
  })

  test('sets the destination to failing after a failed delivery and to connected after a success', async () => {
    const { db, record, routes } = await receiveDocument('a')
    const id = routes.destinations['a']!
    await addSlots(db, id, { maxConcurrent: 1, maxPerMinute: 0 })
    const destination = async () => {
      const { status, lastError, lastErrorCode, lastErrorAt, failedAttempts, lastDeliveredAt } = await destinationsOf(db).find(
        routes.workspaceId,
        id,
      )
      return { status, error: [failedAttempts, lastErrorCode, lastError, lastErrorAt], lastDeliveredAt }
    }
    const error = (count: number) => [count, 'http_503', 'HTTP 503', expect.any(Date)]
    const noError = [0, null, null, null]
    const updatedAt = async () => {
      const { updated_at } = await db('destinations').where({ id: routes.destinations['a'] }).first('updated_at')
      await db('destinations')
        .where({ id: routes.destinations['a'] })
        .update({ updated_at: new Date(0) })
      return (updated_at as Date).getTime()
    }
    await updatedAt()
    await record('a', 'attemptRetryable', { signal: 'failed' })
    expect(await destination()).toEqual({ status: 'connected', error: error(1), lastDeliveredAt: null })
    expect(await updatedAt()).toBe(0)
    // The worker was stopped: that says nothing about the destination.
    await record('a', 'attemptRetryable', { outcome: 'interrupted', error: { code: 'interrupted', message: 'stopped' } })
    expect(await destination()).toMatchObject({ error: error(1) })
    await record('a', 'attemptFailed', { signal: 'answered' })
    expect(await updatedAt()).toBeGreaterThan(0)
    expect(await destination()).toEqual({ status: 'failing', error: error(2), lastDeliveredAt: null })
    await record('a', 'attemptDelivered')
    expect(await destination()).toEqual({ status: 'connected', error: noError, lastDeliveredAt: expect.any(Date) })
  })
})

const dayMs = 86_400_000

test.each([
  ['200 days ahead', 200],
  ['three years behind', -1_095],
])('an attempt that was begun while the clock was %s is recorded', async (_, days) => {
  const { db, record, documentStatus, documentId } = await receiveDocument('a')
  const ends = await listPartitionEnds(db)
  const id = ulid(Date.now() + days * dayMs)
  await expect(record('a', 'attemptDelivered', { id })).resolves.toMatchObject({ status: 'delivered', attempts: 1 })
  expect(await documentStatus()).toBe('delivered')
  expect(await db('delivery_attempts').where({ document_id: documentId }).select('id')).toEqual([{ id }])
  // Such a partition does not count as room for the rows of the time before it.
  expect(await listPartitionEnds(db)).toEqual(ends)
})

test('a document that arrives although it was erased during the attempt has the time of its delivery', async () => {
  const { db, routes, refOf, documentId } = await receiveDocument('a')
  const job = (await createLoadJob(db, testConfig())({ ...refOf('a'), ...firstRound }))!
  await createErase(db)(routes.workspaceId, documentId, { type: 'system', userId: null })
  const result = { path: 'Z1/D1/data', bytesSent: 5, sha256: 'ab', sizeBytes: 5 }
  const recorded = createRecordAttempt(db, testConfig())(refOf('a'), job, {
    operation: 'attemptDelivered',
    outcome: 'delivered',
    id: newId(),
    durationMs: 5,
    bytesSent: 5,
    result,
  })
  await expect(recorded).resolves.toMatchObject({ status: 'delivered' })
  expect(await db('deliveries').where({ document_id: documentId }).first('status', 'location', 'delivered_at', 'attempts')).toEqual({
    status: 'delivered',
    location: result.path,
    delivered_at: expect.any(Date),
    attempts: 1,
  })
})
