import { ensurePartitions } from '../../src/db/partitions.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { sweepOrphans } from '../../src/maintenance/sweep-orphans.ts'
import type { ApiOptions } from '../support/api.ts'
import { testConfig } from '../support/factories.ts'
import { startScene, type Scene, type SceneWorkspace } from '../support/scene.ts'
import { multipartBody, opaqueBytes, part, type SourceAnswer } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { withoutManifests } from '../support/without-manifests.ts'

const KiB = 1024
const bodyMaxBytes = 1024 * KiB
const dayMs = 86_400_000
const neverAborted = new AbortController().signal
const idOf = (answer: SourceAnswer) => answer.headers['x-relay-request-id']!
const daysFromNow = (days: number) => new Date(Date.now() + days * dayMs)

/** Defines the tests of captured bodies that refer to contents, for one content store. */
export const describeReferences = (name: string, openStore: () => NonNullable<ApiOptions['openStore']>) => {
  describe(`a captured body that is a document in the ${name} store`, () => {
    // Retention and the sweep count what all workspaces have, so each test has a scene of its own.
    let scene: Scene
    beforeEach(async () => {
      scene = await startScene({ variables: { CAPTURE_BODY_MAX_BYTES: String(bodyMaxBytes) }, openStore: openStore() })
    })
    afterEach(() => scene.stop())

    const contentIdsOf = (workspace: SceneWorkspace): Promise<string[]> =>
      scene.db('contents').where({ workspace_id: workspace.workspaceId }).orderBy('id').pluck('id')
    const isStored = async (workspace: SceneWorkspace, id: string, kind: 'request' | 'response' = 'request') =>
      (await workspace.bodyOf(id, kind)).status === 200

    /** Waits until a body is captured, and expects it to refer to contents and to have these bytes. */
    const expectReference = async (workspace: SceneWorkspace, answer: SourceAnswer, kind: 'request' | 'response', bytes: Buffer) => {
      const { id, [`${kind}_body_truncated`]: isTruncated } = await workspace.captureOf(answer)
      expect(isTruncated).toBe(false)
      expect(await scene.db('captured_bodies').where({ request_id: id, kind })).toMatchObject([{ data: null, pieces: expect.any(Array) }])
      const body = await workspace.bodyOf(id, kind)
      expect([body.status, body.bytes.equals(bytes), body.headers.get('content-length')]).toEqual([200, true, String(bytes.length)])
      return id
    }

    /** Marks the document as delivered, so that retention may remove its content. */
    const deliver = ({ workspaceId }: SceneWorkspace) =>
      scene.db('deliveries').where({ workspace_id: workspaceId }).update({ status: 'delivered' })
    const applyRetention = async (days: number) => {
      await withoutManifests(scene.db)
      const removed = await createRetention(scene.db, testConfig()).removeExpired(daysFromNow(days), neverAborted)
      // Retention has dropped the partitions of today.
      await ensurePartitions(scene.db, new Date())
      return removed
    }
    const sweep = () => sweepOrphans(scene.db, scene.api.stores, daysFromNow(100))

    test('has the bytes of a create, an update, an append and of every read', async () => {
      const workspace = await scene.workspace()
      const [data, update] = [opaqueBytes(300 * KiB), opaqueBytes(100 * KiB)]
      const create = await workspace.source.create('D1', data)
      // Without waiting, because the capture is committed with the document.
      expect((await workspace.bodyOf(idOf(create), 'request')).bytes.equals(data)).toBe(true)
      await expectReference(workspace, create, 'request', data)
      await expectReference(workspace, await workspace.source.get('D1'), 'response', data)
      const range = await workspace.source.get('D1', '&fromOffset=255999&toOffset=270000')
      await expectReference(workspace, range, 'response', data.subarray(255_999, 270_001))
      await expectReference(workspace, await workspace.source.update('D1', update), 'request', update)
      await expectReference(workspace, await workspace.source.append('D1', 'end'), 'request', Buffer.from('end'))
      await expectReference(workspace, await workspace.source.get('D1'), 'response', Buffer.concat([update, Buffer.from('end')]))
      const whole = await workspace.source.docGet('D1')
      expect(whole.body.includes(update)).toBe(true)
      await expectReference(workspace, whole, 'response', whole.body)
    })

    test('has the bytes of several components, with those around them', async () => {
      const workspace = await scene.workspace()
      const parts = [
        part('data', opaqueBytes(300 * KiB)),
        part('empty', ''),
        part('note', '\r\n\r\n--KoZbnd0\r\n\r\n'),
        part('data1', opaqueBytes(9)),
      ]
      const create = await workspace.source.createParts('D1', parts)
      expect(create.status).toBe(201)
      await expectReference(workspace, create, 'request', multipartBody('KoZbnd01', parts))
      const read = await workspace.source.docGet('D1')
      await expectReference(workspace, read, 'response', read.body)
    })

    test('is kept for its own time after retention has removed the content of the document', async () => {
      const workspace = await scene.workspace(undefined, { workspaceSettings: { content_days: 1, captured_bodies_days: 7 } })
      const data = opaqueBytes(300 * KiB)
      const create = await workspace.source.create('D1', data)
      const read = await workspace.source.docGet('D1')
      await deliver(workspace)
      const id = await expectReference(workspace, create, 'request', data)

      expect(await applyRetention(3)).toMatchObject({ contents: 1, capturedContents: 0 })
      expect(await sweep()).toBe(0)
      expect((await workspace.source.get('D1')).headers['x-errordescription']).toContain('component_offline')
      await expectReference(workspace, create, 'request', data)
      await expectReference(workspace, read, 'response', read.body)
      const replayed = await workspace.ask('POST', `/requests/${id}/replay`)
      expect(replayed.status).toBe(202)
      // The document exists, so the replay was refused, and its body is a copy.
      expect((await workspace.bodyOf(replayed.json.data.new_request_id, 'request')).bytes.equals(data)).toBe(true)

      // Retention counts the days from the last capture, and the job that removes the bytes runs later.
      expect((await applyRetention(9)).capturedContents).toBe(1)
      expect(await isStored(workspace, id)).toBe(false)
      expect(await contentIdsOf(workspace)).toHaveLength(1)
      expect(await sweep()).toBe(1)
      expect(await contentIdsOf(workspace)).toEqual([])
    })

    test('is kept for longer if the setting is raised in time', async () => {
      const workspace = await scene.workspace(undefined, { workspaceSettings: { content_days: 1, captured_bodies_days: 7 } })
      const create = await workspace.source.create('D1', opaqueBytes(10))
      await deliver(workspace)
      await applyRetention(3)
      const settings = { content_days: 1, captured_bodies_days: 30 }
      await scene.db('workspaces').where({ id: workspace.workspaceId }).update({ settings })
      expect((await applyRetention(29)).capturedContents).toBe(0)
      await sweep()
      expect(await isStored(workspace, idOf(create))).toBe(true)
      expect((await applyRetention(32)).capturedContents).toBe(1)
    })

    test('is erased with the document, also if retention has removed its content before', async () => {
      const workspace = await scene.workspace(undefined, { workspaceSettings: { content_days: 1 } })
      const answers = [
        await workspace.source.create('D1', opaqueBytes(10)),
        await workspace.source.update('D1', opaqueBytes(300 * KiB)),
        await workspace.source.createParts('D2', [part('data', 'x'), part('note', 'y')]),
      ]
      const read = await workspace.source.docGet('D1')
      await workspace.captureOf(read)
      await deliver(workspace)
      const [first, second] = await scene.db('documents').where({ workspace_id: workspace.workspaceId, doc_id: 'D1' }).orderBy('id')
      await applyRetention(3)
      expect(await scene.db('documents').where({ workspace_id: workspace.workspaceId }).whereNotNull('content_id')).toEqual([])
      expect(await contentIdsOf(workspace)).toHaveLength(4)

      expect((await workspace.ask('DELETE', `/documents/${second.id}/content`)).status).toBe(204)
      // The captured bodies of a docId are erased together, and nothing else kept these two contents.
      expect(await contentIdsOf(workspace)).toHaveLength(2)
      for (const answer of answers.slice(0, 2)) expect(await isStored(workspace, idOf(answer))).toBe(false)
      expect(await isStored(workspace, idOf(read), 'response')).toBe(false)
      expect(await isStored(workspace, idOf(answers[2]!))).toBe(true)
      const [audited] = await scene.db('audit_logs').where({ event: 'document.erased', subject_id: second.id })
      expect(audited.metadata).toMatchObject({ captured_bodies: 3 })
      expect((await workspace.ask('DELETE', `/documents/${first.id}/content`)).status).toBe(204)
      expect(await scene.db('audit_logs').where({ event: 'document.erased', subject_id: first.id })).toEqual([])
    })

    test('has no size limit if it is one document, and is replayed', async () => {
      const workspace = await scene.workspace()
      const [data, more] = [opaqueBytes(3 * bodyMaxBytes), opaqueBytes(2 * bodyMaxBytes)]
      const create = await workspace.source.create('D1', data)
      const append = await workspace.source.append('D1', more)
      await expectReference(workspace, create, 'request', data)
      await expectReference(workspace, append, 'request', more)
      await workspace.source.delete('D1')
      for (const answer of [create, append]) {
        const { status, json } = await workspace.ask('POST', `/requests/${idOf(answer)}/replay`)
        expect(status).toBe(202)
        const replayed = await workspace.ask('GET', `/requests/${json.data.new_request_id}`)
        expect(replayed.json.data.attributes).toMatchObject({ status_code: answer.status, request_body_truncated: false })
      }
      expect((await workspace.source.get('D1')).body.equals(Buffer.concat([data, more]))).toBe(true)
    })

    test('is shown redacted, or not at all, and is replayed as it was received', async () => {
      const workspace = await scene.workspace()
      const bodies: [string, string, string | null][] = [
        ['{"name":"x","Signature":"canary"}', 'application/json', null],
        ['{"password":"canary"', 'application/json', 'not_json'],
        [`<a><token>canary</token>${' '.repeat(bodyMaxBytes)}</a>`, 'text/xml', 'too_large'],
      ]
      for (const [index, [text, contentType, reason]] of bodies.entries()) {
        const docId = `D${index}`
        const create = await workspace.source.create(docId, text, { headers: { 'content-type': contentType } })
        const id = idOf(create)
        const shows = async (requestId: string) => {
          const { json } = await workspace.ask('GET', `/requests/${requestId}`)
          expect(json.data.attributes.request_body_truncation_reason).toBe(reason)
          const { status, bytes } = await workspace.bodyOf(requestId, 'request')
          expect([status, bytes.includes('canary')]).toEqual([reason ? 404 : 200, false])
        }
        await shows(id)
        await workspace.source.delete(docId)
        const { status, json } = await workspace.ask('POST', `/requests/${id}/replay`)
        expect(status).toBe(202)
        expect(String((await workspace.source.get(docId)).body)).toBe(text)
        await shows(json.data.new_request_id)
      }
    })

    test('is replayed', async () => {
      const workspace = await scene.workspace()
      const parts = [part('data', opaqueBytes(300 * KiB)), part('note', 'n')]
      const create = await workspace.source.createParts('D1', parts)
      await workspace.source.delete('D1')
      const { status, json } = await workspace.ask('POST', `/requests/${idOf(create)}/replay`)
      expect(status).toBe(202)
      const bytes = multipartBody('KoZbnd01', parts)
      expect((await workspace.bodyOf(json.data.new_request_id, 'request')).bytes.equals(bytes)).toBe(true)
      expect((await workspace.source.get('D1')).body.equals(parts[0]!.body as Buffer)).toBe(true)
      expect((await workspace.captureOf(create)).document_ids).toHaveLength(2)
      await until('both creates are captured', async () => (await workspace.list(2)).length >= 2)
    })
  })
}
