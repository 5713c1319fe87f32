import { randomBytes } from 'node:crypto'
import { createKey } from '../../src/commands/key.ts'
import { createCertificates } from '../../src/db/certificates.ts'
import { newId } from '../../src/ids.ts'
import { expirationIn, signedQuery, type RawParameter } from '../support/signed-query.ts'
import { createSigner, type Signer } from '../support/signer.ts'
import { part, type SourceAnswer } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { startCaptureScene, type CaptureScene, type CaptureWorkspace } from './scene.ts'

let scene: CaptureScene
let signer: Signer

beforeAll(async () => {
  ;[scene, signer] = await Promise.all([
    startCaptureScene({ RELAY_SIGNATURE_SKEW_MS: '0', CAPTURE_BODY_MAX_BYTES: '100000', CAPTURE_COMMIT_BODY_MAX_BYTES: '50000' }),
    createSigner('RSA 2048'),
  ])
})
afterAll(async () => {
  await signer.remove()
  await scene.stop()
})

const idOf = (answer: SourceAnswer) => answer.headers['x-relay-request-id']!

/** Replays a request and shows the new one. */
const replay = async (workspace: CaptureWorkspace, id: string) => {
  const { status, json } = await workspace.ask('POST', `/requests/${id}/replay`)
  expect([status, json]).toEqual([202, { data: { replay_of: id, new_request_id: expect.stringMatching(/^[0-9A-Z]{26}$/) } }])
  const again = json.data.new_request_id as string
  expect(again > id).toBe(true)
  // no waiting: what a 202 names is there
  const { json: found } = await workspace.ask('GET', `/requests/${again}`)
  return { id: again, ...found.data.attributes }
}

const refusalOf = async (workspace: CaptureWorkspace, id: string, key = workspace.key) => {
  const { status, json } = await workspace.ask('POST', `/requests/${id}/replay`, key)
  return { status, code: json.error.code }
}

const forget = (workspace: CaptureWorkspace, docId: string) =>
  scene.db('archive_documents').where({ repository_id: workspace.repositoryId, doc_id: docId }).update({ deleted_at: scene.db.fn.now() })

describe('a replay', () => {
  it('takes a captured document once more, byte by byte, and is captured and marked in turn', async () => {
    const workspace = await scene.workspace()
    const data = randomBytes(90_000)
    const first = await workspace.source.create('D1', data, { headers: { 'content-type': 'image/tiff', 'x-relay-object-id': 'O1' } })
    await forget(workspace, 'D1')
    // a large body follows its document
    await until('the body', async () => (await workspace.bodyOf(idOf(first), 'request')).status === 200)
    // as if it had come from elsewhere
    const request = { id: idOf(first) }
    await scene.db('captured_requests').where(request).update({ source_ip: '192.0.2.77' })
    const again = await replay(workspace, idOf(first))
    expect(again).toMatchObject({ status_code: 201, replay_of: idOf(first), channel: 'receiver', http_method: 'PUT', uri: workspace.path })
    const was = await workspace.captureOf(first)
    for (const name of ['query_string', 'request_headers', 'source_ip', 'request_content_length', 'request_body_truncated']) {
      expect([name, again[name]]).toEqual([name, was[name]])
    }
    expect(again.response_headers['x-relay-request-id']).toBe(again.id)
    const answer = await workspace.source.get('D1')
    expect([answer.status, answer.headers['content-type'], answer.body.equals(data)]).toEqual([200, 'image/tiff', true])
    expect((await workspace.bodyOf(again.id, 'request')).bytes.equals(data)).toBe(true)
    const documents = await scene.db('documents').where({ workspace_id: workspace.workspaceId }).orderBy('id')
    expect(documents).toMatchObject([{ erp_object_id: 'O1' }, { erp_object_id: 'O1' }])
    // a document of today: it is listed, named and kept as such
    expect(documents[1]!.received_at.getTime()).toBeGreaterThan(documents[0]!.received_at.getTime())
    const launched = scene.receiver.launched.filter(({ documentId }) => documents.some(({ id }) => id === documentId))
    expect(launched).toHaveLength(2)
    // and may be replayed itself
    expect(await replay(workspace, again.id)).toMatchObject({ status_code: 403, replay_of: again.id })
  })

  it('mends what was refused for a reason that is gone', async () => {
    const workspace = await scene.workspace()
    await scene.db('repositories').where({ id: workspace.repositoryId }).update({ repo_id: 'LATER' })
    const refused = await workspace.source.createParts('D1', [part('data', 'hello'), part('note', 'n')])
    expect(refused.status).toBe(404)
    await workspace.captureOf(refused)
    await scene.db('repositories').where({ id: workspace.repositoryId }).update({ repo_id: 'Z1' })
    expect(await replay(workspace, idOf(refused))).toMatchObject({ status_code: 201 })
    expect(String((await workspace.source.get('D1', '&compId=note')).body)).toBe('n')
  })

  it('of every other command answers as the command does', async () => {
    const workspace = await scene.workspace()
    await workspace.source.create('D1', 'hello')
    const large = await workspace.source.create('D2', randomBytes(300_000))
    expect(large.status).toBe(201)
    const got = await workspace.captureOf(await workspace.source.get('D1'))
    const again = await replay(workspace, got.id)
    expect(again).toMatchObject({ status_code: 200, response_content_length: 5, response_body_truncated: false })
    expect(String((await workspace.bodyOf(again.id, 'response')).bytes)).toBe('hello')
    const tooLong = await workspace.captureOf(await workspace.source.get('D2'))
    expect(await replay(workspace, tooLong.id)).toMatchObject({
      status_code: 200,
      response_content_length: 300_000,
      response_body_truncated: true,
    })
    for (const answer of [
      await workspace.source.serverInfo(),
      await workspace.source.search('D1', '&compId=data&pattern=l'),
      await workspace.source.head('D1'),
      await workspace.source.call('nonsense'),
    ]) {
      const { id } = await workspace.captureOf(answer)
      expect(await replay(workspace, id)).toMatchObject({ status_code: answer.status })
    }
    const appended = await workspace.source.append('D1', '!')
    expect(await replay(workspace, idOf(appended))).toMatchObject({ status_code: 200 })
    expect(String((await workspace.source.get('D1')).body)).toBe('hello!!')
  })
})

describe('a signed create', () => {
  const base = ['contRep', 'docId', 'accessMode', 'authId', 'expiration', 'compId']
  const authId = 'CN%3DTST'

  const startSigned = async () => {
    const workspace = await scene.workspace()
    await scene.db('repositories').where({ id: workspace.repositoryId }).update({ signature_verification: true })
    await workspace.source.call(`putCert&pVersion=0046&authId=${authId}&contRep=Z1`, { method: 'PUT', body: signer.der })
    const certificates = createCertificates(scene.db)
    const [certificate] = await certificates.listAll(workspace.repositoryId)
    const setStatus = (status: 'active' | 'inactive') =>
      certificates.setStatus(workspace.workspaceId, workspace.repositoryId, certificate!.id, status, { type: 'system', userId: null })
    const create = async (expiration: string, message?: string) => {
      const parameters: RawParameter[] = [
        ['pVersion', '0045'],
        ['contRep', 'Z1'],
        ['docId', 'D1'],
        ['compId', 'data'],
        ['accessMode', 'c'],
        ['authId', authId],
        ['expiration', expiration],
      ]
      const query = await signedQuery(signer, 'create', parameters, { signed: base, digest: 'sha256', ...(message && { message }) })
      const send = () => workspace.source.call(query, { method: 'PUT', body: 'signed' })
      return { send, answer: await send() }
    }
    return { ...workspace, setStatus, create }
  }
  const refusal = (captured: { response_headers: Record<string, string> }) => captured.response_headers['x-errordescription']?.split(':')[0]

  it('is replayed with the same result as then after its signature has expired, and nothing else is relaxed', async () => {
    const signed = await startSigned()
    const inactive = await signed.create(expirationIn(60))
    expect(inactive.answer.status).toBe(401)
    await signed.setStatus('active')
    const late = await signed.create(expirationIn(-60))
    const wrong = await signed.create(expirationIn(60), 'another message')
    // as short as may be: a busy machine takes longer to sign and send than two seconds
    let created = await signed.create(expirationIn(2))
    for (let seconds = 4; created.answer.status !== 201 && seconds < 60; seconds *= 2) created = await signed.create(expirationIn(seconds))
    const { send, answer } = created
    expect([late.answer.status, wrong.answer.status, answer.status]).toEqual([401, 401, 201])
    await until('it has expired', async () => (await send()).headers['x-errordescription']?.startsWith('url_expired'))

    expect(await replay(signed, idOf(answer))).toMatchObject({ status_code: 403 })
    await forget(signed, 'D1')
    expect(await replay(signed, idOf(answer))).toMatchObject({ status_code: 201 })
    for (const refused of [late.answer, wrong.answer]) {
      const { id } = await signed.captureOf(refused)
      expect((await replay(signed, id)).status_code).toBe(401)
    }
    await signed.setStatus('inactive')
    expect(refusal(await replay(signed, idOf(answer)))).toBe('certificate_inactive')
    await scene
      .db('workspaces')
      .where({ id: signed.workspaceId })
      .update({ settings: { receiver_allowed_cidrs: ['192.0.2.0/24'] } })
    expect(refusal(await replay(signed, idOf(answer)))).toBe('address_not_allowed')
  })
})

describe('409 and 404', () => {
  it('answer for what cannot be sent again as it was', async () => {
    const workspace = await scene.workspace()
    const truncated = await workspace.source.create('D1', randomBytes(100_001))
    const secret = await workspace.source.create('D2', '{"token":"x"}', { headers: { 'content-type': 'application/json' } })
    const gone = await workspace.source.create('D3', 'hello')
    await scene
      .db('captured_bodies')
      .where({ request_id: idOf(gone) })
      .delete()
    const bridge = await workspace.source.create('D4', 'hello')
    await scene
      .db('captured_requests')
      .where({ id: idOf(bridge) })
      .update({ channel: 'bridge' })
    for (const answer of [truncated, secret, gone, bridge]) {
      expect(await refusalOf(workspace, idOf(answer))).toEqual({ status: 409, code: 'conflict' })
    }
    const empty = await workspace.source.create('D5', '')
    expect(await replay(workspace, idOf(empty))).toMatchObject({ status_code: 403 })
  })

  it('answer for what is unknown, or of another workspace, and 403 for a key below admin', async () => {
    const [workspace, other] = [await scene.workspace(), await scene.workspace()]
    const theirs = idOf(await other.source.create('D1', 'x'))
    for (const id of [newId(), theirs, 'nonsense']) {
      expect(await refusalOf(workspace, id)).toEqual({ status: 404, code: 'not_found' })
      for (const path of ['', '/body/request']) expect((await workspace.ask('GET', `/requests/${id}${path}`)).status).toBe(404)
    }
    const own = idOf(await workspace.source.create('D1', 'x'))
    const { key } = await createKey(scene.db, { workspace: workspace.name, level: 'member' })
    expect(await refusalOf(workspace, own, key)).toEqual({ status: 403, code: 'forbidden' })
    expect(await scene.db('documents').where({ workspace_id: workspace.workspaceId })).toHaveLength(1)
  })
})
