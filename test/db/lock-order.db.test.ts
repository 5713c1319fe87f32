import { destinationsOf } from '../../src/app/use-cases.ts'
import { createArchiveDocuments } from '../../src/archive/documents.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { AppError } from '../../src/base/errors.ts'
import { newId } from '../../src/base/ids.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { createRetry } from '../../src/delivery/retry.ts'
import { transition } from '../../src/delivery/transition.ts'
import { createConnections } from '../../src/routing/connections.ts'
import { bulkPageOf } from '../support/bulk-page.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

// A deadlock occurs only if two transactions overlap, so each round starts many of them at once.
const rounds = 8
const documents = 12

const config = testConfig()
const actor = { type: 'system', userId: null } as const

const database = share(await createTestDatabase())

/** Receives documents whose deliveries to `a` are failed and whose deliveries to `b` are held. */
const receiveDocuments = async () => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'a' }, { name: 'b' }], { inactive: ['b'] })
  const ids: string[] = []
  for (let index = 0; index < documents; index += 1) {
    const { messages } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
    ids.push(messages[0]!.input.documentId)
  }
  await db('deliveries').whereIn('document_id', ids).where({ destination_id: routes.destinations['a'] }).update({ status: 'failed' })
  return { db, routes, ids, workspaceId: routes.workspaceId, a: routes.destinations['a']!, b: routes.destinations['b']! }
}

const attempt = { operation: 'attemptFailed', outcome: 'permanent', durationMs: 1, bytesSent: 0 } as const

/** Ignores a refusal: another operation that comes first may leave nothing to retry. */
const unlessRefused = (retrying: Promise<unknown>): Promise<unknown> =>
  retrying.catch((thrown: unknown) => {
    if (!(thrown instanceof AppError)) throw thrown
  })

test('concurrent retries, releases, recorded attempts, cancellations and the deletion of a destination do not deadlock', async () => {
  for (let round = 0; round < rounds; round += 1) {
    const { db, routes, ids, workspaceId, a, b } = await receiveDocuments()
    await createConnections(db).update(workspaceId, routes.connections['b']!, { isActive: true }, actor, 10)
    const [retry, recordAttempt, release] = [createRetry(db, config), createRecordAttempt(db, config), createRelease(db)]
    const { bulkRetry } = await createBulkRetries(db).start(
      { id: workspaceId, userSlug: 'acme', workspaceSlug: routes.workspaceSlug },
      'retry',
      {},
      actor,
    )
    const error = { code: 'refused', message: 'refused' }
    const job = (await createLoadJob(db, config)({ documentId: ids[0]!, destinationId: a, ...firstRound }))!
    const toEach = (documentId: string) => [
      unlessRefused(retry.retryDelivery({ workspaceId, documentId, destinationId: b, actor }, () => Promise.resolve(true))),
      recordAttempt({ documentId, destinationId: a }, job, { id: newId(), error, ...attempt }),
      unlessRefused(retry.retryDocument({ workspaceId, documentId, actor })),
      transition(db, 'cancel', { documentId, destinationId: b }),
      transition(db, 'resume', { documentId, destinationId: a }),
    ]
    await Promise.all([
      release.releaseBatch(routes.connections['b']!, documents),
      destinationsOf(db).delete(workspaceId, a, actor, { limit: documents, keepConnections: false }),
      bulkPageOf(db, { config })(bulkRetry.id, documents, () => {}),
      ...ids.toReversed().flatMap(toEach),
    ])
    // `retrying` is allowed: a retry that started before the deletion may end after it. Its first attempt finds the destination deleted.
    expect(await db('deliveries').where({ destination_id: a }).whereIn('status', ['pending', 'held']).select('status')).toEqual([])
  }
})

const failing = testConfig({ DELIVERY_CIRCUIT_FAILURES: '3', DELIVERY_CIRCUIT_PAUSE_MS: '1000000' })

/** Starts attempts at a destination, and lets three of them fail, which opens its circuit. @returns functions that end the others */
const startAttempts = async (count: number) => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'a' }])
  const destinationId = routes.destinations['a']!
  const [load, record] = [createLoadJob(db, failing), createRecordAttempt(db, failing)]
  const start = async () => {
    const { messages } = await createReceive(db, failing)(await receivedDocument(routes, { data: 'hello' }))
    const delivery = { documentId: messages[0]!.input.documentId, destinationId }
    const id = newId()
    const job = (await load({ ...delivery, ...firstRound }, { attemptId: id, hasPlace: true, isCalled: false, continues: undefined }))!
    expect(job.hasSlot).toBe(true)
    return {
      // Each with a text of its own, so that each writes the row of the destination.
      fail: (isFinal: boolean) =>
        record(delivery, job, {
          ...attempt,
          id,
          operation: isFinal ? 'attemptFailed' : 'attemptRetryable',
          outcome: isFinal ? 'permanent' : 'retryable',
          error: { code: 'http_503', message: `503, request ${id}` },
          signal: 'failed',
        }),
      deliver: () => record(delivery, job, { ...attempt, id, operation: 'attemptDelivered', outcome: 'delivered', signal: 'answered' }),
    }
  }
  const started: Awaited<ReturnType<typeof start>>[] = []
  for (let index = 0; index < count + 3; index += 1) started.push(await start())
  for (const each of started.splice(0, 3)) await each.fail(false)
  expect(await db('destination_gates').where({ destination_id: destinationId }).first('circuit')).toEqual({ circuit: 'open' })
  return { db, workspaceId: routes.workspaceId, destinationId, started }
}

test('saving or testing a destination does not deadlock with attempts that end while its circuit is open', async () => {
  for (let round = 0; round < rounds; round += 1) {
    const { db, workspaceId, destinationId, started } = await startAttempts(10)
    const destinations = destinationsOf(db)
    const [delivers, ...fails] = started
    const done = Promise.all([
      ...fails.slice(0, 4).map((each) => each.fail(true)),
      destinations.update(workspaceId, destinationId, () => ({ name: `renamed ${round}` }), actor),
      ...fails.slice(4, 6).map((each) => each.fail(true)),
      destinations.markConnected(workspaceId, destinationId),
      ...fails.slice(6).map((each) => each.fail(false)),
      delivers!.deliver(),
    ])
    await expect(done).resolves.toHaveLength(started.length + 2)
  }
})

test('erasing a document does not deadlock with its deletion by the source system, also if an upstream may have it', async () => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'a' }])
  const { repositoryId, workspaceId } = routes
  await db('repositories')
    .where({ id: repositoryId })
    .update({ upstream: JSON.stringify({ url: 'http://archive.example/' }) })
  const [archive, erase] = [createArchiveDocuments(db), createErase(db)]
  for (let round = 0; round < rounds; round += 1) {
    const received = []
    for (let index = 0; index < documents; index += 1) {
      const docId = newId()
      const { messages } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }, docId))
      received.push({ docId, id: messages[0]!.input.documentId })
    }
    const done = received.flatMap(({ docId, id }) => [
      archive.delete(repositoryId, docId, undefined, 'may have it'),
      erase(workspaceId, id, actor),
    ])
    await expect(Promise.all(done)).resolves.toHaveLength(2 * documents)
  }
})
