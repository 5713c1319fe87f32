import { createReceive } from '../../src/archive/receive.ts'
import { deliveryStatuses, documentStatus, type DeliveryStatus } from '../../src/domain/delivery-states.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())

/** Receives a document for several destinations. @returns a function that sets the statuses of its deliveries and reads its own */
const receiveDocument = async (deliveries: number) => {
  const { db } = database
  const names = Array.from({ length: deliveries }, (_, index) => `destination ${index}`)
  const routes = await createRoutes(
    db,
    names.map((name) => ({ name })),
  )
  const received = await createReceive(db, testConfig())(await receivedDocument(routes, { data: 'hello' }))
  const { documentId } = received.messages[0]!.input
  const destinationIds = names.map((name) => routes.destinations[name]!)
  return async (statuses: readonly DeliveryStatus[]): Promise<string> => {
    await db.raw(
      `
      update deliveries
      set status = changed.status
      from unnest(:destinationIds::text[], :statuses::text[]) as changed (destination_id, status)
      where document_id = :documentId
        and deliveries.destination_id = changed.destination_id
      `,
      { documentId, destinationIds, statuses: [...statuses] },
    )
    return (await db('documents').where({ id: documentId }).first('status')).status
  }
}

/** Returns every multiset of statuses of this size. */
const multisets = (size: number, from: readonly DeliveryStatus[] = deliveryStatuses): DeliveryStatus[][] =>
  size === 0 ? [[]] : from.flatMap((first, index) => multisets(size - 1, from.slice(index)).map((rest) => [first, ...rest]))

test('a document without deliveries is discarded', async () => {
  const { rows } = await database.db.raw(`select derive_document_status('none') as status`)
  expect([rows[0].status, documentStatus([])]).toEqual(['discarded', 'discarded'])
})

test.each([
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
] as [DeliveryStatus[], string][])('a document whose deliveries are %j is %s', async (statuses, expected) => {
  const setStatuses = await receiveDocument(statuses.length)
  expect(await setStatuses(statuses)).toBe(expected)
  expect(documentStatus(statuses)).toBe(expected)
})

test.each([1, 2, 3])('the database and documentStatus() agree on every multiset of %i statuses', async (size) => {
  const setStatuses = await receiveDocument(size)
  const all = multisets(size)
  expect(all).toHaveLength([6, 21, 56][size - 1]!)
  const byDatabase: [DeliveryStatus[], string][] = []
  for (const statuses of all) byDatabase.push([statuses, await setStatuses(statuses)])
  expect(byDatabase).toEqual(all.map((statuses) => [statuses, documentStatus(statuses)]))
})
