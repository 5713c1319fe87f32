import { randomBytes } from 'node:crypto'
import { PassThrough } from 'node:stream'
import { newId } from '../../src/base/ids.ts'
import { receiverLimits } from '../../src/receiver/limits.ts'
import { startScene, type Scene, type SceneWorkspace } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'

const lockTimeoutMs = 300
const startWith = async (ms: number) => share(await startScene({ limits: { receiver: { lockTimeoutMs: ms } } }))
// The first long enough that no request gives up waiting for the lock on a slow disk.
const [patient, impatient] = [await startWith(60_000), await startWith(lockTimeoutMs)]

const rounds = 40
const ascending = (statuses: number[]) => statuses.toSorted((one, other) => one - other)
const statusesOf = async (answers: Promise<{ status: number }>[]) => (await Promise.all(answers)).map(({ status }) => status)

/** Returns the ids of inconsistent rows: current components of deleted documents, contents without an owner, documents without content. */
const inconsistencies = async ({ db }: Scene, { workspaceId }: SceneWorkspace) => {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `
    select documents.id
    from documents
    join archive_documents on archive_documents.id = archive_document_id
    where documents.workspace_id = :id and superseded_at is null and deleted_at is not null
    union all
    select contents.id
    from contents
    left join documents on content_id = contents.id
    where contents.workspace_id = :id and (documents.id is null or owned_at is null)
    union all
    select id from documents where workspace_id = :id and (content_id is null or archive_document_id is null)
    `,
    { id: workspaceId },
  )
  return rows
}

describe('concurrent requests', () => {
  test('ten updates of one component are all relayed, and one of them is current', async () => {
    const workspace = await patient.workspace()
    await workspace.source.create('D1', 'zero')
    const bodies = Array.from({ length: 10 }, (_, index) => (index % 3 === 0 ? randomBytes(600_000 + index) : Buffer.from(`body ${index}`)))
    const statuses = await statusesOf(bodies.map((body) => workspace.source.update('D1', body)))
    expect(statuses).toEqual(Array(10).fill(200))
    const { body } = await workspace.source.get('D1')
    expect(bodies.filter((candidate) => candidate.equals(body))).toHaveLength(1)
    expect((await workspace.countRows()).documents).toBe(11)
    expect(await inconsistencies(patient, workspace)).toEqual([])
  })

  test('updates of different components do not overwrite each other', async () => {
    const workspace = await patient.workspace()
    await workspace.source.createParts('D2', [])
    const names = Array.from({ length: 10 }, (_, index) => `c${index}`)
    await Promise.all(names.map((compId) => workspace.source.update('D2', compId, { compId })))
    const info = String((await workspace.source.info('D2')).body)
    expect(info.match(/(?<=X-compId: )\w+/g)?.toSorted()).toEqual(names)
    const positions = await patient.db('documents').where({ doc_id: 'D2' }).pluck('position')
    expect(ascending(positions)).toEqual(names.map((_, index) => index))
  })

  test('an update and a delete run one after the other, in either order', async () => {
    const workspace = await patient.workspace()
    for (let round = 0; round < rounds; round += 1) {
      const docId = `R${round}`
      await workspace.source.create(docId, 'before')
      const body = round % 4 === 0 ? randomBytes(300_000) : 'after'
      const [updated, deleted] = await statusesOf([workspace.source.update(docId, body), workspace.source.delete(docId)])
      expect(deleted).toBe(200)
      expect([200, 404]).toContain(updated)
      expect((await workspace.source.get(docId)).status).toBe(404)
    }
    expect(await inconsistencies(patient, workspace)).toEqual([])
  })

  test('an update by POST and the delete of another component leave one component in either order', async () => {
    const workspace = await patient.workspace()
    for (let round = 0; round < rounds; round += 1) {
      const docId = `P${round}`
      await workspace.source.createParts(docId, [part('data', 'a'), part('note', 'n')])
      const [updated, deleted] = await statusesOf([
        workspace.source.updateParts(docId, [part('data', 'b')]),
        workspace.source.delete(docId, '&compId=note'),
      ])
      expect(updated).toBe(200)
      expect([200, 404]).toContain(deleted)
      expect((await workspace.source.info(docId)).headers['x-numbercomps']).toBe('1')
    }
    expect(await inconsistencies(patient, workspace)).toEqual([])
  })

  test('one of two deletes succeeds, and so does one of two creates that follow', async () => {
    const workspace = await patient.workspace()
    for (let round = 0; round < rounds; round += 1) {
      const docId = `T${round}`
      const { create, delete: remove } = workspace.source
      await create(docId, 'x')
      expect(ascending(await statusesOf([remove(docId), remove(docId)]))).toEqual([200, 404])
      expect(ascending(await statusesOf([create(docId, 'y'), create(docId, 'z')]))).toEqual([201, 403])
    }
    expect(await inconsistencies(patient, workspace)).toEqual([])
  })

  test('a create and a delete of the previous document leave a new document or none', async () => {
    const workspace = await patient.workspace()
    for (let round = 0; round < rounds; round += 1) {
      const docId = `N${round}`
      await workspace.source.create(docId, 'old')
      const [created, deleted] = await statusesOf([workspace.source.create(docId, 'new'), workspace.source.delete(docId)])
      expect(deleted).toBe(200)
      const after = await workspace.source.get(docId)
      expect([created, after.status]).toEqual(created === 201 ? [201, 200] : [403, 404])
    }
    expect(await inconsistencies(patient, workspace)).toEqual([])
  })
})

describe('a document that another request locks for too long', () => {
  const locked = { status: 409, headers: { 'x-errordescription': expect.stringMatching(/^document_locked: [ -~]+$/) } }

  test('is answered with 409 by update and delete, and can be changed once it is unlocked', async () => {
    const workspace = await impatient.workspace()
    await workspace.source.create('L1', 'before')
    const before = await workspace.countRows()
    const holder = await impatient.db.transaction()
    try {
      await holder('archive_documents').where({ doc_id: 'L1', workspace_id: workspace.workspaceId }).forUpdate()
      const began = performance.now()
      expect(await workspace.source.update('L1', 'x'.repeat(600_000))).toMatchObject(locked)
      expect(await workspace.source.updateParts('L1', [])).toMatchObject(locked)
      expect(await workspace.source.delete('L1')).toMatchObject(locked)
      const waitedMs = performance.now() - began
      expect(waitedMs).toBeGreaterThan(3 * lockTimeoutMs - 50)
      expect(waitedMs).toBeLessThan(3 * receiverLimits.lockTimeoutMs)
      expect(String((await workspace.source.get('L1')).body)).toBe('before')
    } finally {
      await holder.rollback()
    }
    expect(await workspace.countRows()).toEqual(before)
    expect((await workspace.source.update('L1', 'after')).status).toBe(200)
  })

  test('is answered with 409 by create if the other request is creating it', async () => {
    const workspace = await impatient.workspace()
    const holder = await impatient.db.transaction()
    try {
      const { workspaceId: workspace_id, repositoryId: repository_id } = workspace
      await holder('archive_documents').insert({ id: newId(), workspace_id, repository_id, doc_id: 'L2' })
      expect(await workspace.source.create('L2', 'x')).toMatchObject(locked)
    } finally {
      await holder.rollback()
    }
    expect((await workspace.source.create('L2', 'x')).status).toBe(201)
    expect(await inconsistencies(impatient, workspace)).toEqual([])
  })

  test('is not locked by an update whose body is still being sent', async () => {
    const workspace = await impatient.workspace()
    await workspace.source.create('L3', 'before')
    const body = new PassThrough()
    const slow = workspace.source.update('L3', body, { compId: 'note' })
    body.write('first half, ')
    expect((await workspace.source.update('L3', 'after')).status).toBe(200)
    expect((await workspace.source.delete('L3', '&compId=data')).status).toBe(200)
    body.end('second half')
    expect((await slow).status).toBe(200)
    expect(String((await workspace.source.get('L3', '&compId=note')).body)).toBe('first half, second half')
  })
})
