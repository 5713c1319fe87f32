import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { bringContentsBack, describeBroughtBack } from '../../src/cli/bring-back.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createBringAllBack } from '../../src/home/bring-all-back.ts'
import { createBringBack } from '../../src/home/bring-back.ts'
import { testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'
import { atHome, createFolderHomes } from './folder-home.ts'
import { keyOfScene, startHomeScene, type HomeWorkspace } from './scene.ts'

const root = share(await createFolder())
const scene = share(await startHomeScene([root.path]))
const createHome = createFolderHomes(scene, root.path)
const config = testConfig({ RELAY_DIRECTORY_ROOTS: root.path, RELAY_SECRET_KEYS: keyOfScene })

const bringBack = (home: HomeWorkspace, options: { repoId?: string; dryRun?: boolean } = {}) =>
  bringContentsBack(scene.db, config, {
    workspace: home.name,
    destination: 'home',
    repoId: undefined,
    dryRun: false,
    signal: new AbortController().signal,
    onProgress: () => {},
    ...options,
  })

/** Returns what the audit log says of the runs that have brought back something from a home. */
const recorded = async ({ destinationId }: HomeWorkspace): Promise<object[]> => {
  const entries = scene.db('audit_logs').where({ event: 'destination.contents_brought_back', subject_id: destinationId })
  return (await entries.orderBy('id')).map(({ metadata }) => metadata)
}

test('everything comes back from a home that is given up, and what is lost there is named', async () => {
  const home = await createHome()
  await home.setHome()
  const documents = new Map<string, Buffer>()
  for (const docId of ['D1', 'D2', 'D3']) documents.set(docId, await atHome(home, docId, 1_000))
  const counted = await bringBack(home, { dryRun: true })
  expect(describeBroughtBack(counted, { dryRun: true })).toEqual([
    'Nothing was changed. A run would bring back 3 contents with 3000 bytes.',
  ])
  await expect(bringBack(home)).rejects.toThrow('home is still the home of Z1, so contents would leave for it again.')
  await home.setHome({ home_destination_id: null })
  expect(await bringBack(home, { repoId: 'Z9' })).toEqual({ contents: 0, bytes: 0, failed: [] })
  expect(await recorded(home)).toEqual([])

  await home.spoil('D2', 7)
  const first = await bringBack(home)
  expect(describeBroughtBack(first, { dryRun: false })).toEqual([
    expect.stringMatching(/^Z1 D2 data \(document \w{26}\): home: .*D2\/data at home is not what was delivered/),
    'Brought back 2 contents with 2000 bytes; 1 could not be read.',
  ])
  const remove = async () => (await home.call('DELETE', `/destinations/${home.destinationId}`)).status
  expect(await remove()).toBe(409)
  await home.spoil('D2', 7)
  expect(await bringBack(home)).toEqual({ contents: 1, bytes: 1_000, failed: [] })
  expect(await bringBack(home)).toEqual({ contents: 0, bytes: 0, failed: [] })
  const all = { name: 'home', repo_id: null }
  expect(await recorded(home)).toEqual([
    { ...all, contents: 2, bytes: 2_000, failed: 1 },
    { ...all, contents: 1, bytes: 1_000, failed: 0 },
  ])
  expect(await remove()).toBe(204)
  for (const [docId, bytes] of documents) expect((await home.source.get(docId)).body).toEqual(bytes)
})

test('a run that was stopped goes on, and contents leave again for a home that is set again', async () => {
  const home = await createHome()
  await home.setHome()
  for (const docId of ['D1', 'D2', 'D3']) await atHome(home, docId, 100)
  await home.setHome({ home_destination_id: null })
  const writeTo = createPostgresStore(scene.db)
  const bringAllBack = createBringAllBack({
    db: scene.db,
    bringBack: createBringBack({ db: scene.db, home: scene.homeStore, writeTo }),
    pageContents: 1,
  })
  const stop = new AbortController()
  const given = { destinationId: home.destinationId, repoId: undefined }
  await expect(bringAllBack(given, stop.signal, () => stop.abort(new Error('stopped')))).rejects.toThrow('stopped')
  expect(await recorded(home)).toMatchObject([{ contents: 1, bytes: 100 }])
  expect(await bringBack(home, { dryRun: true })).toMatchObject({ contents: 2 })
  expect(await bringAllBack(given, new AbortController().signal, () => {})).toMatchObject({ contents: 2 })
  await home.setHome()
  await home.move()
  for (const docId of ['D1', 'D2', 'D3']) expect(await home.storeOf(docId)).toBe('home')
})

test('contents are read at the earlier home after their repository got another one', async () => {
  const other = join(root.path, 'other')
  await mkdir(other)
  const home = await createHome([{ name: 'other', connector: 'directory', config: { path: other } }])
  await home.setHome()
  const bytes = await atHome(home, 'D1', 2_000)
  expect((await home.setHome({ home_destination_id: home.destinations['other'], home_after_days: 0 })).status).toBe(200)
  await home.move()
  expect((await home.source.get('D1')).body).toEqual(bytes)
  const count = async (id: string) => scene.db('home_contents').where({ destination_id: id }).pluck('content_id')
  expect([(await count(home.destinationId)).length, (await count(home.destinations['other']!)).length]).toEqual([1, 0])
  expect(await home.call('DELETE', `/destinations/${home.destinationId}`)).toMatchObject({
    status: 409,
    json: { error: { message: 'Destination home alone has the contents of documents, which would be lost.' } },
  })
  expect(await bringBack(home)).toMatchObject({ contents: 1 })
  await home.move()
  expect(await home.storeOf('D1')).toBe('home')
  expect((await count(home.destinations['other']!)).length).toBe(1)
  expect((await home.source.get('D1')).body).toEqual(bytes)
})
