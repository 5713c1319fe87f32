import { supersedeDocuments } from '../../src/archive/locks.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { createUpdate } from '../../src/archive/update.ts'
import { dayOf } from '../../src/base/day.ts'
import { newId, timeOfId } from '../../src/base/ids.ts'
import type { Transaction } from '../../src/db/database.ts'
import type { Json } from '../support/client.ts'
import { receivedDocument, testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'
import { arrange, dayMs, db, linesOf, makeManifests } from './scene.ts'

// The day of a document, when clocks and uploads are not as they should be: each document is in one manifest.

type Scene = Awaited<ReturnType<typeof arrange>>

const manifestsOf = async (scene: Scene, docId: string): Promise<string[]> => {
  await using folder = await createFolder()
  const days = await scene.exportAll(folder.path)
  const found = await Promise.all(
    days.map(async (day) =>
      (await linesOf(folder.path, day)).filter(({ type, doc_id: id }) => type === 'document' && id === docId).map(() => day),
    ),
  )
  return found.flat()
}

test.each([
  ['an upload that lasted for two days', -2 * dayMs],
  ['an upload during which the clock was set back by a day', dayMs],
])('%s is in one manifest', async (_, receivedAfterMs) => {
  const scene = await arrange()
  const docId = newId()
  const received = await receivedDocument(scene, { data: 'long' }, docId)
  await createReceive(db, testConfig())({ ...received, receivedAt: new Date(Date.now() + receivedAfterMs) })
  const { id } = await db('documents').where({ doc_id: docId }).first<{ id: string }>('id')
  await makeManifests(3)
  expect(await manifestsOf(scene, docId)).toEqual([dayOf(timeOfId(id))])
})

test('what is received by a clock that is late, when the manifest of the day is made, is in the next one', async () => {
  const scene = await arrange()
  // By this process, it is still the day.
  await makeManifests(1)
  const closed = (await scene.stored()).at(-1)!.day as string
  expect(closed).toBe(dayOf(new Date()))
  const first = await scene.receive()
  const docId = newId()
  await createReceive(db, testConfig())(await receivedDocument(scene, { a: 'one', b: 'two' }, docId))
  const update = { ...(await receivedDocument(scene, { data: 'new' }, first.docId)), whole: true }
  expect(await createUpdate(db, testConfig())(update)).toMatchObject({ found: true })
  await makeManifests(3)
  const next = dayOf(new Date(Date.parse(closed) + dayMs))
  expect(await manifestsOf(scene, first.docId)).toEqual([next, next])
  expect(await manifestsOf(scene, docId)).toEqual([next, next])
})

test('what is received by a clock that is late, on the day before its workspace was created, is in a manifest', async () => {
  const scene = await arrange()
  await db('workspaces')
    .where({ id: scene.workspaceId })
    .update({ created_at: new Date(Date.now() + dayMs) })
  const { docId, day } = await scene.receive()
  await makeManifests(3)
  expect((await scene.stored())[0]).toMatchObject({ day })
  expect(await manifestsOf(scene, docId)).toEqual([day])
})

test('of several receipts of one delivery, the last one at the close is in a manifest', async () => {
  await using folder = await createFolder()
  const scene = await arrange()
  const document = await scene.receive()
  await makeManifests(1)
  const noonAfter = (days: number) => Date.parse(`${document.day}T12:00:00Z`) + days * dayMs
  await scene.deliver(document, { status: 200, etag: '"first"' }, noonAfter(1))
  await db('deliveries').where({ document_id: document.documentId }).update({ status: 'pending' })
  await scene.deliver(document, { status: 200, etag: '"second"' }, noonAfter(2))
  await makeManifests(4)
  await scene.exportAll(folder.path)
  const receiptsAfter = async (days: number) =>
    (await linesOf(folder.path, dayOf(new Date(noonAfter(days))))).flatMap(({ type, receipt }) =>
      type === 'receipt' ? receipt.target.etag : [],
    )
  expect([await receiptsAfter(1), await receiptsAfter(2)]).toEqual([[], ['"second"']])
})

/** Returns the days whose manifests have a receipt of a document, and those that have its replacement or deletion. */
const provenOn = async (scene: Scene, documentId: string) => {
  await using folder = await createFolder()
  const days = await scene.exportAll(folder.path)
  const lines = await Promise.all(
    days.map(async (day) =>
      (await linesOf(folder.path, day)).filter(({ document_id: id }) => id === documentId).map((line) => ({ ...line, day })),
    ),
  )
  const found: Json[] = lines.flat()
  const hasReceipt = ({ receipt, deliveries = [] }: Json) => receipt || deliveries.some((each: Json) => each.receipt)
  return {
    receipts: found.filter(hasReceipt).map(({ day }) => day),
    ends: found.filter((line) => line.superseded_at).map(({ day }) => day),
  }
}

const deletedBy = (trx: Transaction, archiveDocumentId: string) => supersedeDocuments(trx, archiveDocumentId, 'document.deleted')

const archiveDocumentOf = async (documentId: string): Promise<string> =>
  (await db('documents').where({ id: documentId }).first('archive_document_id')).archive_document_id

const dayIn = (days: number) => dayOf(new Date(Date.now() + days * dayMs))

test('a receipt and a deletion that are recorded by a clock that is late, when the manifest of the day is made, are in the next one', async () => {
  const scene = await arrange()
  const documents = [await scene.receive(), await scene.receive()]
  await makeManifests(1)
  for (const document of documents) await scene.deliver(document, { status: 200 })
  const ids = await Promise.all(documents.map(({ documentId }) => archiveDocumentOf(documentId)))
  for (const id of ids) await db.transaction((trx) => deletedBy(trx, id))
  await makeManifests(3)
  for (const { documentId } of documents) expect(await provenOn(scene, documentId)).toEqual({ receipts: [dayIn(1)], ends: [dayIn(1)] })
})

test('what is recorded by a worker whose clock is days late is in one manifest', async () => {
  const scene = await arrange()
  const document = await scene.receive()
  await makeManifests(1)
  await scene.deliver(document, { status: 200 }, Date.now() - 3 * dayMs)
  await makeManifests(2)
  expect(await provenOn(scene, document.documentId)).toMatchObject({ receipts: [dayIn(1)] })
})

test('a transaction that was begun before a day is closed, and ends later, is waited for', async () => {
  const scene = await arrange()
  const [{ documentId }, other] = [await scene.receive(), await scene.receive()]
  await makeManifests(1)
  const id = await archiveDocumentOf(documentId)
  const [written, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const deleting = db.transaction(async (trx) => {
    await deletedBy(trx, id)
    written.resolve()
    await released.promise
  })
  await written.promise
  const made = makeManifests(2)
  await until(
    'the day is being closed',
    () => db('workspaces').where({ id: scene.workspaceId }).first(db.raw('closed_on::text as day')),
    ({ day }) => day === dayIn(1),
  )
  expect(await scene.stored()).toHaveLength(3)
  // By a transaction that sees that the day is closed: it belongs to the next one.
  await scene.deliver(other, { status: 200 })
  released.resolve()
  await Promise.all([deleting, made])
  await makeManifests(3)
  expect(await provenOn(scene, documentId)).toEqual({ receipts: [], ends: [dayIn(1)] })
  expect(await provenOn(scene, other.documentId)).toEqual({ receipts: [dayIn(2)], ends: [] })
})

test('what happens between the end of a day and the making of its manifest is in the manifest of its own day only', async () => {
  const scene = await arrange()
  const document = await scene.receive()
  // Recorded on the next day, before the manifest of the day is made.
  await db('workspaces')
    .where({ id: scene.workspaceId })
    .update({ closed_on: dayIn(0) })
  await scene.deliver(document, { status: 200 })
  const id = await archiveDocumentOf(document.documentId)
  await db.transaction((trx) => deletedBy(trx, id))
  await makeManifests(1)
  expect(await provenOn(scene, document.documentId)).toEqual({ receipts: [], ends: [] })
  await makeManifests(2)
  expect(await provenOn(scene, document.documentId)).toEqual({ receipts: [dayIn(1)], ends: [dayIn(1)] })
})
