import { readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { verifyContents } from '../../src/content/verify.ts'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'
import { opaqueBytes, part } from '../support/source-system.ts'
import { withoutManifests } from '../support/without-manifests.ts'
import { atHome, createFolderHomes } from './folder-home.ts'
import { startHomeScene, type HomeWorkspace } from './scene.ts'

const root = share(await createFolder())
const scene = share(await startHomeScene([root.path]))
const createHome = createFolderHomes(scene, root.path)

/** Returns the bytes of every version of a document that the relay still has, the oldest first, as the API serves them. */
const versions = async (home: HomeWorkspace, docId: string) => {
  const ids: string[] = await scene.db('documents').where({ doc_id: docId, workspace_id: home.workspaceId }).orderBy('id').pluck('id')
  return Promise.all(
    ids.map(async (id) => {
      const answer = await fetch(`${scene.api.baseUrl}/api/${home.name}/documents/${id}/content`, {
        headers: { authorization: `Bearer ${home.keys.admin}` },
      })
      return answer.ok ? Buffer.from(await answer.arrayBuffer()) : answer.status
    }),
  )
}

/** Lists what `relay contents verify --read` finds wrong with the documents of a workspace. */
const problemsOf = async (home: HomeWorkspace) => {
  const problems: string[] = []
  await verifyContents(
    scene.db,
    { postgres: createPostgresStore(scene.db), home: scene.homeStore },
    { isRead: true, report: ({ workspace, problem }) => void (workspace === home.name && problems.push(problem)) },
  )
  return problems
}

const holdOn = (home: HomeWorkspace, docId: string) =>
  home.call('POST', '/legal-holds', { repo_id: 'Z1', doc_id: docId, reason: 'Tax audit' })

const replacements: Record<string, (home: HomeWorkspace, next: Buffer) => Promise<{ status: number }>> = {
  'an update': async (home, next) => home.source.update('D1', next),
  'an update on hold': async (home, next) => {
    await holdOn(home, 'D1')
    return home.source.update('D1', next)
  },
  'an update of the whole document on hold': async (home, next) => {
    await holdOn(home, 'D1')
    return home.source.updateParts('D1', [part('data', next)])
  },
  'a create after a delete': async (home, next) => {
    await home.source.delete('D1')
    return home.source.create('D1', next)
  },
  'a create after a delete and a hold': async (home, next) => {
    await home.source.delete('D1')
    await holdOn(home, 'D1')
    return home.source.create('D1', next)
  },
  'a component that was deleted before the hold': async (home, next) => {
    await home.source.update('D1', 'a note', { compId: 'note' })
    await home.deliver()
    await home.source.delete('D1', '&compId=data')
    await holdOn(home, 'D1')
    return home.source.update('D1', next)
  },
}
test.each(Object.keys(replacements))('%s brings back what its delivery replaces at the home, and nothing is lost', async (how) => {
  const home = await createHome()
  await home.setHome()
  const bytes = await atHome(home, 'D1', 3_000)
  const next = opaqueBytes(4_000)
  expect(String((await replacements[how]!(home, next)).status)).toMatch(/^20[01]$/)
  await home.deliver()
  await home.move()
  expect(await readFile(home.fileOf('D1'))).toEqual(next)
  const [first, ...later] = await versions(home, 'D1')
  expect([first, later.at(-1)]).toEqual([bytes, next])
  expect(await problemsOf(home)).toEqual([])
})

// Upper and lower case are one at some targets.
test.each(['D', 'd'])('a document whose path is that of another one, %s1data, brings back what it replaces', async (first) => {
  const home = await createHome()
  await home.setHome()
  const path = '/connections/' + (await scene.db('connections').where({ workspace_id: home.workspaceId }).first('id')).id
  expect((await home.call('PATCH', path, { settings: { path_template: '{doc_id}{comp_id}' } })).status).toBe(200)
  const bytes = await atHome(home, 'D1', 3_000)
  const next = opaqueBytes(2_000)
  expect((await home.source.create(`${first}1d`, next, { compId: 'ata' })).status).toBe(201)
  await home.deliver()
  expect(await readFile(join(home.folder, `${first}1data`))).toEqual(next)
  expect(await home.storeOf('D1')).toBe('postgres')
  expect((await home.source.get('D1')).body).toEqual(bytes)
  await home.move()
  expect([await home.storeOf('D1'), await home.storeOf(`${first}1d`, 'ata')]).toEqual(['postgres', 'home'])
})

test.each([
  ['MÜLLER', 'müller'],
  ['Müller', 'Mu\u0308ller'],
  ['Straße', 'STRAßE'],
])('what lies at %s comes back before a delivery to %s, which a target may take for the same', async (first, second) => {
  const home = await createHome()
  await home.setHome()
  const { id } = await scene.db('connections').where({ workspace_id: home.workspaceId }).first('id')
  expect((await home.call('PATCH', `/connections/${id}`, { settings: { path_template: '{doc_id}{comp_id}' } })).status).toBe(200)
  const deliver = async (docId: string, compId: string) => {
    expect((await home.source.create(docId, opaqueBytes(500), { compId })).status).toBe(201)
    expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  }
  await deliver('D1', `a${first}`)
  await home.move()
  expect(await home.storeOf('D1', `a${first}`)).toBe('home')
  await deliver('D1a', second)
  expect(await home.storeOf('D1', `a${first}`)).toBe('postgres')
})

test('what is lost at its home is replaced only if no hold applies to it and a manifest has it, and is not said to be retained', async () => {
  const home = await createHome()
  await home.setHome()
  await atHome(home, 'FAILED', 1_000)
  await atHome(home, 'FREE', 1_000)
  await atHome(home, 'HELD', 1_000)
  const hold = await holdOn(home, 'HELD')
  for (const docId of ['FAILED', 'FREE']) await home.spoil(docId, 7)
  await rm(home.fileOf('HELD'))
  const next = opaqueBytes(500)
  for (const docId of ['FAILED', 'FREE', 'HELD']) expect((await home.source.update(docId, next)).status).toBe(200)
  // Another delivery of the former version had failed.
  await scene
    .db('documents')
    .where({ workspace_id: home.workspaceId, doc_id: 'FAILED' })
    .whereNotNull('superseded_at')
    .update({ status: 'failed', acknowledged_at: new Date() })
  const failure = expect.objectContaining({ status: 'retrying', errorCode: 'content_altered' })
  expect(await home.deliver()).toEqual([failure, failure, failure])
  await withoutManifests(scene.db)
  expect(await home.deliver()).toEqual([{ status: 'delivered' }, { status: 'delivered' }, failure])
  for (const docId of ['FAILED', 'FREE']) expect(await versions(home, docId)).toEqual([404, next])
  const { data } = (await home.ask('GET', '/documents/search?doc_id=FREE')).json
  expect(data.map(({ attributes }: { attributes: object }) => attributes)).toEqual([
    expect.objectContaining({ content_retained: true }),
    expect.objectContaining({ content_retained: false }),
  ])
  expect(await problemsOf(home)).toEqual([expect.stringMatching(/HELD\/data at home is not what was delivered: it is not there/)])

  await home.call('POST', `/legal-holds/${hold.json.data.id}/lift`, { reason: 'Lost' })
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  expect(await readFile(home.fileOf('HELD'))).toEqual(next)
  expect(await problemsOf(home)).toEqual([])
})

test('a home that is away delays a delivery that would replace what only it has', async () => {
  const home = await createHome()
  await home.setHome()
  const bytes = await atHome(home, 'D1', 1_000)
  await home.source.update('D1', opaqueBytes(500))
  await rename(home.folder, `${home.folder}-away`)
  expect(await home.deliver()).toEqual([expect.objectContaining({ errorCode: 'directory_missing' })])
  await rename(`${home.folder}-away`, home.folder)
  expect(await readFile(home.fileOf('D1'))).toEqual(bytes)
})

test('a content stays while an attempt of a former version may still replace it at the home', async () => {
  const home = await createHome()
  await home.setHome()
  await home.source.create('D1', opaqueBytes(100))
  await home.deliver()
  await home.source.update('D1', opaqueBytes(200))
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  const { id } = await scene.db('documents').where({ workspace_id: home.workspaceId }).orderBy('id').first('id')
  const attempt = (change: object) => scene.db('deliveries').where({ document_id: id }).update(change)
  await attempt({ status: 'retrying', attempt_id: id })
  await home.move()
  expect([await home.storeOf('D1'), await home.waitingCount()]).toEqual(['postgres', 1])
  await attempt({ status: 'delivered', attempt_id: null })
  await home.move()
  expect(await home.storeOf('D1')).toBe('home')
})
