import { createLegalHolds } from '../../src/archive/legal-holds.ts'
import { deletionLine, describeDeletions, showDeletions } from '../../src/cli/deletions.ts'
import { systemActor } from '../../src/db/audit.ts'
import { createErase } from '../../src/delivery/erase.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { testConfig } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { part } from '../support/source-system.ts'
import { until } from '../support/until.ts'
import { startOldServerScene } from './old-server-scene.ts'

const { db, open } = share(await startOldServerScene())
const config = testConfig({ RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8' })

const openWithDeletions = async () => {
  const old = await open()
  for (const docId of ['D1', 'D2', 'D3']) old.server.put(docId, { data: 'x', note: 'n' })
  for (const [docId, more] of [['D1'], ['D2', '&compId=note'], ['D3']] as const) {
    expect((await old.source.delete(docId, more)).status).toBe(200)
  }
  const request = { workspace: old.name, repoId: 'Z1' }
  const show = (isRepeated: boolean) => showDeletions(db, config, { ...request, isRepeated })
  const entries = async () => {
    const rows = await db('audit_logs').where({ workspace_id: old.workspaceId, event: 'repository.deletions_repeated' }).orderBy('id')
    return rows.map(({ metadata }) => metadata)
  }
  const results = async () => (await show(true)).map(({ docId, compId, result }) => [docId, compId, result])
  return Object.assign(old, { request, show, entries, results })
}

test('what is on legal hold is not deleted at the upstream', async () => {
  await using old = await openWithDeletions()
  await createLegalHolds(db).set(old.workspaceId, { repoId: 'Z1', reason: 'Tax audit' }, systemActor)
  const before = old.server.requests.length
  expect(await old.results()).toEqual([
    ['D1', null, 'on hold'],
    ['D2', 'note', 'on hold'],
    ['D3', null, 'on hold'],
  ])
  expect(old.server.requests).toHaveLength(before)
  expect(await old.entries()).toMatchObject([{ listed: 3, deleted: 0, on_hold: 3 }])
})

test('what is put on legal hold while the upstream is asked whether it has it is not deleted there', async () => {
  await using old = await openWithDeletions()
  old.server.timing.beforeAnswer = async (url) => {
    if (!url.includes('docId=D2')) return
    old.server.timing.beforeAnswer = undefined
    await createLegalHolds(db).set(old.workspaceId, { repoId: 'Z1', reason: 'Tax audit' }, systemActor)
  }
  expect(await old.results()).toEqual([
    ['D1', null, 'deleted'],
    ['D2', 'note', 'on hold'],
    ['D3', null, 'on hold'],
  ])
  expect([...old.server.documents.keys()]).toEqual(['Z1/D2', 'Z1/D3'])
})

describe('what the source system has deleted here', () => {
  test('is listed without asking the old content server', async () => {
    await using old = await openWithDeletions()
    const asked = old.server.requests.length
    expect(describeDeletions(await old.show(false))).toMatchObject([
      expect.stringMatching(/^DOCUMENT/),
      expect.stringMatching(/^D1 +all .* not asked$/),
      expect.stringMatching(/^D2 +note .* not asked$/),
      expect.stringMatching(/^D3 +all .* not asked$/),
    ])
    expect(old.server.requests).toHaveLength(asked)
  })

  test('contains neither what was erased nor what was created again, also after retention has removed it', async () => {
    await using old = await open()
    for (const docId of ['D1', 'D2', 'D3']) old.server.put(docId, { data: 'x' })
    await old.source.get('D1')
    const [fetched] = await until(
      'the document is kept',
      () => db('documents').where({ workspace_id: old.workspaceId }).select<{ id: string }[]>('id'),
      (rows) => rows.length === 1,
    )
    await createErase(db)(old.workspaceId, fetched!.id, systemActor)
    for (const docId of ['D2', 'D3']) expect((await old.source.delete(docId)).status).toBe(200)
    expect((await old.source.create('D2', 'again')).status).toBe(201)
    const listed = async () =>
      (await showDeletions(db, config, { workspace: old.name, repoId: 'Z1', isRepeated: false })).map(({ docId }) => docId)
    expect(await listed()).toEqual(['D3'])
    const yearAgo = db.raw(`now() - interval '1 year'`)
    await db('documents').where({ workspace_id: old.workspaceId }).update({ content_id: null, status: 'delivered', received_at: yearAgo })
    await db('archive_documents').where({ repository_id: old.repositoryId }).update({ modified_at: yearAgo })
    await createRetention(db, testConfig({ RETENTION_DOCUMENTS_DAYS: '60' })).removeExpired(new Date(), new AbortController().signal)
    expect(await db('documents').where({ workspace_id: old.workspaceId })).toEqual([])
    expect(await listed()).toEqual(['D3'])
  })

  test('contains a component until the source system has sent it again, also after retention has removed its versions', async () => {
    await using old = await open()
    old.server.put('D1', { data: 'x', note: 'n', page: 'p' })
    expect((await old.source.update('D1', 'second')).status).toBe(200)
    for (const compId of ['note', 'page']) expect((await old.source.delete('D1', `&compId=${compId}`)).status).toBe(200)
    expect((await old.source.update('D1', 'again', { compId: 'page' })).status).toBe(200)
    const listed = async () =>
      (await showDeletions(db, config, { workspace: old.name, repoId: 'Z1', isRepeated: false })).map(({ docId, compId }) => [
        docId,
        compId,
      ])
    expect(await listed()).toEqual([['D1', 'note']])
    // Retention removes one version after the other.
    await db('documents').where({ workspace_id: old.workspaceId }).whereNot({ comp_id: 'page' }).delete()
    expect(await listed()).toEqual([['D1', 'note']])
    expect((await old.source.updateParts('D1', [part('note', 'whole')])).status).toBe(200)
    expect(await listed()).toEqual([['D1', 'page']])
  })

  test('contains a component of an earlier document of a docId that the later one does not have', async () => {
    await using old = await open()
    const listed = async () =>
      (await showDeletions(db, config, { workspace: old.name, repoId: 'Z1', isRepeated: false })).map(({ docId, compId }) => [
        docId,
        compId,
      ])
    expect((await old.source.createParts('D1', [part('data', 'x'), part('note', 'n')])).status).toBe(201)
    expect((await old.source.delete('D1')).status).toBe(200)
    expect((await old.source.create('D1', 'again')).status).toBe(201)
    expect(await listed()).toEqual([['D1', 'note']])
    // It may have had the component in a version that retention has removed.
    expect((await old.source.update('D1', 'changed')).status).toBe(200)
    expect(await listed()).toEqual([])
  })

  test('contains no component of a later document that was erased here, also after retention has removed it', async () => {
    await using old = await open()
    const listed = async () =>
      (await showDeletions(db, config, { workspace: old.name, repoId: 'Z1', isRepeated: false })).map(({ docId, compId }) => [
        docId,
        compId,
      ])
    const parts = () => [part('data', 'x'), part('note', 'n')]
    const liveNote = () =>
      db('documents').where({ workspace_id: old.workspaceId, doc_id: 'D1', comp_id: 'note' }).whereNull('superseded_at')
    expect((await old.source.createParts('D1', parts())).status).toBe(201)
    expect((await old.source.delete('D1')).status).toBe(200)
    expect((await old.source.createParts('D1', parts())).status).toBe(201)
    await createErase(db)(old.workspaceId, (await liveNote())[0].id, systemActor)
    await liveNote().delete()
    expect(await listed()).toEqual([])
    // Deletions count again.
    expect((await old.source.delete('D1')).status).toBe(200)
    expect(await listed()).toEqual([['D1', null]])
  })

  test('contains a component of an earlier document of a docId, also if another component of the later one was erased here', async () => {
    await using old = await open()
    const listed = async () =>
      (await showDeletions(db, config, { workspace: old.name, repoId: 'Z1', isRepeated: false })).map(({ docId, compId }) => [
        docId,
        compId,
      ])
    expect((await old.source.createParts('D1', [part('data', 'x'), part('note', 'n')])).status).toBe(201)
    expect((await old.source.delete('D1')).status).toBe(200)
    expect((await old.source.create('D1', 'again')).status).toBe(201)
    const live = () => db('documents').where({ workspace_id: old.workspaceId, doc_id: 'D1', comp_id: 'data' }).whereNull('superseded_at')
    const [{ id }] = await live()
    for (let times = 0; times < 2; times += 1) await createErase(db)(old.workspaceId, id, systemActor)
    expect(await listed()).toEqual([['D1', 'note']])
    await live().delete()
    expect(await listed()).toEqual([['D1', 'note']])
  })

  test('contains a document that was erased after the source system had deleted it, also after retention has removed it', async () => {
    await using old = await open()
    const documents = () => db('documents').where({ workspace_id: old.workspaceId })
    expect((await old.source.create('D1', 'x')).status).toBe(201)
    const [{ id }] = await documents()
    expect((await old.source.delete('D1')).status).toBe(200)
    await createErase(db)(old.workspaceId, id, systemActor)
    await documents().delete()
    await db('archive_documents').where({ repository_id: old.repositoryId }).delete()
    expect(await showDeletions(db, config, { workspace: old.name, repoId: 'Z1', isRepeated: false })).toMatchObject([{ docId: 'D1' }])
  })

  test('is deleted there, and what it refuses to delete is named', async () => {
    await using old = await openWithDeletions()
    old.server.documents.delete('Z1/D1')
    old.server.faults.add('refuses_delete')
    expect(await old.results()).toEqual([
      ['D1', null, 'not there'],
      ['D2', 'note', 'failed'],
      ['D3', null, 'failed'],
    ])
    expect(describeDeletions(await old.show(true))[2]).toMatch(/failed: .*409.*document is locked$/)
    old.server.faults.clear()
    expect(await old.results()).toEqual([
      ['D1', null, 'not there'],
      ['D2', 'note', 'deleted'],
      ['D3', null, 'deleted'],
    ])
    expect([...old.server.documents.keys()]).toEqual(['Z1/D2'])
    const counts = { repo_id: 'Z1', listed: 3, not_there: 1, on_hold: 0 }
    const failed = { ...counts, deleted: 0, failed: 2 }
    expect(await old.entries()).toEqual([failed, failed, { ...counts, deleted: 2, failed: 0 }])
  })

  test('is named and recorded as far as it was deleted there when the old content server stops to answer', async () => {
    await using old = await openWithDeletions()
    // It closes the connection.
    old.server.timing.beforeAnswer = async (url) => {
      if (url.includes('docId=D3')) throw new Error('closed')
    }
    const lines: string[] = []
    const deleting = showDeletions(db, config, { ...old.request, isRepeated: true }, (repeated) => lines.push(deletionLine(repeated)))
    await expect(deleting).rejects.toThrow('What was deleted there so far stays deleted.')
    expect(lines).toEqual(['D1, all: deleted', 'D2, note: deleted'])
    expect(await old.entries()).toEqual([{ repo_id: 'Z1', listed: 3, deleted: 2, not_there: 0, on_hold: 0, failed: 0 }])
  })

  test('stays there while the old content server does not answer, or the repository has none', async () => {
    await using old = await openWithDeletions()
    // Nothing listens at the port discard.
    const upstream = { url: 'http://127.0.0.1:9/archive', cont_rep: 'Z1', auth_id: null, certificate: null }
    await db('repositories')
      .where({ id: old.repositoryId })
      .update({ upstream: JSON.stringify(upstream) })
    await expect(old.show(true)).rejects.toThrow(/cannot be reached.*Run the command again later/)
    expect(await old.entries()).toEqual([{ repo_id: 'Z1', listed: 3, deleted: 0, not_there: 0, on_hold: 0, failed: 0 }])
    await db('repositories').where({ id: old.repositoryId }).update({ upstream: null })
    await expect(old.show(true)).rejects.toThrow('The repository Z1 has no upstream.')
  })
})
