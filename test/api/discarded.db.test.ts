import { describeDiscarded, describeTreated, listDiscarded, treatDiscarded } from '../../src/cli/discarded.ts'
import { foldAll } from '../support/counters.ts'
import { startScene, type SceneWorkspace } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { partOf } from '../support/source-system.ts'
import { objstore } from './objstore.ts'

const { api, db, workspace } = share(await startScene())

const text = { headers: { 'content-type': 'text/plain' } }
const groupsOf = async ({ ask }: SceneWorkspace) => (await ask('GET', '/discarded')).json.data
const eventsOf = async ({ workspaceId }: SceneWorkspace, event: string) => db('audit_logs').where({ workspace_id: workspaceId, event })

/** Creates a workspace whose repository leads nowhere. */
const unconnected = async () => {
  const scene = await workspace([])
  const post = async (path: string, body: object, key = scene.keys.admin) => {
    const { status, json } = await api.call('POST', `/api/${scene.name}${path}`, { key, body })
    return { status, json }
  }
  const act = async (path: string) => {
    const { status, json } = await post(path, { repo_id: scene.repoId })
    expect(status).toBe(202)
    await api.bulkPage(json.data.id, 100, () => {})
    return (await scene.ask('GET', `/bulk-retries/${json.data.id}`)).json.data.attributes
  }
  const connect = async () => {
    const { json } = await post('/destinations', objstore('Bucket'))
    const links = { repository_ids: [scene.repositoryId], destination_ids: [json.data.id] }
    expect((await post('/connections', { name: 'To the bucket', ...links })).status).toBe(201)
  }
  return { ...scene, post, act, connect }
}

test('discarded documents are counted by repository until their requests are replayed, which needs a connection', async () => {
  const scene = await unconnected()
  const { source, repoId, repositoryId, ask, post, act } = scene
  await source.create('D1', 'one', text)
  await source.create('D2', 'two', text)
  const gone = await scene.captureOf(await source.create('GONE', 'three', text))
  await db('captured_bodies').where({ request_id: gone.id }).delete()
  await source.mCreate('M1', [partOf('M1', 'data', 'four', 'text/plain'), partOf('M2', 'data', 'five', 'text/plain')])
  const group = { repo_id: repoId, repository_id: repositoryId, is_connected: false, documents: 5 }
  expect(await groupsOf(scene)).toMatchObject([{ id: repoId, type: 'discarded_group', attributes: group }])
  expect((await ask('GET', '/stats')).json.data.attributes.present.unacknowledged_discards).toBe(5)
  expect((await ask('GET', '/documents?status=discarded&acknowledged=false')).json.meta.total).toBe(5)

  const refused = await post('/documents/replay', { repo_id: repoId })
  expect({ status: refused.status, message: refused.json.error.message }).toEqual({
    status: 409,
    message: `No connection leads from repository ${repoId} to a destination. Create a connection first.`,
  })
  await scene.connect()
  expect((await post('/documents/replay', { repo_id: repoId }, scene.keys.member)).status).toBe(403)
  const counted = await post('/documents/replay', { repo_id: repoId, dry_run: true })
  expect(counted.json.data.attributes).toMatchObject({ action: 'replay', status: 'dry_run', matched_documents: 5 })

  const done = { action: 'replay', status: 'completed' }
  expect(await act('/documents/replay')).toMatchObject({ ...done, matched_documents: 5, retried_documents: 4, skipped_documents: 1 })
  const [replayed] = (await ask('GET', '/bulk-retries')).json.data
  expect((await ask('GET', `/bulk-retries/${replayed.id}`)).json.data.attributes).toMatchObject({
    retried_deliveries: 4,
    open_deliveries: 4,
  })
  const pending = (await ask('GET', '/documents?status=pending')).json.data
  expect(pending.map(({ attributes }: { attributes: { doc_id: string } }) => attributes.doc_id).toSorted()).toEqual([
    'D1',
    'D2',
    'M1',
    'M2',
  ])
  await foldAll(db)
  expect(await groupsOf(scene)).toMatchObject([{ attributes: { ...group, is_connected: true, documents: 1 } }])
  expect(await eventsOf(scene, 'request.replayed')).toHaveLength(3)
  expect(await eventsOf(scene, 'document.acknowledged')).toHaveLength(4)

  // It finds only what is left, and nothing is created twice.
  expect(await act('/documents/replay')).toMatchObject({ ...done, matched_documents: 1, retried_documents: 0, skipped_documents: 1 })
  expect((await ask('GET', '/documents?status=pending')).json.meta.total).toBe(4)
  expect(await act('/documents/acknowledge')).toMatchObject({ action: 'acknowledge', status: 'completed', retried_documents: 1 })
  expect(await groupsOf(scene)).toEqual([])
  expect((await ask('GET', '/documents?status=discarded&acknowledged=true')).json.meta.total).toBe(5)
})

test('a page that was broken off after a replay does not replay it again', async () => {
  const scene = await unconnected()
  const { source, ask, post, act, repoId } = scene
  const { document_ids: ids } = await scene.captureOf(await source.create('D1', 'one', text))
  await scene.connect()
  const { json } = await post('/documents/replay', { repo_id: repoId })
  await api.bulkPage(json.data.id, 100, () => {})
  // The process was lost before it could acknowledge the document.
  await db('documents').whereIn('id', ids).update({ acknowledged_at: null })
  expect(await act('/documents/replay')).toMatchObject({ retried_documents: 1, skipped_documents: 0 })
  expect(await eventsOf(scene, 'request.replayed')).toHaveLength(1)
  expect((await ask('GET', '/discarded')).json.meta.total).toBe(0)
})

test('a replay of a single request acknowledges its document, and so does an operator; documents that filters pass over are not counted', async () => {
  const scene = await unconnected()
  const first = await scene.captureOf(await scene.source.create('D1', 'one', text))
  const [second] = (await scene.captureOf(await scene.source.create('D2', 'two', text))).document_ids
  expect((await scene.post(`/documents/${second}/acknowledge`, {})).status).toBe(200)
  await scene.connect()
  await db('connections')
    .where({ workspace_id: scene.workspaceId })
    .update({ settings: { filter: { content_types: ['image/png'] } } })
  await scene.post(`/requests/${first.id}/replay`, {})
  expect((await scene.ask('GET', '/documents?status=discarded')).json.meta.total).toBe(3)
  expect(await groupsOf(scene)).toEqual([])
})

test('the command line lists, counts, replays and acknowledges discarded documents', async () => {
  const scene = await unconnected()
  const { source, name, repoId } = scene
  for (const docId of ['C1', 'C2']) await source.create(docId, docId, text)
  expect(await listDiscarded(db, name)).toMatchObject([{ workspace: name, repo_id: repoId, is_connected: false, documents: 2 }])
  const progress: string[] = []
  const treat = (action: 'replay' | 'acknowledge', more: object = {}) =>
    treatDiscarded(
      db,
      async (message) => {
        if (message.kind === 'startBulkRetry') await api.bulkPage(message.input.bulkRetryId, 100, () => {})
        await db('deliveries').where({ workspace_id: scene.workspaceId }).update({ status: 'delivered' })
      },
      { action, workspace: name, repoId, onProgress: (line) => void progress.push(line), ...more },
    )
  expect(describeTreated('replay', await treat('replay', { dryRun: true }))).toEqual(['2 documents would be replayed.'])
  await expect(treat('replay')).rejects.toThrow(`No connection leads from repository ${repoId} to a destination.`)
  await scene.connect()
  expect(describeTreated('replay', await treat('replay'))).toEqual([
    '2 of 2 documents replayed.',
    'Of 2 deliveries, 2 arrived, 0 failed and 0 are open.',
  ])
  expect(progress).toEqual(['2 of 2 documents'])
  expect(describeDiscarded(await listDiscarded(db, name))).toEqual(['No discarded document needs attention.'])
  await expect(treat('acknowledge')).rejects.toThrow(`Repository ${repoId} of ${name} has no discarded document that needs attention.`)
  await expect(treat('acknowledge', { workspace: 'acme/none' })).rejects.toThrow('There is no workspace acme/none')

  const second = await unconnected()
  await second.source.create('C3', 'three', text)
  const acknowledged = await treat('acknowledge', { workspace: second.name, repoId: second.repoId })
  expect(describeTreated('acknowledge', acknowledged)).toEqual(['1 of 1 document acknowledged.'])
})
