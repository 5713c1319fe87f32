import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { createRetry } from '../../src/delivery/retry.ts'
import { transition } from '../../src/delivery/transition.ts'
import { createConnections } from '../../src/workspace/connections.ts'
import { createDestinations } from '../../src/workspace/destinations.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRoutes, firstRound, receivedDocument, testConfig } from '../support/factories.ts'

// A deadlock occurs only if two transactions overlap, so each round starts many of them at once.
const rounds = 8
const documents = 12

const config = testConfig()
const actor = { type: 'system', userId: null } as const

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

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

test('concurrent retries, releases, recorded attempts, cancellations and the deletion of a destination do not deadlock', async () => {
  for (let round = 0; round < rounds; round += 1) {
    const { db, routes, ids, workspaceId, a, b } = await receiveDocuments()
    await createConnections(db).update(workspaceId, routes.connections['b']!, { isActive: true }, actor, 10)
    const [retry, recordAttempt, release] = [createRetry(db, config), createRecordAttempt(db, config), createRelease(db, config)]
    const { bulkRetry } = await createBulkRetries(db, config).start(
      { id: workspaceId, userSlug: 'acme', workspaceSlug: routes.workspaceSlug },
      {},
      actor,
    )
    const error = { code: 'refused', message: 'refused' }
    const job = (await createLoadJob(db, config)({ documentId: ids[0]!, destinationId: a, ...firstRound }))!
    const toEach = (documentId: string) => [
      retry.retryDelivery({ workspaceId, documentId, destinationId: b, actor }, () => Promise.resolve(true)),
      recordAttempt({ documentId, destinationId: a }, job, { id: newId(), error, ...attempt }),
      retry.retryDocument({ workspaceId, documentId, actor }),
      transition(db, 'cancel', { documentId, destinationId: b }),
      transition(db, 'resume', { documentId, destinationId: a }),
    ]
    await Promise.all([
      release.releaseBatch(routes.connections['b']!, documents),
      createDestinations(db).delete(workspaceId, a, actor, documents),
      createBulkRetries(db, config).retryPage(bulkRetry.id, documents, async () => {}),
      ...ids.toReversed().flatMap(toEach),
    ])
    // `retrying` is allowed: a retry that started before the deletion may end after it. Its first attempt finds the destination deleted.
    expect(await db('deliveries').where({ destination_id: a }).whereIn('status', ['pending', 'held']).select('status')).toEqual([])
  }
})
