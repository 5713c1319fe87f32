import { randomBytes } from 'node:crypto'
import { createCertificates } from '../../src/access/certificates.ts'
import { newId } from '../../src/base/ids.ts'
import { startScene, type SceneWorkspace } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { expirationIn, signedQuery, type RawParameter } from '../support/signed-query.ts'
import { createSigner } from '../support/signer.ts'
import { opaqueBytes, part, type SourceAnswer } from '../support/source-system.ts'
import { documentsToCome } from '../support/starts.ts'
import { until } from '../support/until.ts'

const [scene, signer] = await Promise.all([
  startScene({ variables: { RELAY_SIGNATURE_SKEW_MS: '0', CAPTURE_BODY_MAX_BYTES: '100000' } }).then(share),
  createSigner('RSA 2048').then(share),
])

const idOf = (answer: SourceAnswer) => answer.headers['x-relay-request-id']!

/** Replays a request. @returns the captured request of the replay */
const replay = async (workspace: SceneWorkspace, id: string) => {
  const { status, json } = await workspace.ask('POST', `/requests/${id}/replay`)
  expect([status, json]).toEqual([202, { data: { replay_of: id, new_request_id: expect.stringMatching(/^[0-9A-Z]{26}$/) } }])
  const replayId = json.data.new_request_id as string
  expect(replayId > id).toBe(true)
  // Without waiting, because the replay is captured before the 202.
  const { json: captured } = await workspace.ask('GET', `/requests/${replayId}`)
  return { id: replayId, ...captured.data.attributes }
}

const refusalOf = async (workspace: SceneWorkspace, id: string, key = workspace.keys.admin) => {
  const { status, json } = await workspace.ask('POST', `/requests/${id}/replay`, key)
  return { status, code: json.error.code }
}

const markDeleted = (workspace: SceneWorkspace, docId: string) =>
  scene.db('archive_documents').where({ repository_id: workspace.repositoryId, doc_id: docId }).update({ deleted_at: scene.db.fn.now() })

describe('a replay', () => {
  test('receives the document again, byte for byte, and is captured with the id of the original', async () => {
    const workspace = await scene.workspace()
    const data = opaqueBytes(90_000)
    const first = await workspace.source.create('D1', data, { headers: { 'content-type': 'image/tiff', 'x-relay-object-id': 'O1' } })
    await markDeleted(workspace, 'D1')
    // Simulates a request from another address.
    const request = { id: idOf(first) }
    await scene.db('captured_requests').where(request).update({ source_ip: '192.0.2.77' })
    const again = await replay(workspace, idOf(first))
    expect(again).toMatchObject({ status_code: 201, replay_of: idOf(first), channel: 'receiver', http_method: 'PUT', uri: workspace.path })
    const original = await workspace.captureOf(first)
    for (const name of ['query_string', 'request_headers', 'source_ip', 'request_content_length', 'request_body_truncated']) {
      expect([name, again[name]]).toEqual([name, original[name]])
    }
    expect(again.response_headers['x-relay-request-id']).toBe(again.id)
    const answer = await workspace.source.get('D1')
    expect([answer.status, answer.headers['content-type'], answer.body.equals(data)]).toEqual([200, 'image/tiff', true])
    expect((await workspace.bodyOf(again.id, 'request')).bytes.equals(data)).toBe(true)
    const documents = await scene.db('documents').where({ workspace_id: workspace.workspaceId }).orderBy('id')
    expect(documents).toMatchObject([{ erp_object_id: 'O1' }, { erp_object_id: 'O1' }])
    // The replayed document has the date of the replay, which its listing, path and retention use.
    expect(documents[1]!.received_at.getTime()).toBeGreaterThan(documents[0]!.received_at.getTime())
    const starts = await documentsToCome(scene.db, workspace.workspaceSlug)
    expect(starts.filter(({ input }) => documents.some(({ id }) => id === input.documentId))).toHaveLength(2)
    // A replay can be replayed.
    expect(await replay(workspace, again.id)).toMatchObject({ status_code: 403, replay_of: again.id })
  })

  test('succeeds if the relay had failed and works again', async () => {
    const workspace = await scene.workspace()
    await scene.db.raw(`
      create function fail() returns trigger language plpgsql as $$ begin raise 'out of memory' using errcode = '53200'; end $$;
      create trigger fail before insert on documents
      for each row when (new.workspace_id = '${workspace.workspaceId}') execute function fail();
    `)
    const failed = await workspace.source.createParts('D1', [part('data', 'hello'), part('note', 'n')])
    expect(failed.status).toBe(503)
    expect((await workspace.captureOf(failed)).document_ids).toEqual([])
    await scene.db.raw('drop trigger fail on documents')
    const again = await replay(workspace, idOf(failed))
    expect(again).toMatchObject({ status_code: 201, document_ids: [expect.any(String), expect.any(String)] })
    expect(String((await workspace.source.get('D1', '&compId=note')).body)).toBe('n')
  })

  test('of a refused request succeeds once the reason of the refusal no longer exists', async () => {
    const workspace = await scene.workspace()
    const missing = await workspace.source.get('D1')
    const data = opaqueBytes(90_000)
    const toLater = 'create&pVersion=0045&contRep=LATER&docId=D1&compId=data'
    const refused = await workspace.source.call(toLater, { method: 'PUT', body: data })
    expect([missing.status, refused.status]).toEqual([404, 404])
    await workspace.source.create('D1', 'hello')
    await workspace.captureOf(refused)
    expect(await replay(workspace, idOf(missing))).toMatchObject({ status_code: 200 })
    // As long as the reason exists, the replay is refused and can be replayed itself.
    const again = await replay(workspace, idOf(refused))
    expect(again).toMatchObject({ status_code: 404, request_body_truncated: false })
    const repository = { repo_id: 'LATER', name: 'Later' }
    const path = `/api/${workspace.name}/repositories`
    expect((await scene.api.call('POST', path, { key: workspace.keys.admin, body: repository })).status).toBe(201)
    const created = await replay(workspace, again.id)
    expect(created.status_code).toBe(201)
    expect((await workspace.bodyOf(created.id, 'request')).bytes.equals(data)).toBe(true)
  })

  test('of a request whose body is not worth keeping is refused', async () => {
    const workspace = await scene.workspace()
    const refused = await workspace.source.call('steal&pVersion=0045&contRep=Z1&docId=D1', { method: 'PUT', body: 'x' })
    await workspace.captureOf(refused)
    expect(await refusalOf(workspace, idOf(refused))).toEqual({ status: 409, code: 'conflict' })
  })

  test('of any other command is answered like the command', async () => {
    const workspace = await scene.workspace()
    await workspace.source.create('D1', 'hello')
    const large = await workspace.source.create('D2', randomBytes(300_000))
    expect(large.status).toBe(201)
    const read = await workspace.captureOf(await workspace.source.get('D1'))
    const again = await replay(workspace, read.id)
    expect(again).toMatchObject({ status_code: 200, response_content_length: 5, response_body_truncated: false })
    expect(String((await workspace.bodyOf(again.id, 'response')).bytes)).toBe('hello')
    const readLarge = await workspace.captureOf(await workspace.source.get('D2'))
    expect(await replay(workspace, readLarge.id)).toMatchObject({
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
      certificates.setStatus(
        { workspaceId: workspace.workspaceId, repositoryId: workspace.repositoryId, actor: { type: 'system', userId: null } },
        certificate!.id,
        status,
      )
    const create = async (expiration: string, { message, body = 'signed' }: { message?: string; body?: string } = {}) => {
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
      const send = () => workspace.source.call(query, { method: 'PUT', body })
      return { send, answer: await send() }
    }
    return { ...workspace, setStatus, create }
  }
  const refusal = (captured: { error_code: string | null }) => captured.error_code

  test('is replayed with the result of the original after its signature has expired, while all other checks apply', async () => {
    const signed = await startSigned()
    const inactive = await signed.create(expirationIn(60))
    expect(inactive.answer.status).toBe(401)
    await signed.captureOf(inactive.answer)
    await signed.setStatus('active')
    // The certificate was not yet active.
    expect(await replay(signed, idOf(inactive.answer))).toMatchObject({ status_code: 201 })
    await markDeleted(signed, 'D1')
    const late = await signed.create(expirationIn(-60), { body: '' })
    const wrong = await signed.create(expirationIn(60), { message: 'another message', body: '' })
    // As short as possible, but a busy machine may need longer than two seconds to sign and send.
    let created = await signed.create(expirationIn(2))
    for (let seconds = 4; created.answer.status !== 201 && seconds < 60; seconds *= 2) created = await signed.create(expirationIn(seconds))
    const { send, answer } = created
    expect([late.answer.status, wrong.answer.status, answer.status]).toEqual([401, 401, 201])
    await until('the signature has expired', async () => (await send()).headers['x-errordescription']?.startsWith('url_expired'))

    expect(await replay(signed, idOf(answer))).toMatchObject({ status_code: 403 })
    await markDeleted(signed, 'D1')
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

describe('the replay endpoint', () => {
  test('answers 409 for a request that cannot be repeated exactly', async () => {
    // Of documents that are discarded, there are no contents.
    const [workspace, unrouted] = [await scene.workspace(), await scene.workspace([])]
    const truncated = await unrouted.source.create('D1', randomBytes(100_001))
    const secret = await unrouted.source.create('D2', '{"token":"x"}', { headers: { 'content-type': 'application/json' } })
    const withoutBody = await workspace.source.create('D3', 'hello')
    await scene
      .db('captured_bodies')
      .where({ request_id: idOf(withoutBody) })
      .delete()
    const bridge = await workspace.source.create('D4', 'hello')
    await scene
      .db('captured_requests')
      .where({ id: idOf(bridge) })
      .update({ channel: 'bridge' })
    // Its query string was sealed with a key that is no longer configured.
    const unreadable = await workspace.source.create('D6', '')
    await scene
      .db('captured_requests')
      .where({ id: idOf(unreadable) })
      .update({ query_sealed: Buffer.from('nothing') })
    for (const answer of [truncated, secret]) {
      expect(await refusalOf(unrouted, idOf(answer))).toEqual({ status: 409, code: 'conflict' })
    }
    for (const answer of [withoutBody, bridge, unreadable]) {
      expect(await refusalOf(workspace, idOf(answer))).toEqual({ status: 409, code: 'conflict' })
    }
    const empty = await workspace.source.create('D5', '')
    expect(await replay(workspace, idOf(empty))).toMatchObject({ status_code: 403 })
  })

  test('answers 404 for an unknown request or one of another workspace, and 403 to a key below admin', async () => {
    const [workspace, other] = [await scene.workspace(), await scene.workspace()]
    const foreignId = idOf(await other.source.create('D1', 'x'))
    for (const id of [newId(), foreignId, 'nonsense']) {
      expect(await refusalOf(workspace, id)).toEqual({ status: 404, code: 'not_found' })
      for (const path of ['', '/body/request']) expect((await workspace.ask('GET', `/requests/${id}${path}`)).status).toBe(404)
    }
    const ownId = idOf(await workspace.source.create('D1', 'x'))
    expect(await refusalOf(workspace, ownId, workspace.keys.member)).toEqual({ status: 403, code: 'forbidden' })
    expect(await scene.db('documents').where({ workspace_id: workspace.workspaceId })).toHaveLength(1)
  })
})
