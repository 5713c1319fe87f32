import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { createConnectors } from '../../src/connectors/index.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createBringBack } from '../../src/home/bring-back.ts'
import { HomeFailure } from '../../src/home/failure.ts'
import { createSaveReplaced } from '../../src/home/replaced.ts'
import { testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { startOldContentServer } from '../support/old-content-server.ts'
import { share } from '../support/share.ts'
import { opaqueBytes } from '../support/source-system.ts'
import { atHome, createFolderHomes } from './folder-home.ts'
import { startHomeScene } from './scene.ts'

const root = share(await createFolder())
const { find } = createConnectors(testConfig({ RELAY_DIRECTORY_ROOTS: root.path }))
const directory = find('directory')!
let afterRead = async () => {}
let beforeDelivery = async (_signal: AbortSignal) => {}
const findConnector: typeof find = (kind) =>
  kind === 'directory'
    ? {
        ...directory,
        deliver: async (...given) => {
          await beforeDelivery(given[2].signal)
          return directory.deliver(...given)
        },
        read: async (...given) => {
          const found = await directory.read!(...given)
          await afterRead()
          return found
        },
      }
    : find(kind)
const scene = share(await startHomeScene([root.path], { findConnector }))
const createHome = createFolderHomes(scene, root.path)

const createServerHome = async ({ url }: { url: string }) => {
  const home = await scene.workspace({ connector: 'content-server', config: { url, repository: 'Z1', document_ids: 'source' } })
  await home.setHome()
  return home
}

// The path has no effect there: a document lies under its ids.
test('a content server brings back what lies under the ids of a document, whatever the paths are', async () => {
  const server = await startOldContentServer({})
  try {
    const home = await createServerHome(server)
    const bytes = await atHome(home, 'D1', 3_000)
    expect((await home.call('POST', '/legal-holds', { repo_id: 'Z1', doc_id: 'D1', reason: 'Tax audit' })).status).toBe(201)
    const { id } = await scene.db('connections').where({ workspace_id: home.workspaceId }).first('id')
    const path_template = 'later/{repo_id}/{doc_id}/{comp_id}'
    expect((await home.call('PATCH', `/connections/${id}`, { settings: { path_template } })).status).toBe(200)
    expect((await home.source.update('D1', opaqueBytes(500))).status).toBe(200)
    expect(await home.deliver()).toEqual([{ status: 'delivered' }])
    const [first] = await scene.db('documents').where({ workspace_id: home.workspaceId }).orderBy('id').pluck('id')
    const answer = await fetch(`${scene.api.baseUrl}/api/${home.name}/documents/${first}/content`, {
      headers: { authorization: `Bearer ${home.keys.admin}` },
    })
    expect([answer.status, Buffer.from(await answer.arrayBuffer()).equals(bytes)]).toEqual([200, true])
  } finally {
    await server.stop()
  }
})

test('a content leaves for a content server while an attempt of another component of its document is under way, and stays while one of its own is', async () => {
  const server = await startOldContentServer({})
  try {
    const home = await createServerHome(server)
    await home.source.create('D1', opaqueBytes(100))
    expect(await home.deliver()).toEqual([{ status: 'delivered' }])
    await home.source.update('D1', opaqueBytes(200))
    await home.source.update('D1', opaqueBytes(300), { compId: 'data1' })
    expect(await home.deliver()).toEqual([{ status: 'delivered' }, { status: 'delivered' }])
    const attemptOf = async (compId: string, attempt: object) => {
      const { id } = await scene.db('documents').where({ workspace_id: home.workspaceId, comp_id: compId }).orderBy('id').first('id')
      await scene.db('deliveries').where({ document_id: id }).update(attempt)
    }
    const begun = { status: 'retrying', attempt_id: 'A1' }
    const ended = { status: 'delivered', attempt_id: null }
    // The first document of the component is the former version.
    await attemptOf('data', begun)
    await home.move()
    expect([await home.storeOf('D1'), await home.storeOf('D1', 'data1')]).toEqual(['postgres', 'home'])
    await attemptOf('data', ended)
    await attemptOf('data1', begun)
    await home.move()
    expect(await home.storeOf('D1')).toBe('home')
  } finally {
    await server.stop()
  }
})

test('a content stays if its home got another place after it was read there', async () => {
  const [home, other] = [await createHome(), await createHome()]
  await home.setHome()
  const bytes = opaqueBytes(1_000)
  await home.source.create('D1', bytes)
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  const statuses: number[] = []
  afterRead = async () => {
    afterRead = async () => {}
    statuses.push((await home.call('PATCH', `/destinations/${home.destinationId}`, { config: { path: other.folder } })).status)
  }
  await home.move()
  expect([statuses, await home.storeOf('D1')]).toEqual([[200], 'postgres'])
  expect((await home.source.get('D1')).body).toEqual(bytes)
})

test.each(['gone', 'altered'] as const)(
  'what another delivery has brought back meanwhile, and is %s since, is no obstacle',
  async (what) => {
    const home = await createHome()
    await home.setHome()
    await atHome(home, 'D1', 1_000)
    const writeTo = createPostgresStore(scene.db)
    const other = createBringBack({ db: scene.db, home: scene.homeStore, writeTo })
    const bringBack: typeof other = async (...given) => {
      await other(...given)
      throw new HomeFailure(what, 'another delivery was faster')
    }
    const replacing = { documentId: 'another', destinationId: home.destinationId, place: 'Z1/D1/data' }
    const never = new AbortController().signal
    expect(await createSaveReplaced({ db: scene.db, bringBack })(replacing, never)).toBeUndefined()
    expect(await home.storeOf('D1')).toBe('postgres')
  },
)

test('an attempt that brings back something first has no more time than others', async () => {
  const home = await createHome()
  await home.setHome()
  await atHome(home, 'D1', 1_000)
  await home.source.update('D1', opaqueBytes(500))
  afterRead = () => sleep(1_500)
  beforeDelivery = async (signal) => void (await once(signal, 'abort'))
  const begunAt = Date.now()
  expect(await home.deliver(2_000)).toEqual([expect.objectContaining({ errorCode: 'attempt_timeout' })])
  expect(Date.now() - begunAt).toBeLessThan(3_000)
  afterRead = async () => {}
  beforeDelivery = async () => {}
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
})

test('a content store that is full fails the delivery, and says so', async () => {
  const home = await createHome()
  await home.setHome()
  const bytes = await atHome(home, 'D1', 1_000)
  await home.source.update('D1', opaqueBytes(500))
  const { write } = scene.writeTo
  scene.writeTo.write = () => Promise.reject(new Error('ENOSPC: no space left on device, write'))
  expect(await home.deliver()).toEqual([
    expect.objectContaining({ status: 'retrying', errorCode: 'content_unreadable', error: expect.stringMatching(/ENOSPC/) }),
  ])
  scene.writeTo.write = write
  expect(await readFile(home.fileOf('D1'))).toEqual(bytes)
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
})

test('a content stays while an attempt of another document with its path may replace it', async () => {
  const home = await createHome()
  await home.setHome()
  const { id } = await scene.db('connections').where({ workspace_id: home.workspaceId }).first('id')
  expect((await home.call('PATCH', `/connections/${id}`, { settings: { path_template: '{doc_id}{comp_id}' } })).status).toBe(200)
  const bytes = opaqueBytes(200)
  await home.source.create('D1', bytes)
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  await home.source.create('D1d', opaqueBytes(100), { compId: 'ata' })
  beforeDelivery = async () => {
    beforeDelivery = async () => {}
    await home.move()
  }
  expect(await home.deliver()).toEqual([{ status: 'delivered' }])
  expect([await home.storeOf('D1'), (await home.source.get('D1')).body]).toEqual(['postgres', bytes])
})
