import { randomBytes } from 'node:crypto'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { multipartBody, openSocket, part, partOf, type PartToSend } from '../support/source-system.ts'
import { documentsToCome } from '../support/starts.ts'
import { withoutServerHeaders } from './answers.ts'

const scene = share(await startScene({ limits: { receiver: { maxParts: 50 } } }))

const lines = (...outcomes: [docId: string, retCode: number][]) =>
  outcomes
    .map(
      ([docId, retCode]) =>
        `docId="${docId}";retCode="${retCode}";${retCode === 403 ? 'errorDescription="document already exists";' : ''}\r\n`,
    )
    .join('')

describe('mCreate', () => {
  test('answers byte for byte as specified if some of the documents exist', async () => {
    const workspace = await scene.workspace()
    const [one, two] = ['D0000000000000000000000000000001', 'D0000000000000000000000000000002'] as const
    await workspace.source.create(two, 'bb')
    const body = multipartBody('MB7', [partOf(one, 'data', 'aa'), partOf(two, 'data', 'cc')])
    const { send, untilClosed } = await openSocket(scene.api.port)
    await send(
      `POST ${workspace.path}?mCreate&pVersion=0045&contRep=Z1&docId=${one} HTTP/1.1\r\nHost: cs\r\n` +
        `Content-Type: multipart/form-data; boundary=MB7\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${String(body)}`,
    )
    const answer = withoutServerHeaders(await untilClosed())
    const [head, text] = answer.split('\r\n\r\n')
    expect(head!.split('\r\n').toSorted()).toEqual([
      'Cache-Control: no-store',
      'Content-Length: 157',
      'Content-Type: text/plain; charset=us-ascii',
      'HTTP/1.1 250 missing documents created',
    ])
    expect(text).toBe(lines([one, 201], [two, 403]))
    expect(String((await workspace.source.get(one)).body)).toBe('aa')
    expect(String((await workspace.source.get(two)).body)).toBe('bb')
  })

  test('writes one mebibyte of small components with their document, and the others before it', async () => {
    const workspace = await scene.workspace()
    const contents = Array.from({ length: 20 }, () => randomBytes(200 * 1_024))
    const parts = contents.map((data, index) => partOf('M1', `page${index}`, data))
    expect(await workspace.source.mCreate('M1', parts)).toMatchObject({ status: 201 })
    const { rows } = await scene.db.raw<{ rows: { count: number }[] }>(
      `
      select count(*)
      from documents
      join content_chunks using (content_id)
      where workspace_id = ?
        and content_chunks.xmin = documents.xmin
      `,
      [workspace.workspaceId],
    )
    expect(rows).toEqual([{ count: 5 }])
    for (const [index, data] of contents.entries()) {
      expect((await workspace.source.get('M1', `&compId=page${index}`)).body.equals(data)).toBe(true)
    }
  })

  test('answers 201 if all documents are new, with a line for each in the order of the parts', async () => {
    const workspace = await scene.workspace()
    const answer = await workspace.source.mCreate(
      'M2',
      [partOf('M2', 'data', 'x'), partOf('M2', 'note', 'y', 'application/x-note'), partOf('M1', 'data', 'z')],
      '&docProt=rud',
    )
    expect(answer).toMatchObject({ status: 201, reason: 'created' })
    expect(String(answer.body)).toBe(lines(['M2', 201], ['M1', 201]))
    expect((await workspace.source.info('M2')).headers['x-numbercomps']).toBe('2')
    expect((await workspace.source.get('M2', '&compId=note')).headers['content-type']).toBe('application/x-note')
    expect(await scene.db('archive_documents').where({ workspace_id: workspace.workspaceId }).pluck('doc_prot')).toEqual(['rud', 'rud'])
    const starts = await documentsToCome(scene.db, workspace.workspaceSlug)
    expect(starts.map(({ input }) => `${input.docId}/${input.compId}`).toSorted()).toEqual(['M1/data', 'M2/data', 'M2/note'])
  })

  test('continues after a document that exists, and stores nothing for it', async () => {
    const workspace = await scene.workspace()
    const large = randomBytes(600_000)
    await workspace.source.create('M2', 'old')
    const before = await workspace.countRows()
    const parts = [partOf('M1', 'data', 'a'), partOf('M1', 'note', 'n'), partOf('M2', 'data', large), partOf('M3', 'data', large)]
    const answer = await workspace.source.mCreate('M1', parts)
    expect(answer.status).toBe(250)
    expect(String(answer.body)).toBe(lines(['M1', 201], ['M2', 403], ['M3', 201]))
    expect((await workspace.source.get('M3')).body.equals(large)).toBe(true)
    expect(await workspace.countRows()).toEqual({
      archiveDocuments: before.archiveDocuments + 2,
      documents: before.documents + 3,
      contents: before.contents + 3,
    })
  })

  test('answers 500 if a document cannot be created, creates the others, and names the failed one', async () => {
    const workspace = await scene.workspace()
    await scene.db.raw(`alter table documents add constraint no_failing check (doc_id <> 'FAIL')`)
    try {
      const answer = await workspace.source.mCreate('M1', [
        partOf('M1', 'data', 'a'),
        partOf('FAIL', 'data', 'b'.repeat(600_000)),
        partOf('M3', 'data', 'c'),
      ])
      expect(answer).toMatchObject({
        status: 500,
        headers: { 'x-errordescription': 'internal_error: 1 of 3 documents could not be created' },
      })
      expect(String(answer.body).split('\r\n')).toEqual([
        'docId="M1";retCode="201";',
        'docId="FAIL";retCode="500";errorDescription="internal_error: an internal error occurred";',
        'docId="M3";retCode="201";',
        '',
      ])
    } finally {
      await scene.db.raw('alter table documents drop constraint no_failing')
    }
    expect(await workspace.countRows()).toEqual({ archiveDocuments: 2, documents: 2, contents: 2 })
  })

  test('is acknowledged without storing content if the repository has no route', async () => {
    const unrouted = await scene.workspace([])
    const answer = await unrouted.source.mCreate('M1', [partOf('M1', 'data', 'a'), partOf('M2', 'data', 'b')])
    expect(answer.status).toBe(201)
    expect(String(answer.body)).toBe(lines(['M1', 201], ['M2', 201]))
    expect(await unrouted.countRows()).toEqual({ archiveDocuments: 0, documents: 2, contents: 0 })
  })

  test.each<[string, PartToSend[]]>([
    ['no part', []],
    ['a part without X-docId', [partOf('M1', 'data', 'a'), part('data', 'b')]],
    ['a docId with a slash', [partOf('M1', 'data', 'a'), partOf('../M2', 'data', 'b')]],
    ['the same component twice', [partOf('M1', 'data', 'a'), partOf('M1', 'data', 'b')]],
    ['parts of a document that are not together', [partOf('M1', 'data', 'a'), partOf('M2', 'data', 'b'), partOf('M1', 'note', 'c')]],
    ['another docId in the URL', [partOf('M2', 'data', 'a'), partOf('M1', 'data', 'b')]],
    ['a malformed part at the end', [partOf('M1', 'data', 'a'.repeat(600_000)), { headers: { 'X-docId': 'M2' }, body: 'x' }]],
  ])('answers 400 and creates no document, for %s', async (_, parts) => {
    const workspace = await scene.workspace()
    const answer = await workspace.source.mCreate('M1', parts)
    expect(answer).toMatchObject({ status: 400, headers: { 'x-errordescription': expect.stringMatching(/^invalid_parameter: /) } })
    expect(await workspace.countRows()).toEqual({ archiveDocuments: 0, documents: 0, contents: 0 })
  })

  test('refuses more parts than the limit', async () => {
    const workspace = await scene.workspace()
    const parts = Array.from({ length: 51 }, (_, index) => partOf(`M${index}`, 'data', 'x'))
    expect((await workspace.source.mCreate('M0', parts.slice(0, 50))).status).toBe(201)
    expect((await workspace.source.mCreate('M0', parts)).headers['x-errordescription']).toMatch(/^too_large/)
  })

  test('creates each document once if several requests contain it concurrently', async () => {
    const workspace = await scene.workspace()
    const parts = Array.from({ length: 20 }, (_, index) => partOf(`M${index}`, 'data', 'x'))
    const answers = await Promise.all(Array.from({ length: 4 }, () => workspace.source.mCreate('M0', parts)))
    const created = answers.flatMap(({ body }) => String(body).match(/docId="\w+";retCode="201"/g) ?? [])
    expect(new Set(created).size).toBe(20)
    expect(created).toHaveLength(20)
    expect(await workspace.countRows()).toEqual({ archiveDocuments: 20, documents: 20, contents: 20 })
  })
})
