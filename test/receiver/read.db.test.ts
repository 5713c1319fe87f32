import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'
import { asExample, boundaryOf, exampleHeaders, exampleOf } from './answers.ts'

const docId = '005056B5A3F21EEFA9C1D04F7B6E8C11'

const scene = share(await startScene())
const workspace = await scene.workspace()
await workspace.source.createParts(docId, [
  part('data', 'HELLO', 'text/plain; charset=ISO-8859-1'),
  part('note', 'abc', 'application/x-note'),
])
await workspace.source.create('DIGITS', '0123456789')
await workspace.age(docId)

describe('info', () => {
  test('answers byte for byte as specified', async () => {
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

  test('describes one component if the request has a compId', async () => {
    const answer = await workspace.source.info(docId, '&compId=note')
    expect(answer.headers['x-numbercomps']).toBe('1')
    expect(String(answer.body)).toContain('X-compId: note')
    expect(String(answer.body)).not.toContain('X-compId: data')
    expect((await workspace.source.info(docId, '&compId=other')).headers['x-errordescription']).toMatch(/^component_not_found/)
  })

  test('is an empty multipart for an empty document', async () => {
    await workspace.source.createParts('EMPTY', [])
    const answer = await workspace.source.info('EMPTY')
    const boundary = boundaryOf(answer)
    expect(String(answer.body)).toBe(`--${boundary}\r\n--${boundary}--\r\n`)
  })

  test('returns an HTML page for resultAs=html, in which values of the source system are escaped', async () => {
    await workspace.source.create('MARKUP', 'x', { compId: '%3Cscript%3E' })
    const answer = await workspace.source.info('MARKUP', '&resultAs=html')
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(String(answer.body)).toContain('&lt;script&gt;')
    expect(String(answer.body)).not.toContain('<script>')
  })
})

describe('a browser that opens an answer', () => {
  const sandbox = { 'x-content-type-options': 'nosniff', 'content-security-policy': "sandbox; default-src 'none'" }
  const base = 'pVersion=0045&contRep=Z1'

  test.each([
    ['an HTML document', `get&${base}&docId=HTML`, 200, 'text/html'],
    ['a document with two content types', `get&${base}&docId=BOTH`, 200, 'application/pdf, text/html'],
    ['all components', `docGet&${base}&docId=HTML`, 200, expect.stringMatching('multipart')],
    ['the page of info', `info&${base}&docId=HTML&resultAs=html`, 200, 'text/html; charset=utf-8'],
    ['the page of serverInfo', `serverInfo&pVersion=0045&resultAs=html`, 200, 'text/html; charset=utf-8'],
    ['a refusal', `get&${base}&docId=NOWHERE`, 404, expect.anything()],
  ])('runs no script of %s', async (_, query, status, contentType) => {
    for (const [id, type] of [
      ['HTML', 'text/html'],
      ['BOTH', 'application/pdf, text/html'],
    ]) {
      await workspace.source.create(id!, '<script>alert(1)</script>', { headers: { 'content-type': type! } })
    }
    const answer = await workspace.source.call(query)
    expect(answer).toMatchObject({ status, headers: { ...sandbox, 'content-type': contentType } })
  })

  test.each(['version=1.7', 'charset=; version=1.7', 'charset="utf-8";', 'name="Rechnung, Mai.pdf"', 'name="Rechnung \u00c3\u0178.pdf"'])(
    'can show a PDF with the parameters %s, which no browser shows in a sandbox',
    async (parameters) => {
      const contentType = `application/pdf; ${parameters.replace('\u0178', '\u009f')}`
      const id = `PDF${Buffer.from(parameters).toString('hex').slice(0, 60)}`
      const created = await workspace.source.create(id, '%PDF-', { headers: { 'content-type': contentType } })
      expect(created.status).toBe(201)
      const { headers } = await workspace.source.get(id)
      expect(headers).toMatchObject({ 'content-type': contentType, 'x-content-type-options': 'nosniff' })
      expect(headers['content-security-policy']).toBeUndefined()
    },
  )
})

describe('get', () => {
  test('returns a component with the headers that describe it', async () => {
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
      'content-security-policy': "sandbox; default-src 'none'",
      'cache-control': 'no-store',
    })
    expect(answer.headers['etag']).toBeUndefined()
  })

  test.each([
    ['&fromOffset=2&toOffset=5', '2345'],
    ['&fromOffset=0&toOffset=0', '0'],
    ['&fromOffset=9', '9'],
    ['&toOffset=3', '0123'],
    ['&toOffset=-1', '0123456789'],
    ['&fromOffset=5&toOffset=1000', '56789'],
    ['&fromOffset=10', ''],
    ['&fromOffset=5&toOffset=4', ''],
  ])('returns for the range %s the bytes %j with status 200', async (range, expected) => {
    const answer = await workspace.source.get('DIGITS', range)
    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({ 'content-length': String(expected.length), 'x-content-length': '10' })
    expect(String(answer.body)).toBe(expected)
  })

  test('ignores HTTP range headers', async () => {
    const query = `get&pVersion=0045&contRep=Z1&docId=DIGITS`
    const answer = await workspace.source.call(query, { headers: { range: 'bytes=2-3', 'if-none-match': '*' } })
    expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '10' } })
  })

  test('answers HEAD with the headers only', async () => {
    const answer = await workspace.source.head('DIGITS', '&fromOffset=2&toOffset=5')
    expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '4', 'content-type': 'application/octet-stream' } })
    expect(answer.body).toHaveLength(0)
  })

  test('without a compId returns data, otherwise data1, otherwise nothing', async () => {
    await workspace.source.createParts('PAGES', [part('data2', 'two'), part('data1', 'one')])
    expect(String((await workspace.source.get('PAGES')).body)).toBe('one')
    await workspace.source.createParts('NOTES', [part('note', 'n')])
    expect((await workspace.source.get('NOTES')).headers['x-errordescription']).toMatch(/^component_not_found/)
  })

  test('compares compId by case first, then without case', async () => {
    await workspace.source.createParts('CASES', [part('Data', 'upper'), part('data', 'lower')])
    expect(String((await workspace.source.get('CASES', '&compId=Data')).body)).toBe('upper')
    expect(String((await workspace.source.get('CASES', '&compId=DATA')).body)).toBe('upper')
    expect(String((await workspace.source.get(docId, '&compId=NOTE')).body)).toBe('abc')
  })

  test('answers 404 for an unknown document, and 409 if its content is no longer stored', async () => {
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

  test('aborts the connection if stored bytes are missing, instead of ending the body early', async () => {
    await workspace.source.create('TORN', Buffer.alloc(4 * 1024 * 1024, 'x'))
    const { content_id } = await scene.db('documents').where({ doc_id: 'TORN' }).first()
    await scene.db('content_chunks').where({ content_id, seq: 15 }).delete()
    await expect(workspace.source.get('TORN')).rejects.toThrow('other side closed')
    expect((await workspace.source.get('TORN', '&toOffset=99')).body).toHaveLength(100)
  })
})

describe('serverInfo', () => {
  test('answers as specified', async () => {
    const answer = await workspace.source.serverInfo('&contRep=Z1')
    expect(answer.headers['content-type']).toBe('text/plain; charset=us-ascii')
    const body = String(answer.body)
      .replaceAll(/\d\d:\d\d:\d\d/g, '10:15:30')
      .replaceAll(/\d{4}-\d\d-\d\d/g, '2026-03-02')
    expect(body).toBe(
      'serverStatus="running";serverVendorId="Document Relay";serverVersion="1.0";serverBuild="1";serverTime="10:15:30";' +
        'serverDate="2026-03-02";serverStatusDescription="";pVersion="0045";\r\n' +
        'contRep="Z1";contRepDescription="Inbox";contRepStatus="running";contRepStatusDescription="signatures are not verified";pVersion="0045";\r\n',
    )
  })

  test('without contRep lists every repository of the workspace, and needs no pVersion', async () => {
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

  test('says what becomes of a document that is not forwarded', async () => {
    const { workspaceId, source } = await scene.workspace()
    const descriptions = async () =>
      await Promise.all(
        ['&contRep=Z1', '', '&contRep=Z1&resultAs=html'].map(async (more) => {
          const body = String((await source.serverInfo(more)).body)
          expect(body).toMatch(/contRepStatus(?:="|<\/th><td>)running/)
          return /contRepStatusDescription(?:="|<\/th><td>)([^"<]*)/.exec(body)![1]
        }),
      )
    const all = (text: string) => [text, text, text]
    expect(await descriptions()).toEqual(all('signatures are not verified'))
    await scene.db('connections').where({ workspace_id: workspaceId }).update({ is_active: false })
    expect(await descriptions()).toEqual(
      all('signatures are not verified; documents are stored and not forwarded: no connection is active'),
    )
    await scene.db('connections').where({ workspace_id: workspaceId }).delete()
    expect(await descriptions()).toEqual(all('signatures are not verified; documents are discarded: no connection leads to a destination'))
  })

  test('answers 404 for an unknown repository or workspace', async () => {
    expect((await workspace.source.serverInfo('&contRep=Z9')).headers['x-errordescription']).toMatch(/^repository_not_found/)
    const answer = await fetch(`${scene.api.baseUrl}/receiver/acme/nowhere?serverInfo`)
    expect(answer.status).toBe(404)
  })

  test('returns an HTML page for resultAs=html', async () => {
    const answer = await workspace.source.serverInfo('&resultAs=html')
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(String(answer.body)).toContain('<td>Inbox</td>')
  })
})
