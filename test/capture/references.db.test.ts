import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId, timeOfId } from '../../src/base/ids.ts'
import { createCaptureStore, type Capture } from '../../src/capture/capture.ts'
import { createFilesStore } from '../../src/content/files.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { sweepOrphans } from '../../src/maintenance/sweep-orphans.ts'
import { startApi } from '../support/api.ts'
import { testConfig } from '../support/factories.ts'
import { startScene, type SceneWorkspace } from '../support/scene.ts'
import { multipartBody, opaqueBytes, part, type SourceAnswer } from '../support/source-system.ts'
import { describeReferences } from './references.ts'

const directory = mkdtempSync(join(tmpdir(), 'contents-'))
afterAll(() => rm(directory, { recursive: true, force: true }))

describeReferences('postgres', () => createPostgresStore)
describeReferences(
  'files',
  () => (db) => createFilesStore(db, createPostgresStore(db), { CONTENT_DIR: directory, CONTENT_DIR_MIN_BYTES: 0 }),
)

const MiB = 1024 * 1024

const scene = await startScene({ variables: { CAPTURE_BODY_MAX_BYTES: String(32 * MiB), CAPTURE_MEMORY_MAX_BYTES: String(MiB) } })
afterAll(() => scene.stop())

const idOf = (answer: SourceAnswer) => answer.headers['x-relay-request-id']!
const rowOf = (answer: SourceAnswer, kind: 'request' | 'response' = 'request') =>
  scene
    .db('captured_bodies')
    .where({ request_id: idOf(answer), kind })
    .first()
const requestBodyOf = async (workspace: SceneWorkspace, answer: SourceAnswer) => (await workspace.bodyOf(idOf(answer), 'request')).bytes

/** Returns a capture of a read of a content, as the queue writes it. */
const readOf = (workspace: SceneWorkspace, contentIds: string[]): Capture => {
  const id = newId()
  return {
    id,
    channel: 'receiver',
    userSlug: 'acme',
    workspaceSlug: workspace.workspaceSlug,
    httpMethod: 'GET',
    uri: '/',
    queryString: '',
    querySealed: null,
    repoId: 'Z1',
    docId: 'D1',
    requestHeaders: {},
    requestContentType: null,
    requestContentLength: 0,
    requestBodyTruncationReason: null,
    requestBody: null,
    sourceIp: '127.0.0.1',
    requestAt: timeOfId(id),
    statusCode: 200,
    errorCode: null,
    responseHeaders: {},
    responseContentType: null,
    responseContentLength: contentIds.length,
    responseBodyTruncationReason: null,
    responseBody: { data: null, redacted: false, pieces: contentIds.map((contentId) => ({ contentId, start: 0, sizeBytes: 1 })) },
    durationMs: 0,
    responseAt: new Date(),
    replayOf: null,
  }
}

describe('a captured body', () => {
  test('refers to a text document unless something in it is redacted', async () => {
    const workspace = await scene.workspace()
    const bodies: [string, string, boolean][] = [
      ['application/json', '{"name":"x"}', true],
      ['application/json', '{"password":"canary"}', false],
      ['text/xml', '<a><b>x</b></a>', true],
      ['text/xml', '<a><token>canary</token></a>', false],
      ['text/plain', ' \n{"password":"canary"}', false],
    ]
    for (const [index, [contentType, text, isReference]] of bodies.entries()) {
      const create = await workspace.source.create(`D${index}`, text, { headers: { 'content-type': contentType } })
      const read = await workspace.source.get(`D${index}`)
      expect(String(read.body)).toBe(text)
      await workspace.captureOf(read)
      for (const [answer, kind] of [
        [create, 'request'],
        [read, 'response'],
      ] as const) {
        const row = await rowOf(answer, kind)
        // A replay reads what the request contained from the content.
        const hasPieces = isReference || kind === 'request'
        expect([text, kind, row.pieces !== null, row.data === null]).toEqual([text, kind, hasPieces, isReference])
        const { bytes } = await workspace.bodyOf(idOf(answer), kind)
        expect(String(bytes)).toBe(text.replaceAll(/"canary"/g, '"[REDACTED]"').replaceAll('>canary<', '>[REDACTED]<'))
      }
    }
    const json = await workspace.captureOf(await workspace.source.get('D0'))
    expect(json.response_body_preview).toBe('{"name":"x"}')
  })

  test('is a copy if the document is not stored, or a multipart body contains more than its documents', async () => {
    const [unrouted, workspace] = [await scene.workspace([]), await scene.workspace()]
    const discarded = await unrouted.source.create('D1', 'hello')
    const parts = [{ headers: { 'Content-Type': 'text/plain' }, body: '' }, part('data', 'x')]
    const unnamed = await workspace.source.createParts('D1', parts)
    const several = await workspace.source.mCreate('D2', [{ headers: { 'X-docId': 'D2', 'X-compId': 'data' }, body: 'x' }])
    for (const answer of [discarded, unnamed, several])
      expect(await rowOf(answer)).toMatchObject({ data: expect.any(Buffer), pieces: null })
    expect(String(await requestBodyOf(unrouted, discarded))).toBe('hello')
    expect(await requestBodyOf(workspace, unnamed)).toEqual(multipartBody('KoZbnd01', parts))
  })

  test('that is one document needs no memory of the process', async () => {
    const workspace = await scene.workspace()
    const data = opaqueBytes(600_000)
    const create = await workspace.captureOf(await workspace.source.create('D1', data))
    expect(create.request_body_truncation_reason).toBeNull()
    expect((await workspace.bodyOf(create.id, 'request')).bytes.equals(data)).toBe(true)
    const read = await workspace.captureOf(await workspace.source.get('D1'))
    expect(read.response_body_truncation_reason).toBeNull()
    const parts = await workspace.captureOf(await workspace.source.createParts('D2', [part('data', data)]))
    expect(parts.request_body_truncation_reason).toBe('memory')
  })

  test('is not stored if the client disconnects while it reads the document', async () => {
    const workspace = await scene.workspace()
    await workspace.source.create('D1', randomBytes(24 * MiB))
    const url = `${scene.api.baseUrl}${workspace.path}?get&pVersion=0045&contRep=Z1&docId=D1`
    const [response] = await once(httpRequest(url).end(), 'response')
    response.destroy()
    const [read] = await workspace.list(2)
    expect(read.attributes).toMatchObject({ http_method: 'GET', response_body_truncation_reason: 'incomplete' })
    expect((await workspace.bodyOf(read.id, 'response')).status).toBe(404)
  })

  test('of an append is kept after the appended bytes were merged with others', async () => {
    const workspace = await scene.workspace()
    await workspace.source.create('D1', 'start')
    const answers: SourceAnswer[] = []
    for (let number = 0; number < 65; number += 1) answers.push(await workspace.source.append('D1', `append ${number}`))
    const sweep = () => sweepOrphans(scene.db, scene.api.stores, new Date(Date.now() + 60_000))
    expect(await sweep()).toBeGreaterThan(0)
    for (const [number, answer] of answers.entries()) expect(String(await requestBodyOf(workspace, answer))).toBe(`append ${number}`)
  })

  test('of an erased document is not found, even if it is captured late and the store has not removed the bytes', async () => {
    const workspace = await scene.workspace()
    await workspace.source.create('D1', 'hello')
    const { content_id: contentId } = await scene.db('documents').where({ workspace_id: workspace.workspaceId }).first('content_id')
    await scene.db('documents').where({ workspace_id: workspace.workspaceId }).update({ content_id: null })
    await scene.db('contents').where({ id: contentId }).update({ owned_at: null, captured_on: null })
    const late = readOf(workspace, [contentId])
    await createCaptureStore(scene.db).upsert([late])
    expect(await scene.db('contents').where({ id: contentId }).first()).toMatchObject({ captured_on: null })
    expect((await workspace.bodyOf(late.id, 'response')).status).toBe(404)
  })

  test('of a read changes the row of the content at most once a day', async () => {
    const workspace = await scene.workspace()
    await workspace.source.create('D1', 'hello')
    const inWorkspace = { workspace_id: workspace.workspaceId }
    const read = async () => {
      await workspace.captureOf(await workspace.source.get('D1'))
      return scene
        .db('contents')
        .where(inWorkspace)
        .first(scene.db.raw('xmin::text as version, captured_on = (now() at time zone :zone)::date as "isToday"', { zone: 'UTC' }))
    }
    const created = await read()
    expect(created.isToday).toBe(true)
    expect(await read()).toEqual(created)
    await scene.db('contents').where(inWorkspace).update({ captured_on: '2026-01-01' })
    const [first, second] = [await read(), await read()]
    expect(first.isToday).toBe(true)
    expect(second).toEqual(first)
  })

  test('cannot be downloaded from a process without access to the content store, which shows everything else', async () => {
    const workspace = await scene.workspace()
    const create = await workspace.source.create('D1', '<a>hello</a>', { headers: { 'content-type': 'text/xml' } })
    const api = await startApi(scene.db, { contents: {} })
    try {
      const path = `/api/${workspace.name}/requests/${idOf(create)}`
      const { json } = await api.call('GET', path, { key: workspace.keys.admin })
      expect(json.data.attributes).toMatchObject({ status_code: 201, request_body_truncated: false, request_body_preview: null })
      expect((await api.call('GET', `${path}/body/request`, { key: workspace.keys.admin })).status).toBe(503)
    } finally {
      await api.stop()
    }
    expect((await workspace.captureOf(create)).request_body_preview).toBe('<a>hello</a>')
  })

  test('that was stored as bytes is still found', async () => {
    const workspace = await scene.workspace()
    const create = await workspace.source.create('D1', 'hello')
    await scene
      .db('captured_bodies')
      .where({ request_id: idOf(create) })
      .update({ data: Buffer.from('bytes'), pieces: null })
    expect(String(await requestBodyOf(workspace, create))).toBe('bytes')
  })
})

test('captures of reads and retention lock the contents of the same documents in one order', async () => {
  const workspace = await scene.workspace(undefined, { workspaceSettings: { content_days: 1 } })
  const inWorkspace = { workspace_id: workspace.workspaceId }
  // Without one order, two statements that lock row by row deadlock if each of them takes its time.
  await scene.db.raw(`
    create function update_slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(0.01); return new; end $$;
    create trigger update_slowly before update on contents
    for each row when (new.workspace_id = '${workspace.workspaceId}') execute function update_slowly();
  `)
  for (let round = 0; round < 3; round += 1) {
    for (let number = 0; number < 8; number += 1) await workspace.source.create(`D${round}-${number}`, 'x')
    const documents = scene.db('documents').where(inWorkspace).whereNotNull('content_id').orderBy('content_id')
    const contentIds: string[] = await documents.pluck('content_id')
    // Retention takes the document that was received first, which is the last one here.
    for (const [index, contentId] of contentIds.entries()) {
      const receivedAt = new Date(Date.UTC(2026, 0, 1) - index * 1_000)
      await scene.db('documents').where({ content_id: contentId }).update({ status: 'delivered', received_at: receivedAt })
    }
    await scene.db('contents').where(inWorkspace).update({ captured_on: '2026-01-01' })
    const capture = (ids: string[]) => createCaptureStore(scene.db).upsert(ids.map((id) => readOf(workspace, [id])))
    const removeExpired = createRetention(scene.db, testConfig()).removeExpired(new Date(), new AbortController().signal)
    const [, , removed] = await Promise.all([capture(contentIds), capture(contentIds.toReversed()), removeExpired])
    expect(removed.contents).toBe(8)
  }
  await scene.db.raw('drop trigger update_slowly on contents')
})
