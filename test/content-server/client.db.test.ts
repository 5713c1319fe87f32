import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createCertificates } from '../../src/access/certificates.ts'
import { createContentServerClient, type ContentServer } from '../../src/content-server/client.ts'
import { createRequestSigner } from '../../src/content-server/sign.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createThrowAwayKey, type ThrowAwayKind } from '../../src/security/throw-away-key.ts'
import { startHttpTarget } from '../support/http-target.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { multipartBody } from '../support/source-system.ts'

const [scene, target] = await Promise.all([startScene().then(share), startHttpTarget().then(share)])
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
afterAll(outbound.close)

const limits = { outbound, connectTimeoutMs: 5_000, idleTimeoutMs: 5_000 }
const clientOf = (server: Partial<ContentServer> & { url: string }) => createContentServerClient({ contRep: 'Z1', ...server }, limits)
const component = (compId: string, text: string, contentType = 'text/plain; charset=utf-8') => ({
  compId,
  contentType,
  sizeBytes: Buffer.byteLength(text),
  body: Buffer.from(text),
})
const valueOf = async <T>(outcome: Promise<{ ok: true; value: T } | { ok: false; failure: Error }>): Promise<T> => {
  const settled = await outcome
  if (!settled.ok) throw settled.failure
  return settled.value
}

/** Creates a repository of the relay, and a client that signs with the key if there is one. */
const startServer = async (kind?: ThrowAwayKind) => {
  const workspace = await scene.workspace()
  const url = scene.api.baseUrl + workspace.path
  if (!kind) return { workspace, client: clientOf({ url }) }
  await scene.db('repositories').where({ id: workspace.repositoryId }).update({ signature_verification: true })
  const identity = { ...(await createThrowAwayKey(kind, 'check', 1)), authId: 'CN=CHECK,OU=test' }
  return { workspace, identity, client: clientOf({ url, signer: createRequestSigner(identity) }) }
}

describe('a client of the relay', () => {
  test('creates, reads, changes and deletes documents', async () => {
    const { client } = await startServer()
    expect(await valueOf(client.serverInfo())).toMatchObject({
      server: { serverStatus: 'running' },
      repository: { contRep: 'Z1', contRepStatus: 'running' },
    })
    await valueOf(client.create('D1', component('data', 'hello')))
    expect(await client.create('D1', component('data', 'hello'))).toMatchObject({
      ok: false,
      failure: { code: 'forbidden', status: 403, message: expect.stringContaining('document_exists') },
    })
    await valueOf(client.update('D1', component('note ä+.txt', 'a note', 'text/plain')))
    await valueOf(client.update('D1', component('data', 'hello world')))

    const facts = await valueOf(client.info('D1'))
    expect(facts).toMatchObject({
      docId: 'D1',
      status: 'online',
      components: [
        { compId: 'data', contentType: 'text/plain; charset=utf-8', sizeBytes: 11, status: 'online' },
        { compId: 'note ä+.txt', contentType: 'text/plain', sizeBytes: 6 },
      ],
    })
    expect(Math.abs(facts.createdAt!.getTime() - Date.now())).toBeLessThan(60_000)
    expect((await valueOf(client.info('D1', { compId: 'data' }))).components).toHaveLength(1)

    const content = await valueOf(client.get('D1'))
    expect(content).toMatchObject({ compId: 'data', sizeBytes: 11, contentLength: 11, contentType: 'text/plain; charset=utf-8' })
    expect(String(await buffer(content.body))).toBe('hello world')
    const note = await valueOf(client.get('D1', { compId: 'note ä+.txt' }))
    expect(note).toMatchObject({ compId: 'note ä+.txt', contentType: 'text/plain' })
    expect(String(await buffer(note.body))).toBe('a note')

    await valueOf(client.delete('D1'))
    expect(await client.info('D1')).toMatchObject({ ok: false, failure: { code: 'not_found', status: 404 } })
  })

  test('sends a component from a stream, whole or not at all', async () => {
    const { client } = await startServer()
    const large = Buffer.alloc(3_000_000, 'x')
    await valueOf(client.create('D1', { compId: 'data', contentType: 'image/tiff', sizeBytes: large.length, body: Readable.from([large]) }))
    expect((await valueOf(client.info('D1'))).components.map(({ compId, sizeBytes }) => [compId, sizeBytes])).toEqual([['data', 3_000_000]])
    const short = { compId: 'data', contentType: null, sizeBytes: 10, body: Readable.from([Buffer.from('short')]) }
    expect(await client.create('D2', short)).toMatchObject({ ok: false, failure: { code: 'unreachable' } })
    expect(await client.info('D2')).toMatchObject({ ok: false, failure: { code: 'not_found' } })
  })

  test.each(['rsa', 'dsa'] as const)('signs with a key of type %s as soon as its certificate is active', async (kind) => {
    const { client, identity, workspace } = await startServer(kind)
    const putCert = `putCert&pVersion=0045&contRep=Z1&authId=${encodeURIComponent(identity!.authId)}`
    expect(await workspace.source.call(putCert, { method: 'PUT', body: identity!.certificate })).toMatchObject({ status: 200 })
    expect(await client.create('D1', component('data', 'hello'))).toMatchObject({
      failure: { code: 'unauthorized', message: expect.stringContaining('certificate_inactive') },
    })
    const certificates = createCertificates(scene.db)
    const [certificate] = await certificates.listAll(workspace.repositoryId)
    const { workspaceId, repositoryId } = workspace
    await certificates.setStatus({ workspaceId, repositoryId, actor: { type: 'system', userId: null } }, certificate!.id, 'active')
    await valueOf(client.create('D1', component('data', 'hello')))
    await valueOf(client.update('D1', component('data', 'hello world')))
    expect(String(await buffer((await valueOf(client.get('D1', { compId: 'data' }))).body))).toBe('hello world')
    await valueOf(client.delete('D1'))
  })
})

describe('an answer that is not that of a content server', () => {
  const multipart = { 'content-type': 'multipart/form-data; boundary=B' }
  const part = { headers: { 'X-compId': 'data', 'Content-Length': 0, 'X-Content-Length': 5 }, body: '' }

  test.each([
    ['a page of a proxy', { 'content-type': 'text/html' }, '<html>sign in</html>'],
    ['another document', { ...multipart, 'x-docid': 'D2' }, multipartBody('B', [part])],
    ['fewer components than announced', { ...multipart, 'x-numberComps': '2' }, multipartBody('B', [part])],
    ['a part without a name', multipart, multipartBody('B', [{ headers: { 'Content-Length': 0 }, body: '' }])],
    [
      'a name that no component can have',
      multipart,
      multipartBody('B', [{ ...part, headers: { ...part.headers, 'X-compId': 'x'.repeat(256) } }]),
    ],
    ['a component twice', multipart, multipartBody('B', [part, part])],
    ['a body that is encoded', { ...multipart, 'content-encoding': 'gzip' }, multipartBody('B', [part])],
    ['half a part', multipart, '--B\r\nX-compId: da'],
  ] as const)('is a failure: %s', async (_, headers, body) => {
    target.answerWith((_arrival, response) => void response.writeHead(200, headers).end(body))
    expect(await clientOf({ url: `${target.origin}/archive` }).info('D1')).toMatchObject({
      ok: false,
      failure: { code: 'malformed_answer' },
    })
  })

  test('is none that a proxy may compress', async () => {
    target.answerWith((_, response) => void response.writeHead(200, { 'content-encoding': 'br' }).end('hello'))
    expect(await clientOf({ url: target.origin }).get('D1')).toMatchObject({
      failure: { code: 'malformed_answer', message: expect.stringContaining('its body is encoded (Content-Encoding: br)') },
    })
    expect(target.arrivals.at(-1)!.headers['accept-encoding']).toBe('identity')
    target.answerWith((_, response) => void response.writeHead(502, { 'content-encoding': 'gzip' }).end('\x1f\x8b'))
    expect(await clientOf({ url: target.origin }).get('D1')).toMatchObject({ failure: { message: 'the content server answers 502' } })
  })

  test('has no size of a part that only tells the length of its empty body', async () => {
    const { 'X-Content-Length': _, ...headers } = part.headers
    target.answerWith((_arrival, response) => void response.writeHead(200, multipart).end(multipartBody('B', [{ ...part, headers }])))
    expect((await valueOf(clientOf({ url: target.origin }).info('D1'))).components).toMatchObject([
      { compId: 'data', sizeBytes: undefined },
    ])
  })

  test('is a failure with what the server says', async () => {
    target.answerWith((_, response) => void response.writeHead(500, { 'X-ErrorDescription': 'jukebox \xe4 offline' }).end('x'))
    expect(await clientOf({ url: target.origin }).get('D1')).toMatchObject({
      failure: { code: 'server_error', status: 500, message: 'the content server answers 500: jukebox ä offline' },
    })
    target.answerWith((_, response) => void response.writeHead(204).end())
    expect(await clientOf({ url: target.origin }).get('D1')).toMatchObject({ failure: { code: 'unexpected_status', status: 204 } })
  })

  test('is a failure that does not repeat a signature', async () => {
    const page = 'cannot serve /archive?get&docId=D1&secKey=MIIB%2Fabc&x, secKey%3DMIIB'
    target.answerWith((_, response) => void response.writeHead(502).end(page))
    expect(await clientOf({ url: target.origin }).info('D1')).toMatchObject({
      failure: { message: 'the content server answers 502: cannot serve /archive?get&docId=D1&secKey=...&x, secKey%3D...' },
    })
  })

  test('is a failure if it is too long', async () => {
    target.answerWith(
      (_, response) => void response.writeHead(200, multipart).end(multipartBody('B', [{ ...part, body: 'x'.repeat(5_000_000) }])),
    )
    expect(await clientOf({ url: target.origin }).info('D1')).toMatchObject({ failure: { code: 'too_large' } })
    target.answerWith((_, response) => void response.end('a'.repeat(70_000)))
    expect(await clientOf({ url: target.origin }).serverInfo()).toMatchObject({ failure: { code: 'too_large' } })
  })

  test('is a failure if it breaks off', async () => {
    target.answerWith((_, response) => {
      response.writeHead(200, { 'content-length': 10 }).write('hello')
      setTimeout(() => response.destroy(), 50)
    })
    const { body } = await valueOf(clientOf({ url: target.origin }).get('D1'))
    await expect(buffer(body)).rejects.toMatchObject({ name: 'ContentServerFailure', code: 'unreachable' })
  })

  test('is a failure if nothing listens, and if the address is not allowed', async () => {
    expect(await clientOf({ url: 'http://127.0.0.1:1' }).serverInfo()).toMatchObject({ failure: { code: 'unreachable' } })
    const blocked = await clientOf({ url: 'http://10.1.2.3' }).serverInfo()
    expect(blocked).toMatchObject({ failure: { message: expect.stringContaining('RELAY_ALLOWED_PRIVATE_CIDRS') } })
  })

  test('ends with the signal of the call', async () => {
    target.answerWith(() => {})
    const aborted = new AbortController()
    const call = clientOf({ url: target.origin }).info('D1', { signal: aborted.signal })
    setTimeout(() => aborted.abort(new Error('the caller has stopped')), 50)
    await expect(call).rejects.toThrow('the caller has stopped')
  })
})
