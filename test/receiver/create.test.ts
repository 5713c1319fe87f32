import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { openSocket, part } from '../support/source-system.ts'
import { bare } from './answers.ts'
import { startScene, type Scene, type SceneWorkspace } from './receiver.ts'

let scene: Scene
let workspace: SceneWorkspace

beforeAll(async () => {
  scene = await startScene()
  workspace = await scene.workspace()
})
afterAll(() => scene.stop())

const docId1 = '005056B5A3F21EEFA9C1D04F7B6E8C11'

describe('create by PUT', () => {
  it('answers as the interface has it', async () => {
    const { path } = workspace
    const { send, socket, untilClosed } = await openSocket(scene.receiver.port)
    await send(
      `PUT ${path}?create&pVersion=0045&contRep=Z1&docId=${docId1}&compId=data&docProt=rud&accessMode=c&authId=CN%3DTST&expiration=20301231235959&secKey=MIIB%3D HTTP/1.1\r\n` +
        'Host: cs\r\nContent-Type: application/pdf; version=1.7\r\nContent-Length: 5\r\nConnection: close\r\n\r\n%PDF-',
    )
    const answer = await untilClosed()
    socket.destroy()
    expect(answer).toMatch(/\r\nx-relay-request-id: [0-9A-Z]{26}\r\n/)
    expect(bare(answer)).toBe('HTTP/1.1 201 created\r\nContent-Length: 0\r\nCache-Control: no-store\r\n\r\n')
    expect(await scene.db('archive_documents').where({ doc_id: docId1 })).toMatchObject([{ doc_prot: 'rud' }])
  })

  it('gives the bytes back under the content type they came with', async () => {
    const answer = await workspace.source.get(docId1)
    expect(answer).toMatchObject({ status: 200, reason: 'OK', headers: { 'content-type': 'application/pdf; version=1.7' } })
    expect(String(answer.body)).toBe('%PDF-')
  })

  it('hands the document over to be delivered', async () => {
    expect(scene.receiver.launched).toMatchObject([{ docId: docId1, compId: 'data', repoId: 'Z1', destinations: [{ name: 'archive' }] }])
  })

  it('answers 403 for a docId that exists, whichever component is sent', async () => {
    for (const compId of ['data', 'note']) {
      const answer = await workspace.source.create(docId1, 'again', { compId })
      expect(answer.status).toBe(403)
      expect(answer.headers).toMatchObject({ 'content-type': 'text/plain; charset=us-ascii', 'cache-control': 'no-store' })
      expect(answer.headers['x-errordescription']).toMatch(/^document_exists: [ -~]+$/)
      expect(String(answer.body)).toBe(`${answer.headers['x-errordescription']}\r\n`)
    }
  })

  it('takes a component without a byte', async () => {
    expect((await workspace.source.create('EMPTY', '')).status).toBe(201)
    const answer = await workspace.source.get('EMPTY')
    expect(answer).toMatchObject({ status: 200, headers: { 'content-length': '0' } })
  })

  it('takes the default content type where none is sent', async () => {
    const { send, untilClosed } = await openSocket(scene.receiver.port)
    const query = 'create&pVersion=0045&contRep=Z1&docId=TYPELESS&compId=data'
    await send(`PUT ${workspace.path}?${query} HTTP/1.1\r\nHost: cs\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx`)
    expect(await untilClosed()).toMatch(/^HTTP\/1.1 201 created/)
    expect((await workspace.source.get('TYPELESS')).headers['content-type']).toBe('application/octet-stream')
  })

  it('takes metadata from the headers of a source that can set them', async () => {
    const headers = { 'x-relay-object-type': 'BKPF', 'x-relay-object-id': '100019000000012026', 'x-relay-ar-object': 'FIIINVOICE' }
    expect((await workspace.source.create('META', 'x', { headers })).status).toBe(201)
    expect(await scene.db('documents').where({ doc_id: 'META' })).toMatchObject([
      { erp_object_type: 'BKPF', erp_object_id: '100019000000012026', ar_object: 'FIIINVOICE' },
    ])
  })

  it('streams 20 MiB in and out', async () => {
    const data = randomBytes(20 * 1024 * 1024)
    const created = await workspace.source.create('LARGE', Readable.from([data.subarray(0, 5_000_000), data.subarray(5_000_000)]))
    expect(created.status).toBe(201)
    const answer = await workspace.source.get('LARGE')
    expect(answer.headers['content-length']).toBe(String(data.length))
    const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
    expect(sha256(answer.body)).toBe(sha256(data))
  })

  it('lets exactly one of two simultaneous twins win, small or large', async () => {
    const twins = await scene.workspace()
    const large = randomBytes(600_000)
    for (let round = 0; round < 100; round += 1) {
      const body = round % 10 === 0 ? large : 'twin'
      const answers = await Promise.all([twins.source.create(`T${round}`, body), twins.source.create(`T${round}`, body)])
      expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, 403])
    }
    expect(await scene.leftovers(twins.workspaceId)).toEqual({ archiveDocuments: 100, documents: 100, contents: 100 })
    expect(scene.receiver.launched.filter(({ workspace: name }) => name.endsWith(twins.workspaceSlug))).toHaveLength(100)
  })
})

describe('create by POST', () => {
  it('makes one document of all components, in the order in which they came', async () => {
    const parts = [part('data', '%PDF-', 'application/pdf; version=1.7'), part('descr', '0 5 X\n', 'application/x-alf-descr; charset=')]
    const created = await workspace.source.createParts('PARTS', parts)
    expect(created).toMatchObject({ status: 201, reason: 'created', headers: { 'content-length': '0' } })
    const descr = await workspace.source.get('PARTS', '&compId=descr')
    expect(descr.headers['content-type']).toBe('application/x-alf-descr; charset=')
    expect(String(descr.body)).toBe('0 5 X\n')
    const rows = await scene.db('documents').where({ doc_id: 'PARTS' }).orderBy('position')
    expect(rows.map(({ comp_id }) => comp_id)).toEqual(['data', 'descr'])
    expect(scene.receiver.launched.filter(({ docId }) => docId === 'PARTS')).toHaveLength(2)
  })

  it('makes an empty document of a body without parts', async () => {
    expect((await workspace.source.createParts('NOTHING', [])).status).toBe(201)
    const answer = await workspace.source.info('NOTHING')
    expect(answer).toMatchObject({ status: 200, headers: { 'x-numbercomps': '0' } })
    expect((await workspace.source.get('NOTHING')).headers['x-errordescription']).toMatch(/^component_not_found/)
    expect((await workspace.source.createParts('NOTHING', [])).status).toBe(403)
  })

  it('refuses ten thousand parts by the limit as it comes, and leaves nothing', async () => {
    const many = await scene.workspace()
    const parts = Array.from({ length: 10_000 }, (_, index) => part(`c${index}`, 'x'))
    const refused = await many.source.createParts('MANY', parts)
    expect([refused.status, refused.headers['x-errordescription']]).toEqual([
      400,
      expect.stringMatching(/^too_large: .* components at most$/),
    ])
    expect(await scene.leftovers(many.workspaceId)).toEqual({ archiveDocuments: 0, documents: 0, contents: 0 })
  })

  it('streams parts of many megabytes', async () => {
    const [one, other] = [randomBytes(6_000_001), randomBytes(3_000_000)]
    const created = await workspace.source.createParts('HEAVY', [part('data1', one), part('data2', other), part('note', 'n')])
    expect(created.status).toBe(201)
    expect((await workspace.source.get('HEAVY')).body.equals(one)).toBe(true)
    expect((await workspace.source.get('HEAVY', '&compId=data2')).body.equals(other)).toBe(true)
  })
})

describe('a repository that is wired to nothing', () => {
  it('acknowledges a document, keeps only that there was one, and cannot give it back', async () => {
    const unwired = await scene.workspace([])
    expect((await unwired.source.create('D1', 'a'.repeat(300_000))).status).toBe(201)
    expect((await unwired.source.createParts('D2', [part('data', 'abc'), part('note', 'x')])).status).toBe(201)
    expect((await unwired.source.get('D1')).headers['x-errordescription']).toMatch(/^document_not_found/)
    const rows = await scene.db('documents').where({ workspace_id: unwired.workspaceId }).orderBy(['doc_id', 'comp_id'])
    expect(rows).toMatchObject([
      { doc_id: 'D1', comp_id: 'data', status: 'discarded', size_bytes: 300_000, content_id: null },
      { doc_id: 'D2', comp_id: 'data', status: 'discarded', size_bytes: 3 },
      { doc_id: 'D2', comp_id: 'note', status: 'discarded', size_bytes: 1 },
    ])
    expect(await scene.leftovers(unwired.workspaceId)).toEqual({ archiveDocuments: 0, documents: 3, contents: 0 })
  })

  it('answers 403 for a docId that it kept while something was wired, however short the body', async () => {
    const unwired = await scene.workspace()
    await unwired.source.create('D1', 'before')
    await scene.db('connection_repositories').where({ repository_id: unwired.repositoryId }).delete()
    for (const body of ['x', 'x'.repeat(300_000)]) {
      const answer = await unwired.source.create('D1', body)
      expect(answer).toMatchObject({ status: 403, headers: { 'x-errordescription': expect.stringMatching(/^document_exists/) } })
    }
    expect(String((await unwired.source.get('D1')).body)).toBe('before')
    expect(await scene.leftovers(unwired.workspaceId)).toEqual({ archiveDocuments: 1, documents: 1, contents: 1 })
  })
})
