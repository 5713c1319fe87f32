import { beyondPart, earlyMax } from '../../src/archive/early-metadata.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { settleEarlyMetadata } from '../../src/delivery/set-metadata.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const scene = share(await startScene())
const { db } = scene.database
const findConnector = createConnectors().find

const settings = { path_template: '{repo_id}/{doc_id}-{comp_id}/{file_name}' }
const told = { file_name: 'Rechnung Müller 4711.pdf', description: 'Skonto bis 2. März' }

/** Creates a workspace whose documents have names at their destination. */
const open = async (isWired = true) => {
  const workspace = await scene.workspace(isWired ? [{ name: 'archive' }] : [], { settings })
  const { call, ask, source, repoId } = workspace
  const list = async () => (await ask('GET', '/documents')).json.data as { id: string }[]
  return {
    ...workspace,
    /** Sends a document. @returns its id */
    send: async (docId: string, headers: Record<string, string> = {}) => {
      expect(await source.create(docId, 'an invoice', { headers: { 'content-type': 'application/pdf', ...headers } })).toMatchObject({
        status: 201,
      })
      return (await list())[0]!.id
    },
    push: (docId: string, body: object) => call('PUT', `/documents/by-doc-id/${repoId}/${docId}/metadata`, body),
    find: async (id: string) => (await ask('GET', `/documents/${id}`)).json.data.attributes,
    found: async (query: string) => ((await ask('GET', `/documents/search?${query}`)).json.data as object[]).length,
  }
}

test('a file name that is brought in is at the document, in its path, in searches and at a download', async () => {
  const { send, push, find, found, ask } = await open()
  const id = await send('D1')
  expect(await find(id)).toMatchObject({
    file_name: null,
    description: null,
    deliveries: [{ path: expect.stringMatching(/\/data\.pdf$/) }],
  })

  const { status, json } = await push('D1', told)
  expect({ status, data: json.data }).toMatchObject({ status: 200, data: { documents: 1, ...told } })
  expect(await find(id)).toMatchObject({ ...told, deliveries: [{ path: expect.stringMatching(/D1-data\/Rechnung Müller 4711\.pdf$/) }] })
  for (const query of ['q=rechnung m', `file_name=${encodeURIComponent(told.file_name)}`, 'file_name=RECHNUNG%20MüLLER%204711.PDF']) {
    expect(await found(query)).toBe(1)
  }
  expect(await found('file_name=Rechnung')).toBe(0)
  const { headers } = await ask('GET', `/documents/${id}/content`)
  expect(headers.get('content-disposition')).toContain(told.file_name)

  await push('D1', { file_name: null })
  expect(await find(id)).toMatchObject({ file_name: null, deliveries: [{ path: expect.stringMatching(/\/data\.pdf$/) }] })
})

test('a file name that is brought in later leaves the path of a delivery that has begun or is done', async () => {
  const { send, push, find } = await open()
  for (const [docId, changes] of Object.entries({
    DONE: { status: 'delivered', delivered_at: new Date(), attempts: 1 },
    BEGUN: { attempts: 1, status: 'retrying' },
    NOW: { attempt_id: 'a' },
  })) {
    const id = await send(docId)
    await db('deliveries').where({ document_id: id }).update(changes)
    await push(docId, told)
    expect(await find(id)).toMatchObject({ ...told, deliveries: [{ path: expect.stringMatching(/\/data\.pdf$/) }] })
  }
})

test('an update keeps the file name, a header of a create sets it, and an erasure removes it', async () => {
  const { send, push, find, source, workspaceId, found } = await open()
  await send('D1')
  await push('D1', told)
  expect(await source.update('D1', 'changed')).toMatchObject({ status: 200 })
  const { documents } = (await push('D1', { ar_object: 'ZINVOICE' })).json.data
  expect(documents).toBe(2)
  const id = await send('D2', { 'x-relay-file-name': String.raw`C:\Users\müller\Angebot.docx`, 'x-relay-description': 'an offer' })
  expect(await find(id)).toMatchObject({
    file_name: 'Angebot.docx',
    description: 'an offer',
    deliveries: [{ path: expect.stringMatching(/\/Angebot\.docx$/) }],
  })
  expect(await found('q=rechnung')).toBe(2)

  await createErase(db)(workspaceId, id, systemActor)
  expect(await find(id)).toMatchObject({ file_name: null, description: null })
  expect(await found('q=angebot')).toBe(0)
})

test('what is told before a document arrives is kept for it: the create is planned with it, and takes it', async () => {
  const { send, push, find, workspaceId } = await open()
  expect((await push('D1', told)).json.data).toMatchObject({ documents: 0, ...told })
  expect((await push('D1', { file_name: 'Rechnung.pdf', erp_object_type: 'BKPF' })).json.data).toMatchObject({
    documents: 0,
    description: told.description,
  })
  const id = await send('D1', { 'x-relay-object-type': 'VBRK' })
  expect(await find(id)).toMatchObject({
    file_name: 'Rechnung.pdf',
    description: told.description,
    metadata: { erp_object_type: 'VBRK' },
    deliveries: [{ path: expect.stringMatching(/\/Rechnung\.pdf$/) }],
  })
  expect(await db('early_metadata').where({ workspace_id: workspaceId, doc_id: 'D1' })).toEqual([])
})

test('a discarded document, and creates that arrive together, take what was told before', async () => {
  const { send, push, find } = await open(false)
  await push('D1', told)
  expect(await find(await send('D1'))).toMatchObject({ ...told, status: 'discarded' })

  const together = await open()
  const docIds = Array.from({ length: 20 }, (_, index) => `T${index}`)
  for (const docId of docIds.slice(0, 10)) await together.push(docId, { file_name: `${docId}.pdf` })
  await Promise.all(docIds.map((docId) => together.source.create(docId, docId)))
  const names = await db('documents').where({ workspace_id: together.workspaceId }).select('doc_id', 'file_name')
  expect(new Map(names.map((row) => [row.doc_id, row.file_name]))).toEqual(
    new Map(docIds.map((docId, index) => [docId, index < 10 ? `${docId}.pdf` : null])),
  )
})

test('a job gives a document what was told while it was created, and removes what no document has taken', async () => {
  const { send, push, find, workspaceId } = await open()
  const early = () => db('early_metadata').where({ workspace_id: workspaceId })
  for (const docId of ['MISSED', 'COMES', 'NEVER']) await push(docId, told)
  const kept = await early().where({ doc_id: 'MISSED' }).first()
  const id = await send('MISSED')
  await db('documents').where({ id }).update({ file_name: null, description: null })
  await db('early_metadata').insert(kept)
  await settleEarlyMetadata(db, { findConnector })
  expect(await find(id)).toMatchObject({ file_name: null })
  await early().update({ changed_at: db.raw(`now() - interval '2 minutes'`) })
  await early()
    .where({ doc_id: 'NEVER' })
    .update({ changed_at: db.raw(`now() - interval '31 days'`) })
  await settleEarlyMetadata(db, { findConnector })
  expect(await find(id)).toMatchObject(told)
  expect(await early().select('doc_id', 'is_checked')).toEqual([{ doc_id: 'COMES', is_checked: true }])
  expect(await settleEarlyMetadata(db, { findConnector })).toBe(0)
})

test('the number of documents about which something is kept is limited, and counted by a part of them', async () => {
  const { push, workspaceId } = await open()
  const fill = (from: number, to: number) =>
    db.raw(
      `insert into early_metadata (workspace_id, repo_id, doc_id, changed_at) select ?, 'Z1', 'E' || n, now() from generate_series(?::integer, ?::integer) as n`,
      [workspaceId, from, to],
    )
  await fill(1, earlyMax)
  expect((await push('D1', told)).status).toBe(200)

  await fill(earlyMax + 1, earlyMax + 50_000)
  await db.raw('analyze early_metadata')
  expect((await push('D2', told)).status).toBe(409)
  const { sql, bindings } = beyondPart(db, workspaceId, 'D2').toSQL()
  const { rows } = await db.raw(`explain (analyze, format json) ${sql}`, bindings as string[])
  const plan = JSON.stringify(rows[0]['QUERY PLAN'])
  expect(plan).toContain('early_metadata_by_part')
  expect(plan).not.toContain('Seq Scan')
  expect(Math.max(...[...plan.matchAll(/"Actual Rows":(\d+)/g)].map(([, count]) => Number(count)))).toBeLessThanOrEqual(513)

  await db('early_metadata').where({ workspace_id: workspaceId }).whereRaw('substr(doc_id, 2)::integer > ?', [earlyMax]).delete()
  expect((await push('E1', told)).status).toBe(200)
})
