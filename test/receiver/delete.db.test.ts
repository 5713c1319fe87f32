import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { openSocket, part } from '../support/source-system.ts'
import { withoutServerHeaders } from './answers.ts'

const scene = share(await startScene())
const workspace = await scene.workspace()

const rowsOf = (docId: string) => scene.db('documents').where({ doc_id: docId }).orderBy('id')
const description = (pattern: RegExp) => ({ 'x-errordescription': expect.stringMatching(pattern) })

describe('delete of a document', () => {
  test('answers GET as specified', async () => {
    await workspace.source.create('D1', 'x')
    const { send, untilClosed } = await openSocket(scene.api.port)
    await send(`GET ${workspace.path}?delete&pVersion=0045&contRep=Z1&docId=D1 HTTP/1.1\r\nHost: cs\r\nConnection: close\r\n\r\n`)
    expect(withoutServerHeaders(await untilClosed())).toBe('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nCache-Control: no-store\r\n\r\n')
  })

  test('takes effect at once for every command, and a second delete is answered with 404', async () => {
    await workspace.source.createParts('D2', [part('data', 'x'), part('note', 'y')])
    expect((await workspace.source.delete('D2')).status).toBe(200)
    const { get, info, docGet, update, delete: deleteAgain } = workspace.source
    for (const answer of [await get('D2'), await info('D2'), await docGet('D2'), await update('D2', 'z'), await deleteAgain('D2')]) {
      expect(answer).toMatchObject({ status: 404, headers: description(/^document_not_found: /) })
    }
  })

  test('keeps the received documents, their content and their deliveries', async () => {
    await workspace.source.createParts('D3', [part('data', 'x'), part('note', 'y')])
    expect((await workspace.source.delete('D3', '', 'DELETE')).status).toBe(200)
    const rows = await rowsOf('D3')
    expect(rows).toMatchObject([
      { status: 'pending', content_id: expect.any(String), superseded_at: expect.any(Date) },
      { status: 'pending', content_id: expect.any(String), superseded_at: expect.any(Date) },
    ])
    const ids = rows.map(({ id }) => id)
    expect(await scene.db('deliveries').whereIn('document_id', ids)).toMatchObject([{ status: 'pending' }, { status: 'pending' }])
    expect(await scene.db('deliveries').whereIn('document_id', ids).whereNotNull('begin_at')).toHaveLength(2)
  })

  test('frees the docId each time', async () => {
    for (const text of ['first', 'second', 'third']) {
      expect((await workspace.source.create('D4', text)).status).toBe(201)
      expect(String((await workspace.source.get('D4')).body)).toBe(text)
      expect((await workspace.source.delete('D4')).status).toBe(200)
    }
    expect(await rowsOf('D4')).toHaveLength(3)
  })

  test('accepts an empty document', async () => {
    await workspace.source.createParts('D5', [])
    expect((await workspace.source.delete('D5')).status).toBe(200)
    expect((await workspace.source.info('D5')).status).toBe(404)
  })
})

describe('delete of a component', () => {
  test('keeps the other components, and an empty document after the last one', async () => {
    await workspace.source.createParts('C1', [part('data', 'x'), part('note', 'y')])
    expect((await workspace.source.delete('C1', '&compId=note')).status).toBe(200)
    expect((await workspace.source.info('C1')).headers['x-numbercomps']).toBe('1')
    expect((await workspace.source.get('C1', '&compId=note')).headers).toMatchObject(description(/^component_not_found/))
    expect((await workspace.source.delete('C1', '&compId=data')).status).toBe(200)
    expect(await workspace.source.info('C1')).toMatchObject({ status: 200, headers: { 'x-numbercomps': '0' } })
    expect((await workspace.source.create('C1', 'z')).status).toBe(403)
  })

  test('changes the modification date of the document, and a new component of that name has a new creation date', async () => {
    await workspace.source.createParts('C2', [part('data', 'x'), part('note', 'y')])
    await workspace.age('C2')
    await workspace.source.delete('C2', '&compId=note')
    const today = new Date().toISOString().slice(0, 10)
    expect((await workspace.source.info('C2')).headers).toMatchObject({ 'x-datec': '2026-03-02', 'x-datem': today })
    await workspace.source.update('C2', 'new', { compId: 'note' })
    expect((await workspace.source.get('C2', '&compId=note')).headers['x-compdatec']).toBe(today)
  })

  test('finds the component by the same rules as get', async () => {
    await workspace.source.createParts('C3', [part('Data', 'x'), part('data', 'y')])
    await workspace.source.delete('C3', '&compId=data')
    expect(String((await workspace.source.info('C3')).body)).toContain('X-compId: Data')
    expect((await workspace.source.delete('C3', '&compId=DATA')).status).toBe(200)
    expect((await workspace.source.info('C3')).headers['x-numbercomps']).toBe('0')
  })

  test('answers 404 for an unknown component or document', async () => {
    await workspace.source.create('C4', 'x')
    expect(await workspace.source.delete('C4', '&compId=note')).toMatchObject({ status: 404, headers: description(/^component_not_found/) })
    expect(await workspace.source.delete('NOWHERE', '&compId=x')).toMatchObject({
      status: 404,
      headers: description(/^document_not_found/),
    })
    expect(String((await workspace.source.get('C4')).body)).toBe('x')
  })
})

test('delete is refused by HEAD, which browsers may send on their own', async () => {
  await workspace.source.create('H1', 'x')
  expect((await workspace.source.call('delete&pVersion=0045&contRep=Z1&docId=H1', { method: 'HEAD' })).status).toBe(400)
  expect((await workspace.source.get('H1')).status).toBe(200)
})
