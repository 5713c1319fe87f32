import { randomBytes } from 'node:crypto'
import { receiverUseCases } from '../../src/app/use-cases.ts'
import { newId } from '../../src/base/ids.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { firstRound, receivedDocument, testConfig } from '../support/factories.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'
import { documentsToCome, dueStarts } from '../support/starts.ts'

const quietMs = 60_000

const scene = share(await startScene({ variables: { RELAY_APPEND_QUIET_MS: String(quietMs) } }))
const workspace = await scene.workspace([{ name: 'archive' }, { name: 'backup' }])

const documentOf = async (docId: string) => (await scene.db('documents').where({ doc_id: docId, superseded_at: null }).first())!
const deliveriesOf = async (docId: string) =>
  scene
    .db('deliveries')
    .where({ document_id: (await documentOf(docId)).id })
    .orderBy('destination_id')
const startsOf = async (docId: string) =>
  (await documentsToCome(scene.db, workspace.workspaceSlug)).filter(({ input }) => input.docId === docId)
const beginAt = async (docId: string): Promise<number> =>
  Math.max(...(await deliveriesOf(docId)).map(({ begin_at: at }: { begin_at: Date | null }) => at?.getTime() ?? 0))

/** Records a successful attempt, as the worker does. */
const recordDelivered = async (docId: string, ...names: string[]) => {
  const { id } = await documentOf(docId)
  for (const name of names) {
    const delivery = { documentId: id, destinationId: workspace.destinations[name]! }
    const job = (await createLoadJob(scene.db, testConfig())({ ...delivery, ...firstRound }))!
    const result = { operation: 'attemptDelivered', outcome: 'delivered', id: newId(), durationMs: 1, bytesSent: 1 } as const
    await createRecordAttempt(scene.db, testConfig())(delivery, job, result)
  }
}

/** Records a successful attempt. The deliveries to other destinations have been begun as well. */
const deliver = async (docId: string, ...names: string[]) => {
  await recordDelivered(docId, ...names)
  await scene
    .db('deliveries')
    .where({ document_id: (await documentOf(docId)).id })
    .update({ begin_at: null })
}

describe('append', () => {
  test('adds bytes to the end of a component, repeatedly, and keeps its document row', async () => {
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

  test('adds megabytes to megabytes', async () => {
    const [old, added] = [randomBytes(3_000_000), randomBytes(2_000_000)]
    await workspace.source.create('D2', old)
    expect((await workspace.source.append('D2', added)).status).toBe(200)
    expect((await workspace.source.get('D2')).body.equals(Buffer.concat([old, added]))).toBe(true)
  })

  test('accepts an empty body and leaves the bytes unchanged', async () => {
    await workspace.source.create('D3', 'same')
    expect((await workspace.source.append('D3', '')).status).toBe(200)
    expect(String((await workspace.source.get('D3')).body)).toBe('same')
  })

  test('answers 404 for an unknown document or component', async () => {
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

  test('loses no bytes if many appends run concurrently', async () => {
    await workspace.source.create('D5', '')
    const letters = Array.from('abcdefghijkl')
    const answers = await Promise.all(letters.map((letter) => workspace.source.append('D5', letter.repeat(1_000))))
    expect(answers.map(({ status }) => status)).toEqual(letters.map(() => 200))
    const runs = String((await workspace.source.get('D5')).body).match(/(.)\1{999}/g)
    expect(runs?.map((run) => run[0]).toSorted()).toEqual(letters)
  })

  test('stores the appended bytes only, however large the component is', async () => {
    const data = randomBytes(4_000_000)
    await workspace.source.create('D7', data)
    const stored = async () => {
      const { rows } = await scene.db.raw(`select sum(length(data)) as bytes from content_chunks`)
      return Number(rows[0].bytes)
    }
    const before = await stored()
    for (const letter of 'abcde') await workspace.source.append('D7', letter)
    expect((await stored()) - before).toBe(5)
    expect((await workspace.source.get('D7')).body.equals(Buffer.concat([data, Buffer.from('abcde')]))).toBe(true)
    const range = await workspace.source.get('D7', `&fromOffset=${data.length - 1}&toOffset=${data.length + 1}`)
    expect(range.body.equals(Buffer.concat([data.subarray(-1), Buffer.from('ab')]))).toBe(true)
  })

  test('merges small segments, so that many appends leave few of them and write no byte more than twice', async () => {
    await workspace.source.create('D8', 'begin')
    const { content_id: id } = await documentOf('D8')
    const [first, last] = [61, 129]
    await scene
      .db('contents')
      .where({ id })
      .update({ appends: first - 1 })
    let expected = 'begin'
    for (let number = first; number <= last; number += 1) {
      expect((await workspace.source.append('D8', ` ${number}`)).status).toBe(200)
      expected += ` ${number}`
    }
    expect(String((await workspace.source.get('D8')).body)).toBe(expected)
    // Appends 64 and 128 have merged those before them.
    const segments = scene.db('content_segments').where({ content_id: id }).orderBy('append')
    expect(await segments.pluck('append')).toEqual([64, 128, 129])
    const { rows } = await scene.db.raw(
      `select sum(size_bytes) as bytes from contents where workspace_id = ? and owned_at is null and id > ?`,
      [workspace.workspaceId, id],
    )
    // What was written before it was merged.
    expect(Number(rows[0].bytes)).toBeLessThan(expected.length)
  })

  test('does not write a large segment again', async () => {
    await workspace.source.create('D11', 'begin')
    const { content_id: id } = await documentOf('D11')
    await scene.db('contents').where({ id }).update({ appends: 60 })
    const large = randomBytes(1024 * 1024)
    for (const bytes of ['61', large, '63', '64']) expect((await workspace.source.append('D11', bytes)).status).toBe(200)
    const segments = scene.db('content_segments').where({ content_id: id }).orderBy('append')
    expect(await segments.pluck('append')).toEqual([61, 62, 64])
    expect((await workspace.source.get('D11')).body.equals(Buffer.concat([Buffer.from('begin61'), large, Buffer.from('6364')]))).toBe(true)
  })

  test('of an empty component that has segments leaves it unchanged', async () => {
    await workspace.source.create('D9', '')
    await workspace.source.append('D9', 'one')
    await workspace.source.append('D9', '')
    await workspace.source.append('D9', 'two')
    expect(String((await workspace.source.get('D9')).body)).toBe('onetwo')
  })

  test('is refused if another process has appended meanwhile, and leaves its bytes', async () => {
    await workspace.source.create('D10', 'one')
    const { planAppend, append, archiveDocuments } = receiverUseCases(scene.db, testConfig())
    const repository = await workspace.findRepository()
    const basedOn = (await archiveDocuments.find(repository.id, 'D10'))!.components[0]!.content!
    const plan = await planAppend(basedOn)
    await workspace.source.append('D10', 'two')
    const { components, receivedAt } = await receivedDocument(workspace, { data: 'lost' })
    const segment = { ...plan, content: components[0]!.content!, isWhole: false }
    const late = { repository, docId: 'D10', compId: 'data', basedOn, segment, receivedAt, capture: undefined }
    expect(await append(late)).toBe('changed')
    expect(String((await workspace.source.get('D10')).body)).toBe('onetwo')
  })

  test('stores nothing if it fails', async () => {
    await workspace.source.create('D6', 'one')
    const count = async () => Number((await scene.db('contents').count({ total: '*' }))[0]!['total'])
    const before = await count()
    expect((await workspace.source.append('D6', randomBytes(600_000), 'missing')).status).toBe(404)
    expect(await count()).toBe(before)
  })
})

describe('a document after an append', () => {
  test('is delivered again to every destination that has it, after a quiet period', async () => {
    await workspace.source.create('R1', 'one')
    await deliver('R1', 'archive', 'backup')
    await workspace.source.append('R1', 'two')
    expect(await documentOf('R1')).toMatchObject({ status: 'pending', revision: 2 })
    expect(await deliveriesOf('R1')).toMatchObject([
      { status: 'pending', attempts: 1, delivered_at: null },
      { status: 'pending', attempts: 1, delivered_at: null },
    ])
    const starts = await startsOf('R1')
    expect(starts).toMatchObject([{ input: { revision: 2, destinations: [{ name: 'archive' }, { name: 'backup' }] } }])
    expect((await beginAt('R1')) - Date.now()).toBeGreaterThan(quietMs - 10_000)
    expect((await dueStarts(scene.db)).filter(({ input }) => input.docId === 'R1')).toEqual([])
  })

  test('is delivered once for consecutive appends, after a quiet period that begins with the last one', async () => {
    await workspace.source.create('R2', 'one')
    await deliver('R2', 'archive')
    await workspace.source.append('R2', 'two')
    const first = await beginAt('R2')
    await recordDelivered('R2', 'backup')
    await workspace.source.append('R2', 'three')
    const starts = await startsOf('R2')
    expect(starts).toMatchObject([{ input: { revision: 2 } }])
    expect(await beginAt('R2')).toBeGreaterThan(first)
    expect(starts[0]!.input.destinations.map(({ name }) => name).toSorted()).toEqual(['archive', 'backup'])
  })

  test('has a new workflow for each redelivery', async () => {
    await workspace.source.create('R3', 'one')
    await deliver('R3', 'archive', 'backup')
    await workspace.source.append('R3', 'two')
    await deliver('R3', 'archive', 'backup')
    await workspace.source.append('R3', 'three')
    expect(await startsOf('R3')).toMatchObject([{ input: { revision: 3 } }])
  })

  test('has no redelivery while its first delivery is pending, because each attempt reads the latest bytes', async () => {
    await workspace.source.create('R4', 'one')
    await workspace.source.append('R4', 'two')
    expect(await startsOf('R4')).toMatchObject([{ input: { revision: 1 } }])
    expect(await documentOf('R4')).toMatchObject({ revision: 1, status: 'pending' })
  })
})
