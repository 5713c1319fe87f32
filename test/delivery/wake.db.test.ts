import { createWake } from '../../src/delivery/wake.ts'
import type { WakePosition } from '../../workflows/messages.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createRoutes, insertNumberedDocuments } from '../support/factories.ts'

const startedAt = 1_000_000

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Creates a destination with this many deliveries that wait. The ids of their documents are in the order of their numbers. */
const arrange = async (count: number) => {
  const { db } = database
  const routes = await createRoutes(db, [{ name: 'archive' }, { name: 'other' }])
  const destinationId = routes.destinations['archive']!
  const documentId = await insertNumberedDocuments(db, routes, count, { destinations: ['archive', 'other'] })
  await db('destination_gates').insert({ destination_id: destinationId })
  const { wakeNextPage } = createWake(db)
  const numberOf = (id: string) => Number(id.slice(-8))
  return {
    db,
    documentId,
    setCircuit: (circuit: string) => db('destination_gates').where({ destination_id: destinationId }).update({ circuit }),
    /** Changes the deliveries of these documents. */
    change: (numbers: number[], change: object) =>
      db('deliveries').where({ destination_id: destinationId }).whereIn('document_id', numbers.map(documentId)).update(change),
    /** @returns the page, with the numbers of the documents whose deliveries were woken */
    wake: async (position?: WakePosition) => {
      const { messages, ...page } = await wakeNextPage({ destinationId, startedAt, position })
      const numbers = messages.map(({ document }) => numberOf(document.documentId))
      return { ...page, messages, numbers }
    },
    /** Returns the numbers of the woken documents whose messages are committed. */
    committed: async () =>
      (
        await db('outbox')
          .where('key', 'like', `wake/${documentId(1).slice(0, -8)}%`)
          .orderBy('key')
          .pluck<string[]>('key')
      ).map((key) => numberOf(key.split('/')[1]!)),
  }
}

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index)

test('deliveries are woken in the order of their documents, 200 at a time, as many as have been delivered since', async () => {
  const { documentId, change, wake, committed } = await arrange(450)
  const first = await wake()
  expect(first).toMatchObject({ numbers: range(1, 200), isLast: false, position: { after: documentId(200), last: documentId(450) } })
  expect(await committed()).toEqual(range(1, 200))
  // None of them has been delivered.
  const second = await wake(first.position)
  expect(second).toMatchObject({ numbers: [], isLast: false, position: first.position })
  await change(range(11, 130), { status: 'delivered' })
  const third = await wake(second.position)
  expect(third).toMatchObject({ numbers: range(201, 320), isLast: false })
  await change(range(131, 320), { status: 'delivered' })
  const last = await wake(third.position)
  expect(last).toMatchObject({ numbers: range(321, 450), isLast: true })
  expect(last.stopped).toBeUndefined()
})

test('a delivery is not woken if it is under way, in its back-off, held or ended, or has another destination', async () => {
  const { db, change, wake } = await arrange(8)
  await change([1], { attempt_id: 'A1' })
  await change([2], { status: 'retrying', next_attempt_at: db.raw(`now() + interval '1 hour'`) })
  await change([3], { status: 'held' })
  await change([4], { status: 'delivered' })
  await change([5], { status: 'failed' })
  // A retry that is due waits as well.
  await change([6], { status: 'retrying', next_attempt_at: db.raw(`now() - interval '1 hour'`) })
  const { numbers, isLast, messages } = await wake()
  expect({ numbers, isLast }).toEqual({ numbers: [6, 7, 8], isLast: true })
  expect(messages[0]).toMatchObject({ kind: 'wakeDelivery', startedAt, document: { repoId: 'Z1', docId: 'DOC6', compId: 'data' } })
})

test('what arrives during the wake is left alone', async () => {
  const { wake, documentId } = await arrange(250)
  const { position } = await wake({ after: documentId(20), last: documentId(30) })
  expect(position).toEqual({ after: documentId(30), last: documentId(30) })
})

test.each(['open', 'half_open'])('behind a circuit that is %s, a few deliveries are woken', async (circuit) => {
  const { setCircuit, wake } = await arrange(10)
  await setCircuit(circuit)
  expect(await wake()).toMatchObject({ numbers: [1, 2, 3], isLast: true, stopped: 'the circuit is not closed' })
})

test('a destination without deliveries, or without attempts so far, is no problem', async () => {
  const { db, change, wake } = await arrange(1)
  await db('destination_gates').delete()
  expect(await wake()).toMatchObject({ numbers: [1], isLast: true })
  await change([1], { status: 'delivered' })
  expect(await wake()).toMatchObject({ numbers: [], isLast: true, position: { after: '', last: '' } })
})
