import { randomBytes } from 'node:crypto'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'
import { documentsToCome } from '../support/starts.ts'

const scene = share(await startScene())
const workspace = await scene.workspace()

const startsOf = async (docId: string, { workspaceSlug } = workspace) =>
  (await documentsToCome(scene.db, workspaceSlug)).filter(({ input }) => input.docId === docId)
const rowsOf = (docId: string) => scene.db('documents').where({ doc_id: docId }).orderBy('id')
const description = (pattern: RegExp) => ({ 'x-errordescription': expect.stringMatching(pattern) })

describe('update by PUT', () => {
  test('replaces the current component, and relays both versions', async () => {
    const fresh = await scene.workspace()
    await fresh.source.create('REPLACED', 'before', { headers: { 'x-relay-ar-object': 'FIIINVOICE', 'content-type': 'text/plain' } })
    const answer = await fresh.source.update('REPLACED', 'after', { headers: { 'content-type': 'application/pdf' } })
    expect(answer).toMatchObject({ status: 200, reason: 'OK', headers: { 'content-length': '0' } })
    expect(await fresh.source.get('REPLACED')).toMatchObject({ body: Buffer.from('after'), headers: { 'content-type': 'application/pdf' } })
    expect(await startsOf('REPLACED', fresh)).toHaveLength(2)

    const rows = await rowsOf('REPLACED')
    expect(rows).toMatchObject([
      { status: 'pending', superseded_at: expect.any(Date), size_bytes: 6, ar_object: 'FIIINVOICE' },
      { status: 'pending', superseded_at: null, size_bytes: 5, ar_object: 'FIIINVOICE' },
    ])
    const ids = rows.map(({ id }) => id)
    expect(await scene.db('deliveries').whereIn('document_id', ids)).toMatchObject([{ status: 'pending' }, { status: 'pending' }])
    expect(await scene.db('repository_counts').where({ repository_id: fresh.repositoryId }).sum({ total: 'documents' })).toEqual([
      { total: '2' },
    ])
  })

  test('adds a new component at the end, and keeps the others', async () => {
    await workspace.source.createParts('D2', [part('data', 'one'), part('descr', 'two')])
    await workspace.age('D2')
    expect((await workspace.source.update('D2', 'three', { compId: 'note' })).status).toBe(200)
    expect((await workspace.source.update('D2', 'ONE', { compId: 'data' })).status).toBe(200)
    const info = await workspace.source.info('D2')
    expect(String(info.body).match(/(?<=X-compId: )\w+/g)).toEqual(['data', 'descr', 'note'])
    expect(String((await workspace.source.get('D2', '&compId=descr')).body)).toBe('two')
    expect((await workspace.source.get('D2', '&compId=note')).headers['content-type']).toBe('application/octet-stream')
  })

  test('keeps the creation date of a component, and changes its modification date, also if repeated', async () => {
    await workspace.source.createParts('D3', [part('data', 'one'), part('note', 'n')])
    await workspace.age('D3')
    for (const text of ['two', 'three']) await workspace.source.update('D3', text)
    const today = new Date().toISOString().slice(0, 10)
    const old = '2026-03-02'
    expect((await workspace.source.get('D3')).headers).toMatchObject({
      'x-compdatec': old,
      'x-comptimec': '10:15:30',
      'x-compdatem': today,
    })
    expect((await workspace.source.get('D3', '&compId=note')).headers).toMatchObject({ 'x-compdatec': old, 'x-compdatem': old })
    expect((await workspace.source.info('D3')).headers).toMatchObject({ 'x-datec': old, 'x-datem': today })
    expect((await rowsOf('D3')).filter(({ superseded_at }) => superseded_at === null)).toHaveLength(2)
  })

  test('keeps the content type if none is sent, and always the protection', async () => {
    const query = 'create&pVersion=0045&contRep=Z1&docId=D4&compId=data&docProt=rud'
    await workspace.source.call(query, { method: 'PUT', headers: { 'content-type': 'text/plain; charset=' }, body: 'x' })
    expect((await workspace.source.update('D4', 'y')).status).toBe(200)
    expect((await workspace.source.update('D4', 'z', { headers: { 'content-type': '' } })).status).toBe(200)
    expect(await workspace.source.get('D4')).toMatchObject({ headers: { 'content-type': 'text/plain; charset=' }, body: Buffer.from('z') })
    expect(await scene.db('archive_documents').where({ doc_id: 'D4' })).toMatchObject([{ doc_prot: 'rud' }])
  })

  test('streams megabytes', async () => {
    await workspace.source.create('D5', 'small')
    const large = randomBytes(6_000_000)
    expect((await workspace.source.update('D5', large)).status).toBe(200)
    expect((await workspace.source.get('D5')).body.equals(large)).toBe(true)
  })

  test('answers 404 for an unknown document, and stores nothing', async () => {
    const before = await workspace.countRows()
    expect(await workspace.source.update('NOWHERE', randomBytes(600_000))).toMatchObject({
      status: 404,
      headers: description(/^document_not_found: /),
    })
    expect(await workspace.countRows()).toEqual(before)
  })

  test('requires a compId', async () => {
    const answer = await workspace.source.call('update&pVersion=0045&contRep=Z1&docId=D1', { method: 'PUT', body: 'x' })
    expect(answer).toMatchObject({ status: 400, headers: description(/^invalid_parameter: compId is missing/) })
  })
})

describe('update by POST', () => {
  test('replaces the whole document, and removes components that are not in the request', async () => {
    await workspace.source.createParts('P1', [part('data', 'one', 'text/plain'), part('descr', 'two'), part('note', 'three')])
    await workspace.age('P1')
    expect((await workspace.source.updateParts('P1', [part('new', 'four'), part('data', 'ONE', 'text/csv')])).status).toBe(200)
    const info = await workspace.source.info('P1')
    expect(info.headers['x-numbercomps']).toBe('2')
    expect(String(info.body).match(/(?<=X-compId: )\w+/g)).toEqual(['new', 'data'])
    expect(await workspace.source.get('P1')).toMatchObject({
      body: Buffer.from('ONE'),
      headers: { 'content-type': 'text/csv', 'x-compdatec': '2026-03-02' },
    })
    expect((await workspace.source.get('P1', '&compId=note')).headers).toMatchObject(description(/^component_not_found/))
    expect(await startsOf('P1')).toHaveLength(5)
  })

  test('without parts empties a document, which can be filled again', async () => {
    await workspace.source.create('P2', 'x')
    expect((await workspace.source.updateParts('P2', [])).status).toBe(200)
    expect((await workspace.source.info('P2')).headers['x-numbercomps']).toBe('0')
    expect((await workspace.source.update('P2', 'again')).status).toBe(200)
    expect(String((await workspace.source.get('P2')).body)).toBe('again')
  })

  test('changes and stores nothing if its transaction fails', async () => {
    await workspace.source.createParts('P4', [part('data', 'one'), part('note', 'two')])
    const before = await workspace.countRows()
    const startsBefore = (await startsOf('P4')).length
    await scene.db.raw(`alter table documents add constraint no_failing check (comp_id <> 'FAIL')`)
    try {
      expect((await workspace.source.updateParts('P4', [part('data', 'x'.repeat(600_000)), part('FAIL', 'y')])).status).toBe(500)
    } finally {
      await scene.db.raw('alter table documents drop constraint no_failing')
    }
    expect(String((await workspace.source.get('P4')).body)).toBe('one')
    expect((await workspace.source.info('P4')).headers['x-numbercomps']).toBe('2')
    expect(await workspace.countRows()).toEqual(before)
    expect(await startsOf('P4')).toHaveLength(startsBefore)
  })

  test('changes and stores nothing if a part is malformed', async () => {
    await workspace.source.createParts('P3', [part('data', 'one'), part('note', 'two')])
    const before = await workspace.countRows()
    const malformed = { headers: { 'X-compId': 'note', 'Content-Length': 9 }, body: 'x' }
    expect((await workspace.source.updateParts('P3', [part('data', 'x'.repeat(600_000)), malformed])).status).toBe(400)
    expect(String((await workspace.source.get('P3')).body)).toBe('one')
    expect(await workspace.countRows()).toEqual(before)
  })
})

describe('a repository without a route', () => {
  test('answers 404 to an update of a discarded document', async () => {
    const unrouted = await scene.workspace([])
    await unrouted.source.create('D1', 'x')
    expect((await unrouted.source.update('D1', 'y')).headers).toMatchObject(description(/^document_not_found/))
  })

  test('stores an update of a document that it stored while it had a route', async () => {
    const unrouted = await scene.workspace()
    await unrouted.source.create('D1', 'before')
    await scene.db('connection_repositories').where({ repository_id: unrouted.repositoryId }).delete()
    expect((await unrouted.source.update('D1', 'after')).status).toBe(200)
    expect(String((await unrouted.source.get('D1')).body)).toBe('after')
    const current = scene.db('documents').where({ workspace_id: unrouted.workspaceId }).whereNull('superseded_at')
    expect(await current).toMatchObject([{ status: 'discarded', content_id: expect.any(String) }])
  })
})
