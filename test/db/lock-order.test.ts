import { createBulkRetries } from '../../src/db/bulk-retries.ts'
import { createConnections } from '../../src/db/connections.ts'
import { createDeliveries } from '../../src/db/deliveries.ts'
import { createDestinations } from '../../src/db/destinations.ts'
import { createHeld } from '../../src/db/held.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createRetries } from '../../src/db/retries.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'

// A deadlock costs a second and an error, and shows only where two meet: they meet often here.
const rounds = 8
const documents = 12

const config = testConfig()
const actor = { type: 'api_key', userId: null } as const

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Documents whose deliveries to `a` have failed, while those to `b` are held. */
const failed = async () => {
  const { db } = database
  const wiring = await createWiring(db, [{ name: 'a' }, { name: 'b' }], { inactive: ['b'] })
  const ids: string[] = []
  for (let made = 0; made < documents; made += 1) {
    const { messages } = await createReceipts(db, config).receive(await receiptOf(wiring, { data: 'hello' }))
    ids.push(messages[0]!.documentId)
  }
  await db('deliveries').whereIn('document_id', ids).where({ destination_id: wiring.destinations['a'] }).update({ status: 'failed' })
  return { db, wiring, ids, workspaceId: wiring.workspaceId, a: wiring.destinations['a']!, b: wiring.destinations['b']! }
}

const attempt = { contentId: 'none', overwrites: 0, startedAt: new Date(), durationMs: 1, status: 'failed', outcome: 'permanent' } as const

test('retries, releases, attempts that end, operators who cancel and the deletion of their destination never wait for each other in turn', async () => {
  for (let round = 0; round < rounds; round += 1) {
    const { db, wiring, ids, workspaceId, a, b } = await failed()
    await createConnections(db).update(workspaceId, wiring.connections['b']!, { isActive: true }, actor)
    const [retries, deliveries, held] = [createRetries(db, config), createDeliveries(db), createHeld(db, config)]
    const begun = await createBulkRetries(db, config).begin(
      { id: workspaceId, userSlug: 'acme', workspaceSlug: wiring.workspaceSlug },
      {},
      actor,
    )
    const error = { code: 'refused', message: 'refused' }
    const toEach = (documentId: string) => [
      retries.retryDelivery({ workspaceId, documentId, destinationId: b, actor }, { stranded: false }),
      deliveries.record({ documentId, destinationId: a, error, ...attempt }),
      retries.retryDocument({ workspaceId, documentId, actor }),
      deliveries.cancel(documentId, b),
      deliveries.reopen(documentId, a),
    ]
    await Promise.all([
      held.releaseBatch(wiring.connections['b']!, documents),
      createDestinations(db).remove(workspaceId, a, actor, documents),
      createBulkRetries(db, config).retryPage(begun.bulkRetry.id, documents, async () => {}),
      ...ids.toReversed().flatMap(toEach),
    ])
    // one that read the wiring before may have begun a round after: its first attempt finds the destination deleted
    expect(await db('deliveries').where({ destination_id: a }).whereIn('status', ['pending', 'held']).select('status')).toEqual([])
  }
})
