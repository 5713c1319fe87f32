import { createReceive } from '../../src/archive/receive.ts'
import { createUpdate } from '../../src/archive/update.ts'
import { newId, timeOfId } from '../../src/base/ids.ts'
import { dayOf } from '../../src/proof/manifest-rows.ts'
import { receivedDocument, testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
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
