import { createHash, randomBytes } from 'node:crypto'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { openSocket, part } from '../support/source-system.ts'
import { asExample, boundaryOf, exampleHeaders, exampleOf } from './answers.ts'

const docId = '005056B5A3F21EEFA9C1D04F7B6E8C11'

const scene = share(await startScene())
const workspace = await scene.workspace()

describe('docGet', () => {
  test('answers byte for byte as specified', async () => {
    const components = [part('data', 'HELLO', 'text/plain; charset=ISO-8859-1'), part('note', 'abc', 'application/x-note')]
    await workspace.source.createParts(docId, components)
    await workspace.age(docId)

    const answer = await workspace.source.docGet(docId)
    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({ ...exampleHeaders(docId), 'content-length': String(answer.body.length) })
    const example = exampleOf([
      { compId: 'data', contentType: 'text/plain; charset=ISO-8859-1', sizeBytes: 5, body: 'HELLO' },
      { compId: 'note', contentType: 'application/x-note', sizeBytes: 3, body: 'abc' },
    ])
    expect(example).toHaveLength(524)
    expect(asExample(answer)).toBe(example)
  })

  test('returns megabytes unchanged, with empty components in between', async () => {
    const [one, other] = [randomBytes(5_000_001), randomBytes(1_048_576)]
    const components = [part('empty', ''), part('data1', one), part('B\u00fcro.bin', other), part('last', '')]
    await workspace.source.createParts('HEAVY', components)
    const answer = await workspace.source.docGet('HEAVY')
    expect(answer.headers['content-length']).toBe(String(answer.body.length))
    const boundary = boundaryOf(answer)
    const sections = answer.body.toString('latin1').split(`--${boundary}`)
    expect(sections).toHaveLength(6)
    expect(sections.at(-1)).toBe('--\r\n')
    const bodies = sections.slice(1, -1).map((text) => Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4, -2), 'latin1'))
    const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
    expect(bodies.map(sha256)).toEqual([Buffer.alloc(0), one, other, Buffer.alloc(0)].map(sha256))
    expect(sections[3]).toContain(`X-compId: ${Buffer.from('B\u00fcro.bin').toString('latin1')}\r\n`)
  })

  test('is an empty multipart for an empty document', async () => {
    await workspace.source.createParts('EMPTY', [])
    const answer = await workspace.source.docGet('EMPTY')
    const boundary = boundaryOf(answer)
    expect(answer.headers).toMatchObject({ 'x-numbercomps': '0', 'content-length': String(answer.body.length) })
    expect(String(answer.body)).toBe(`--${boundary}\r\n--${boundary}--\r\n`)
  })

  test('answers 404 for an unknown document, and 409 if content of it is no longer stored', async () => {
    expect(await workspace.source.docGet('NOWHERE')).toMatchObject({
      status: 404,
      headers: { 'x-errordescription': expect.stringMatching(/^document_not_found: /) },
    })
    await workspace.source.createParts('HALF', [part('data', 'x'), part('note', 'y')])
    await scene.db('documents').where({ doc_id: 'HALF', comp_id: 'note' }).update({ content_id: null })
    expect(await workspace.source.docGet('HALF')).toMatchObject({
      status: 409,
      headers: { 'x-errordescription': expect.stringMatching(/^component_offline: [ -~]+$/) },
    })
  })

  test('aborts the connection if stored bytes are missing, instead of ending the body early', async () => {
    await workspace.source.createParts('TORN', [part('data', Buffer.alloc(4 * 1024 * 1024, 'x')), part('note', 'n')])
    const { content_id } = await scene.db('documents').where({ doc_id: 'TORN', comp_id: 'data' }).first()
    await scene.db('content_chunks').where({ content_id, seq: 15 }).delete()
    await expect(workspace.source.docGet('TORN')).rejects.toThrow('other side closed')
  })

  test('keeps serving requests after clients have disconnected in the middle of an answer', async () => {
    await workspace.source.create('LEFT', Buffer.alloc(20 * 1024 * 1024, 'x'))
    for (let round = 0; round < 30; round += 1) {
      const { send, socket } = await openSocket(scene.api.port)
      await send(`GET ${workspace.path}?docGet&pVersion=0045&contRep=Z1&docId=LEFT HTTP/1.1\r\nHost: cs\r\n\r\n`)
      if (round % 2 === 0) await new Promise((resolve) => socket.once('readable', resolve))
      socket.destroy()
    }
    expect((await workspace.source.docGet('LEFT')).body.length).toBeGreaterThan(20 * 1024 * 1024)
  })

  test('is refused by PUT', async () => {
    const answer = await workspace.source.call('docGet&pVersion=0045&contRep=Z1&docId=D1', { method: 'PUT', body: 'x' })
    expect(answer.status).toBe(400)
  })
})
