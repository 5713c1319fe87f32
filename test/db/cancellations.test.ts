import { cancelBatch } from '../../src/db/cancellations.ts'
import { createReceipts } from '../../src/db/receipts.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createWiring, receiptOf, testConfig } from '../support/factories.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Documents to two destinations, their ids in order of receipt. */
const received = async (count: number) => {
  const { db } = database
  const wiring = await createWiring(db, [{ name: 'a' }, { name: 'b' }])
  const ids: string[] = []
  for (let made = 0; made < count; made += 1) {
    const { messages } = await createReceipts(db, testConfig()).receive(await receiptOf(wiring, { data: 'hello' }))
    ids.push(messages[0]!.documentId)
  }
  const cancel = (name: 'a' | 'b', limit: number) =>
    db.transaction((trx) => cancelBatch(trx, { by: 'destination', id: wiring.destinations[name]! }, limit))
  const set = (index: number, name: 'a' | 'b', status: string) =>
    db('deliveries').where({ document_id: ids[index], destination_id: wiring.destinations[name] }).update({ status })
  const statuses = async (name: 'a' | 'b') => {
    const rows = await db('deliveries').where({ destination_id: wiring.destinations[name] }).orderBy('document_id').select('status')
    return rows.map(({ status }) => status as string)
  }
  return { db, wiring, ids, cancel, set, statuses }
}

describe('a batch of cancellations', () => {
  it('takes the oldest that are open, leaves what has arrived, and tells which workflows are to stop', async () => {
    const { wiring, ids, cancel, set, statuses } = await received(5)
    await set(0, 'a', 'delivered')
    await set(1, 'a', 'held')
    await set(2, 'a', 'failed')
    expect(await cancel('a', 3)).toEqual({
      count: 3,
      messages: [ids[2], ids[3]].map((documentId) => ({ kind: 'stop', documentId, destinationId: wiring.destinations['a'] })),
    })
    expect(await statuses('a')).toEqual(['delivered', 'cancelled', 'cancelled', 'cancelled', 'pending'])
    expect(await statuses('b')).toEqual(Array.from(ids, () => 'pending'))
    expect(await cancel('a', 3)).toMatchObject({ count: 1 })
    expect(await cancel('a', 3)).toEqual({ count: 0, messages: [] })
  })

  it('and another one that meets it in the same documents take turns, and the documents follow', async () => {
    const { db, ids, cancel } = await received(40)
    const all = async (name: 'a' | 'b') => {
      while ((await cancel(name, 10)).count > 0);
    }
    await Promise.all([all('a'), all('b'), all('a'), all('b')])
    expect(await db('documents').whereIn('id', ids).distinct('status')).toEqual([{ status: 'failed' }])
  })
})
