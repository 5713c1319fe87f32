import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { startScene, type SceneWorkspace } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { multipartBody, openSocket, part, partOf } from '../support/source-system.ts'
import { documentsToCome } from '../support/starts.ts'
import { expectRefusal, withoutServerHeaders } from './answers.ts'

const scene = share(await startScene())
const workspace = await scene.workspace()

const docId1 = '005056B5A3F21EEFA9C1D04F7B6E8C11'

describe('create by PUT', () => {
  let first: { workspace: SceneWorkspace; answer: string }
  beforeAll(async () => {
    const creating = await scene.workspace()
    const { send, socket, untilClosed } = await openSocket(scene.api.port)
    await send(
      `PUT ${creating.path}?create&pVersion=0045&contRep=Z1&docId=${docId1}&compId=data&docProt=rud&accessMode=c&authId=CN%3DTST&expiration=20301231235959&secKey=MIIB%3D HTTP/1.1\r\n` +
        'Host: cs\r\nContent-Type: application/pdf; version=1.7\r\nContent-Length: 5\r\nConnection: close\r\n\r\n%PDF-',
    )
    first = { workspace: creating, answer: await untilClosed() }
    socket.destroy()
  })

  test('answers as specified', async () => {
    expect(first.answer).toMatch(/\r\nx-relay-request-id: [0-9A-Z]{26}\r\n/)
    expect(withoutServerHeaders(first.answer)).toBe('HTTP/1.1 201 created\r\nContent-Length: 0\r\nCache-Control: no-store\r\n\r\n')
    expect(await scene.db('archive_documents').where({ doc_id: docId1 })).toMatchObject([{ doc_prot: 'rud' }])
  })

  test('stores the bytes with their content type', async () => {
    const answer = await first.workspace.source.get(docId1)
    expect(answer).toMatchObject({ status: 200, reason: 'OK', headers: { 'content-type': 'application/pdf; version=1.7' } })
    expect(String(answer.body)).toBe('%PDF-')
  })

  test('starts the workflow of the document', async () => {
    expect(await documentsToCome(scene.db, first.workspace.workspaceSlug)).toMatchObject([
      { kind: 'startDocument', input: { docId: docId1, compId: 'data', repoId: 'Z1', destinations: [{ name: 'archive' }] } },
    ])
  })

  test('answers 403 for an existing docId, for any component', async () => {
    for (const compId of ['data', 'note']) {
      const answer = await first.workspace.source.create(docId1, 'again', { compId })
      expect(answer.status).toBe(403)
      expect(answer.headers['cache-control']).toBe('no-store')
      expectRefusal(answer, 'document_exists')
    }
  })

  test('accepts an empty component', async () => {
    expect((await workspace.source.create('EMPTY', '')).status).toBe(201)
    const answer = await workspace.source.get('EMPTY')
    expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '0' } })
  })

  test('uses the default content type if none is sent', async () => {
    const { send, untilClosed } = await openSocket(scene.api.port)
    const query = 'create&pVersion=0045&contRep=Z1&docId=TYPELESS&compId=data'
    await send(`PUT ${workspace.path}?${query} HTTP/1.1\r\nHost: cs\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx`)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 201 created/)
    expect((await workspace.source.get('TYPELESS')).headers['content-type']).toBe('application/octet-stream')
  })

  test.each([
    ['Content-Length: 1\r\nContent-Encoding: gzip', 'x', 400],
    ['Content-Length: 1\r\nContent-Encoding: gzip, identity', 'x', 400],
    ['Transfer-Encoding: gzip, chunked', '1\r\nx\r\n0\r\n\r\n', 400],
    ['Content-Length: 1\r\nContent-Encoding: Identity', 'x', 201],
    ['Transfer-Encoding: Chunked', '1\r\nx\r\n0\r\n\r\n', 201],
  ])('refuses an encoded body, which would be delivered as it is: %j', async (headers, body, status) => {
    const { send, untilClosed } = await openSocket(scene.api.port)
    const query = `create&pVersion=0045&contRep=Z1&docId=${randomUUID()}&compId=data`
    await send(`PUT ${workspace.path}?${query} HTTP/1.1\r\nHost: cs\r\n${headers}\r\nConnection: close\r\n\r\n${body}`)
    const answer = await untilClosed()
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer.includes('X-ErrorDescription: invalid_parameter: the body is encoded')).toBe(status === 400)
  })

  test('stores metadata from the request headers', async () => {
    const headers = { 'x-relay-object-type': 'BKPF', 'x-relay-object-id': '100019000000012026', 'x-relay-ar-object': 'FIIINVOICE' }
    expect((await workspace.source.create('META', 'x', { headers })).status).toBe(201)
    expect(await scene.db('documents').where({ doc_id: 'META' })).toMatchObject([
      { erp_object_type: 'BKPF', erp_object_id: '100019000000012026', ar_object: 'FIIINVOICE' },
    ])
  })

  test('streams 20 MiB in and out', async () => {
    const data = randomBytes(20 * 1024 * 1024)
    const created = await workspace.source.create('LARGE', Readable.from([data.subarray(0, 5_000_000), data.subarray(5_000_000)]))
    expect(created.status).toBe(201)
    const answer = await workspace.source.get('LARGE')
    expect(answer.headers['content-length']).toBe(String(data.length))
    const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
    expect(sha256(answer.body)).toBe(sha256(data))
  })

  test('accepts exactly one of two concurrent requests with the same docId, with small and large bodies', async () => {
    const racing = await scene.workspace()
    const large = randomBytes(600_000)
    for (let round = 0; round < 100; round += 1) {
      const body = round % 10 === 0 ? large : 'small'
      const answers = await Promise.all([racing.source.create(`T${round}`, body), racing.source.create(`T${round}`, body)])
      expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, 403])
    }
    expect(await racing.countRows()).toEqual({ archiveDocuments: 100, documents: 100, contents: 100 })
    expect(await documentsToCome(scene.db, racing.workspaceSlug)).toHaveLength(100)
  })
})

describe('create by POST', () => {
  test('reads lines that end with LF alone', async () => {
    const parts = [part('data', '%PDF-\r'), part('note', 'a\r\nb\n')]
    const body = multipartBody('B', parts, { line: '\n', afterBody: '\n' })
    const headers = { 'content-type': 'multipart/form-data; boundary=B' }
    const answer = await workspace.source.call('create&pVersion=0045&contRep=Z1&docId=LF1', { method: 'POST', headers, body })
    expect(answer.status).toBe(201)
    expect(String((await workspace.source.get('LF1')).body)).toBe('%PDF-\r')
    expect(String((await workspace.source.get('LF1', '&compId=note')).body)).toBe('a\r\nb\n')
  })

  test('creates one document with all components in the order of the parts', async () => {
    const parts = [part('data', '%PDF-', 'application/pdf; version=1.7'), part('descr', '0 5 X\n', 'application/x-alf-descr; charset=')]
    const created = await workspace.source.createParts('PARTS', parts)
    expect(created).toMatchObject({ status: 201, reason: 'created', headers: { 'content-length': '0' } })
    const descr = await workspace.source.get('PARTS', '&compId=descr')
    expect(descr.headers['content-type']).toBe('application/x-alf-descr; charset=')
    expect(String(descr.body)).toBe('0 5 X\n')
    const rows = await scene.db('documents').where({ doc_id: 'PARTS' }).orderBy('position')
    expect(rows.map(({ comp_id }) => comp_id)).toEqual(['data', 'descr'])
    const starts = await documentsToCome(scene.db, workspace.workspaceSlug)
    expect(starts.filter(({ input }) => input.docId === 'PARTS')).toHaveLength(2)
  })

  test('creates an empty document from a body without parts', async () => {
    expect((await workspace.source.createParts('NOTHING', [])).status).toBe(201)
    const answer = await workspace.source.info('NOTHING')
    expect(answer).toMatchObject({ status: 200, headers: { 'x-numbercomps': '0' } })
    expect((await workspace.source.get('NOTHING')).headers['x-errordescription']).toMatch(/^component_not_found/)
    expect((await workspace.source.createParts('NOTHING', [])).status).toBe(403)
  })

  test('refuses ten thousand parts by the default limit, and stores nothing', async () => {
    const many = await scene.workspace()
    const parts = Array.from({ length: 10_000 }, (_, index) => part(`c${index}`, 'x'))
    const refused = await many.source.createParts('MANY', parts)
    expect([refused.status, refused.headers['x-errordescription']]).toEqual([
      400,
      expect.stringMatching(/^too_large: .* at most 1000 components$/),
    ])
    expect(await many.countRows()).toEqual({ archiveDocuments: 0, documents: 0, contents: 0 })
  })

  test('streams parts of megabytes', async () => {
    const [one, other] = [randomBytes(6_000_001), randomBytes(3_000_000)]
    const created = await workspace.source.createParts('HEAVY', [part('data1', one), part('data2', other), part('note', 'n')])
    expect(created.status).toBe(201)
    expect((await workspace.source.get('HEAVY')).body.equals(one)).toBe(true)
    expect((await workspace.source.get('HEAVY', '&compId=data2')).body.equals(other)).toBe(true)
  })
})

describe('a repository without a route', () => {
  test('acknowledges a document and records it as discarded, without its content', async () => {
    const unrouted = await scene.workspace([])
    expect((await unrouted.source.create('D1', 'a'.repeat(300_000))).status).toBe(201)
    expect((await unrouted.source.createParts('D2', [part('data', 'abc'), part('note', 'x')])).status).toBe(201)
    expect((await unrouted.source.get('D1')).headers['x-errordescription']).toMatch(/^document_not_found/)
    const rows = await scene.db('documents').where({ workspace_id: unrouted.workspaceId }).orderBy(['doc_id', 'comp_id'])
    expect(rows).toMatchObject([
      { doc_id: 'D1', comp_id: 'data', status: 'discarded', size_bytes: 300_000, content_id: null },
      { doc_id: 'D2', comp_id: 'data', status: 'discarded', size_bytes: 3 },
      { doc_id: 'D2', comp_id: 'note', status: 'discarded', size_bytes: 1 },
    ])
    expect(await unrouted.countRows()).toEqual({ archiveDocuments: 0, documents: 3, contents: 0 })
  })

  test('is logged once, until documents have been delivered again', async () => {
    const { source, repositoryId } = await scene.workspace()
    const links = scene.db('connection_repositories').where({ repository_id: repositoryId })
    const [link] = await links.clone()
    const logged = () => scene.api.log.filter((line) => line.includes('is not delivered')).map((line) => JSON.parse(line) as object)
    const before = logged().length
    await source.create('D1', 'connected')
    await links.clone().delete()
    const first = await source.create('D2', 'x')
    await source.createParts('D3', [part('data', 'x')])
    await source.get('D1')
    expect(logged().slice(before)).toMatchObject([{ level: 'warn', request_id: first.headers['x-relay-request-id'], repo_id: 'Z1' }])
    await scene.db('connection_repositories').insert(link)
    await source.create('D4', 'connected')
    await links.clone().delete()
    const documents = [partOf('D5', 'data', 'x'), partOf('D6', 'data', 'x')]
    const second = await source.mCreate('D5', documents)
    expect(logged().slice(before + 1)).toMatchObject([{ request_id: second.headers['x-relay-request-id'] }])
  })

  test('answers 403 for a docId that was stored while it had a route, for short and long bodies', async () => {
    const unrouted = await scene.workspace()
    await unrouted.source.create('D1', 'before')
    await scene.db('connection_repositories').where({ repository_id: unrouted.repositoryId }).delete()
    for (const body of ['x', 'x'.repeat(300_000)]) {
      const answer = await unrouted.source.create('D1', body)
      expect(answer).toMatchObject({ status: 403, headers: { 'x-errordescription': expect.stringMatching(/^document_exists/) } })
    }
    expect(String((await unrouted.source.get('D1')).body)).toBe('before')
    expect(await unrouted.countRows()).toEqual({ archiveDocuments: 1, documents: 1, contents: 1 })
  })
})
