import { randomBytes } from 'node:crypto'
import { createDeliveries } from '../../src/db/deliveries.ts'
import { createOutbox } from '../../src/db/outbox.ts'
import { documentWorkflowId } from '../../workflows/messages.ts'
import { part } from '../support/source-system.ts'
import { startScene, type Scene, type SceneWorkspace } from './receiver.ts'

const quietMs = 60_000

let scene: Scene
let workspace: SceneWorkspace

beforeAll(async () => {
  scene = await startScene({ RELAY_APPEND_QUIET_MS: String(quietMs) })
  workspace = await scene.workspace([{ name: 'archive' }, { name: 'backup' }])
})
afterAll(() => scene.stop())

const documentOf = async (docId: string) => (await scene.db('documents').where({ doc_id: docId, superseded_at: null }).first())!
const deliveriesOf = async (docId: string) =>
  scene
    .db('deliveries')
    .where({ document_id: (await documentOf(docId)).id })
    .orderBy('destination_id')
const messagesOf = async (docId: string) =>
  scene
    .db('outbox')
    .whereRaw(`message ->> 'documentId' = ?`, [(await documentOf(docId)).id])
    .orderBy('key')

/** As the worker does after a delivery. */
const record = async (docId: string, ...names: string[]) => {
  const { id, content_id } = await documentOf(docId)
  for (const name of names) {
    await createDeliveries(scene.db).record({
      documentId: id,
      destinationId: workspace.destinations[name]!,
      contentId: content_id,
      overwrites: 0,
      status: 'delivered',
      outcome: 'delivered',
      startedAt: new Date(),
      durationMs: 1,
    })
  }
}

/** And the launcher after it has started the workflow. */
const deliver = async (docId: string, ...names: string[]) => {
  await record(docId, ...names)
  await scene
    .db('outbox')
    .whereRaw(`message ->> 'documentId' = ?`, [(await documentOf(docId)).id])
    .delete()
}

describe('append', () => {
  it('adds to a component in its place, again and again', async () => {
    await workspace.source.createParts('D1', [part('data', 'x'), part('note', 'abc', 'application/x-note')])
    const before = await scene.db('documents').where({ doc_id: 'D1', comp_id: 'note' }).first()
    expect(await workspace.source.append('D1', ' def', 'note')).toMatchObject({ status: 200, headers: { 'content-length': '0' } })
    expect(await workspace.source.append('D1', '!', 'NOTE')).toMatchObject({ status: 200 })
    const { body, headers } = await workspace.source.get('D1', '&compId=note')
    expect(String(body)).toBe('abc def!')
    expect(headers).toMatchObject({ 'content-type': 'application/x-note', 'x-content-length': '8' })
    expect(String((await workspace.source.get('D1')).body)).toBe('x')

    const after = await scene.db('documents').where({ doc_id: 'D1', comp_id: 'note' })
    expect(after).toMatchObject([{ id: before.id, received_at: before.received_at, size_bytes: 8, superseded_at: null }])
    expect(after[0].modified_at.getTime()).toBeGreaterThan(before.modified_at.getTime())
  })

  it('streams many megabytes onto many megabytes', async () => {
    const [old, added] = [randomBytes(3_000_000), randomBytes(2_000_000)]
    await workspace.source.create('D2', old)
    expect((await workspace.source.append('D2', added)).status).toBe(200)
    expect((await workspace.source.get('D2')).body.equals(Buffer.concat([old, added]))).toBe(true)
  })

  it('of nothing changes nothing but the day', async () => {
    await workspace.source.create('D3', 'same')
    expect((await workspace.source.append('D3', '')).status).toBe(200)
    expect(String((await workspace.source.get('D3')).body)).toBe('same')
  })

  it('is 404 for a document or a component that is not there', async () => {
    await workspace.source.create('D4', 'x')
    expect(await workspace.source.append('NOWHERE', 'x')).toMatchObject({
      status: 404,
      headers: { 'x-errordescription': expect.stringMatching(/^document_not_found/) },
    })
    expect(await workspace.source.append('D4', 'x', 'note')).toMatchObject({
      status: 404,
      headers: { 'x-errordescription': expect.stringMatching(/^component_not_found/) },
    })
  })

  it('loses no byte where many come at once', async () => {
    await workspace.source.create('D5', '')
    const letters = Array.from('abcdefghijkl')
    const answers = await Promise.all(letters.map((letter) => workspace.source.append('D5', letter.repeat(1_000))))
    expect(answers.map(({ status }) => status)).toEqual(letters.map(() => 200))
    const runs = String((await workspace.source.get('D5')).body).match(/(.)\1{999}/g)
    expect(runs?.map((run) => run[0]).toSorted()).toEqual(letters)
  })

  it('gives the bytes before to the sweep, and leaves nothing of an append that fails', async () => {
    await workspace.source.create('D6', 'one')
    const { content_id: old } = await documentOf('D6')
    await workspace.source.append('D6', 'two')
    expect(await scene.db('contents').where({ id: old })).toMatchObject([{ owned_at: null }])

    const count = async () => Number((await scene.db('contents').count({ total: '*' }))[0]!['total'])
    const before = await count()
    expect((await workspace.source.append('D6', randomBytes(600_000), 'missing')).status).toBe(404)
    expect(await count()).toBe(before)
  })
})

describe('what was appended to', () => {
  it('goes again to every destination that has it, once it has been quiet', async () => {
    await workspace.source.create('R1', 'one')
    await deliver('R1', 'archive', 'backup')
    await workspace.source.append('R1', 'two')
    expect(await documentOf('R1')).toMatchObject({ status: 'pending', revision: 2 })
    expect(await deliveriesOf('R1')).toMatchObject([
      { status: 'pending', attempts: 1, delivered_at: null },
      { status: 'pending', attempts: 1, delivered_at: null },
    ])
    const [message] = await messagesOf('R1')
    expect(message).toMatchObject({ message: { revision: 2, destinations: [{ name: 'archive' }, { name: 'backup' }] } })
    expect(message.due_at.getTime() - Date.now()).toBeGreaterThan(quietMs - 10_000)
    expect(await createOutbox(scene.db).findDue(0, 10_000)).not.toContainEqual(message.message)
  })

  it('goes once for appends that follow each other, as long after the last one', async () => {
    await workspace.source.create('R2', 'one')
    await deliver('R2', 'archive')
    await workspace.source.append('R2', 'two')
    const [first] = await messagesOf('R2')
    await record('R2', 'backup')
    await workspace.source.append('R2', 'three')
    const messages = await messagesOf('R2')
    expect(messages).toHaveLength(1)
    expect(messages[0].due_at.getTime()).toBeGreaterThan(first.due_at.getTime())
    expect(messages[0].message.destinations.map(({ name }: { name: string }) => name).toSorted()).toEqual(['archive', 'backup'])
  })

  it('goes by a workflow of its own each time', async () => {
    await workspace.source.create('R3', 'one')
    await deliver('R3', 'archive', 'backup')
    await workspace.source.append('R3', 'two')
    await deliver('R3', 'archive', 'backup')
    await workspace.source.append('R3', 'three')
    expect(await messagesOf('R3')).toMatchObject([{ message: { revision: 3 } }])
  })

  it('is left to the deliveries that are under way: each attempt reads the newest bytes', async () => {
    await workspace.source.create('R4', 'one')
    await workspace.source.append('R4', 'two')
    expect(await messagesOf('R4')).toMatchObject([{ key: documentWorkflowId((await documentOf('R4')).id) }])
    expect(await documentOf('R4')).toMatchObject({ revision: 1, status: 'pending' })
  })
})
