import { createReceive } from '../../src/archive/receive.ts'
import { cancelBatch } from '../../src/delivery/cancel.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRoutes, receivedDocument, testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())

/** Receives documents for two destinations. Their ids are in order of receipt. */
const receiveDocuments = async (count: number) => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'a' }, { name: 'b' }])
  const ids: string[] = []
  for (let index = 0; index < count; index += 1) {
    const { messages } = await createReceive(db, testConfig())(await receivedDocument(routes, { data: 'hello' }))
    ids.push(messages[0]!.input.documentId)
  }
  const cancel = (name: 'a' | 'b', limit: number) =>
    db.transaction((trx) => cancelBatch(trx, { by: 'destination', id: routes.destinations[name]! }, limit))
  const set = (index: number, name: 'a' | 'b', status: string) =>
    db('deliveries').where({ document_id: ids[index], destination_id: routes.destinations[name] }).update({ status })
  const statuses = async (name: 'a' | 'b') => {
    const rows = await db('deliveries').where({ destination_id: routes.destinations[name] }).orderBy('document_id').select('status')
    return rows.map(({ status }) => status as string)
  }
  return { db, routes, ids, cancel, set, statuses }
}

describe('a batch of cancellations', () => {
  test('cancels the oldest open deliveries, keeps delivered ones, and returns the messages that cancel their workflows', async () => {
    const { routes, ids, cancel, set, statuses } = await receiveDocuments(5)
    await set(0, 'a', 'delivered')
    await set(1, 'a', 'held')
    await set(2, 'a', 'failed')
    expect(await cancel('a', 3)).toEqual({
      count: 3,
      messages: [ids[2], ids[3]].map((documentId) => ({
        kind: 'cancelDelivery',
        document: {
          documentId,
          workspace: `acme/${routes.workspaceSlug}`,
          repoId: 'Z1',
          docId: expect.any(String),
          compId: 'data',
        },
        destinationId: routes.destinations['a'],
        requestId: expect.any(String),
      })),
    })
    expect(await statuses('a')).toEqual(['delivered', 'cancelled', 'cancelled', 'cancelled', 'pending'])
    expect(await statuses('b')).toEqual(Array.from(ids, () => 'pending'))
    expect(await cancel('a', 3)).toMatchObject({ count: 1 })
    expect(await cancel('a', 3)).toEqual({ count: 0, messages: [] })
  })

  test('does not deadlock with concurrent batches on the same documents, which end as failed', async () => {
    const { db, ids, cancel } = await receiveDocuments(40)
    const cancelAll = async (name: 'a' | 'b') => {
      while ((await cancel(name, 10)).count > 0);
    }
    await Promise.all([cancelAll('a'), cancelAll('b'), cancelAll('a'), cancelAll('b')])
    expect(await db('documents').whereIn('id', ids).distinct('status')).toEqual([{ status: 'failed' }])
  })
})
