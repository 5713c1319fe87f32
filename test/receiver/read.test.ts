import { part } from '../support/source-system.ts'
import { asExample, boundaryOf, exampleHeaders, exampleOf } from './answers.ts'
import { startScene, type Scene, type SceneWorkspace } from './receiver.ts'

let scene: Scene
let workspace: SceneWorkspace
const docId = '005056B5A3F21EEFA9C1D04F7B6E8C11'

beforeAll(async () => {
  scene = await startScene()
  workspace = await scene.workspace()
  await workspace.source.createParts(docId, [
    part('data', 'HELLO', 'text/plain; charset=ISO-8859-1'),
    part('note', 'abc', 'application/x-note'),
  ])
  await workspace.source.create('DIGITS', '0123456789')
  await workspace.age(docId)
})
afterAll(() => scene.stop())

describe('info', () => {
  it('answers byte for byte as the interface has it', async () => {
    const answer = await workspace.source.info(docId)
    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({ ...exampleHeaders(docId), 'content-length': String(answer.body.length) })
    const example = exampleOf([
      { compId: 'data', contentType: 'text/plain; charset=ISO-8859-1', sizeBytes: 5, body: '' },
      { compId: 'note', contentType: 'application/x-note', sizeBytes: 3, body: '' },
    ])
    expect(example).toHaveLength(516)
    expect(asExample(answer)).toBe(example)
  })

  it('tells of one component where one is asked for', async () => {
    const answer = await workspace.source.info(docId, '&compId=note')
    expect(answer.headers['x-numbercomps']).toBe('1')
    expect(String(answer.body)).toContain('X-compId: note')
    expect(String(answer.body)).not.toContain('X-compId: data')
    expect((await workspace.source.info(docId, '&compId=other')).headers['x-errordescription']).toMatch(/^component_not_found/)
  })

  it('is an empty multipart for an empty document', async () => {
    await workspace.source.createParts('EMPTY', [])
    const answer = await workspace.source.info('EMPTY')
    const boundary = boundaryOf(answer)
    expect(String(answer.body)).toBe(`--${boundary}\r\n--${boundary}--\r\n`)
  })

  it('is a page for people with resultAs=html, in which nothing of the source system is markup', async () => {
    await workspace.source.create('MARKUP', 'x', { compId: '%3Cscript%3E' })
    const answer = await workspace.source.info('MARKUP', '&resultAs=html')
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(String(answer.body)).toContain('&lt;script&gt;')
    expect(String(answer.body)).not.toContain('<script>')
  })
})

describe('get', () => {
  it('gives a component with what there is to know of it', async () => {
    const answer = await workspace.source.get(docId, '&compId=note')
    expect(answer.status).toBe(200)
    expect(String(answer.body)).toBe('abc')
    expect(answer.headers).toMatchObject({
      'content-type': 'application/x-note',
      'content-length': '3',
      'x-compid': 'note',
      'x-content-length': '3',
      'x-compdatec': '2026-03-02',
      'x-comptimec': '10:15:30',
      'x-compstatus': 'online',
      'x-pversion': '0045',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    })
    expect(answer.headers['etag']).toBeUndefined()
  })

  it.each([
    ['&fromOffset=2&toOffset=5', '2345'],
    ['&fromOffset=0&toOffset=0', '0'],
    ['&fromOffset=9', '9'],
    ['&toOffset=3', '0123'],
    ['&toOffset=-1', '0123456789'],
    ['&fromOffset=5&toOffset=1000', '56789'],
    ['&fromOffset=10', ''],
    ['&fromOffset=5&toOffset=4', ''],
  ])('gives the range %s as %j with status 200', async (range, expected) => {
    const answer = await workspace.source.get('DIGITS', range)
    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({ 'content-length': String(expected.length), 'x-content-length': '10' })
    expect(String(answer.body)).toBe(expected)
  })

  it('does not know HTTP ranges', async () => {
    const query = `get&pVersion=0045&contRep=Z1&docId=DIGITS`
    const answer = await workspace.source.call(query, { headers: { range: 'bytes=2-3', 'if-none-match': '*' } })
    expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '10' } })
  })

  it('answers HEAD with the headers alone', async () => {
    const answer = await workspace.source.head('DIGITS', '&fromOffset=2&toOffset=5')
    expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '4', 'content-type': 'application/octet-stream' } })
    expect(answer.body).toHaveLength(0)
  })

  it('takes data1 where there is no data, and nothing else', async () => {
    await workspace.source.createParts('PAGES', [part('data2', 'two'), part('data1', 'one')])
    expect(String((await workspace.source.get('PAGES')).body)).toBe('one')
    await workspace.source.createParts('NOTES', [part('note', 'n')])
    expect((await workspace.source.get('NOTES')).headers['x-errordescription']).toMatch(/^component_not_found/)
  })

  it('tells components apart by case, unless there is only one that could be meant', async () => {
    await workspace.source.createParts('CASES', [part('Data', 'upper'), part('data', 'lower')])
    expect(String((await workspace.source.get('CASES', '&compId=Data')).body)).toBe('upper')
    expect(String((await workspace.source.get('CASES', '&compId=DATA')).body)).toBe('upper')
    expect(String((await workspace.source.get(docId, '&compId=NOTE')).body)).toBe('abc')
  })

  it('answers 404 where there is no such document, and 409 where its bytes are no longer kept', async () => {
    expect(await workspace.source.get('NOWHERE')).toMatchObject({
      status: 404,
      headers: { 'x-errordescription': expect.stringMatching(/^document_not_found/) },
    })
    await workspace.source.create('GONE', 'x')
    await scene.db('documents').where({ doc_id: 'GONE' }).update({ content_id: null })
    expect(await workspace.source.get('GONE')).toMatchObject({
      status: 409,
      headers: { 'x-errordescription': expect.stringMatching(/^component_offline/) },
    })
    expect(String((await workspace.source.info('GONE')).body)).toContain('X-compStatus: offline')
  })

  it('breaks the connection off rather than end early where bytes turn out to be missing', async () => {
    await workspace.source.create('TORN', Buffer.alloc(4 * 1024 * 1024, 'x'))
    const { content_id } = await scene.db('documents').where({ doc_id: 'TORN' }).first()
    await scene.db('content_chunks').where({ content_id, seq: 15 }).delete()
    await expect(workspace.source.get('TORN')).rejects.toThrow('other side closed')
    expect((await workspace.source.get('TORN', '&toOffset=99')).body).toHaveLength(100)
  })
})

describe('serverInfo', () => {
  it('answers as the interface has it', async () => {
    const answer = await workspace.source.serverInfo('&contRep=Z1')
    expect(answer.headers['content-type']).toBe('text/plain; charset=us-ascii')
    const body = String(answer.body)
      .replaceAll(/\d\d:\d\d:\d\d/g, '10:15:30')
      .replaceAll(/\d{4}-\d\d-\d\d/g, '2026-03-02')
    expect(body).toBe(
      'serverStatus="running";serverVendorId="Document Relay";serverVersion="1.0";serverBuild="1";serverTime="10:15:30";' +
        'serverDate="2026-03-02";serverStatusDescription="";pVersion="0045";\r\n' +
        'contRep="Z1";contRepDescription="Inbox";contRepStatus="running";contRepStatusDescription="signatures are not looked at";pVersion="0045";\r\n',
    )
  })

  it('lists every repository of the workspace without contRep, and needs no pVersion', async () => {
    const other = await scene.workspace()
    await scene.db('repositories').insert({
      id: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
      workspace_id: other.workspaceId,
      repo_id: 'Z2',
      name: 'The "other" Büro',
      status: 'inactive',
    })
    const answer = await other.source.call('serverInfo')
    const lines = String(answer.body).split('\r\n')
    expect(lines).toHaveLength(4)
    expect(lines[1]).toContain('contRep="Z1";contRepDescription="Inbox";contRepStatus="running"')
    expect(lines[2]).toContain('contRep="Z2";contRepDescription="The ""other"" B?ro";contRepStatus="stopped"')
  })

  it('answers 404 for a repository or a workspace that does not exist', async () => {
    expect((await workspace.source.serverInfo('&contRep=Z9')).headers['x-errordescription']).toMatch(/^repository_not_found/)
    const answer = await fetch(`${scene.receiver.baseUrl}/receiver/acme/nowhere?serverInfo`)
    expect(answer.status).toBe(404)
  })

  it('is a page with resultAs=html', async () => {
    const answer = await workspace.source.serverInfo('&resultAs=html')
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(String(answer.body)).toContain('<td>Inbox</td>')
  })
})
