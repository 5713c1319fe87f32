import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder } from '../support/folder.ts'
import { share } from '../support/share.ts'
import { atHome, createFolderHomes } from './folder-home.ts'
import { startHomeScene, type HomeWorkspace } from './scene.ts'

const root = share(await createFolder())
const scene = share(await startHomeScene([root.path]))
const createHome = createFolderHomes(scene, root.path)

const add = (home: HomeWorkspace, path: string) =>
  home.call('POST', '/destinations', { name: 'twin', connector_type: 'directory', config: { path }, credentials: {} })

const refusal = (path: string) => ({
  status: 422,
  json: { error: { details: [{ path, message: expect.stringMatching(/destination (home|twin)/) }] } },
})

test('a destination that names the place of a home is refused, and so is a folder in it or around it', async () => {
  const home = await createHome()
  await home.setHome()
  for (const path of [home.folder, `${home.folder}/`, join(home.folder, 'in'), root.path]) {
    expect([path, await add(home, path)]).toMatchObject([path, refusal('config.path')])
  }
  await mkdir(join(root.path, 'apart'), { recursive: true })
  const other = await add(home, join(root.path, 'apart'))
  expect(other.status).toBe(201)
  const { id } = other.json.data
  expect(await home.call('PATCH', `/destinations/${id}`, { config: { path: home.folder } })).toMatchObject(refusal('config.path'))
  expect((await home.call('PATCH', `/destinations/${id}`, { name: 'renamed' })).status).toBe(200)
  const moved = await home.call('PATCH', `/destinations/${home.destinationId}`, { config: { path: join(root.path, 'apart') } })
  expect(moved).toMatchObject({ status: 422, json: { error: { details: [{ path: 'config.path' }] } } })
})

test('a destination whose place another one names cannot become a home', async () => {
  const home = await createHome()
  const twin = await add(home, join(home.folder, 'in'))
  expect(twin.status).toBe(201)
  expect(await home.setHome()).toMatchObject(refusal('home_destination_id'))
  const created = await home.call('POST', '/repositories', { name: 'Z2', repo_id: 'Z2', home_destination_id: home.destinationId })
  expect(created).toMatchObject(refusal('home_destination_id'))
  const { id } = twin.json.data
  expect((await home.call('DELETE', `/destinations/${id}`)).status).toBe(204)
  expect((await home.setHome()).status).toBe(200)
})

test('a destination that is no home any more counts as one while it has contents', async () => {
  const home = await createHome()
  await home.setHome()
  await atHome(home, 'D1', 1_000)
  expect((await home.setHome({ home_destination_id: null })).status).toBe(200)
  expect(await add(home, home.folder)).toMatchObject(refusal('config.path'))
})

test('a workspace learns nothing about the homes of another one', async () => {
  const [home, stranger] = [await createHome(), await createHome()]
  await home.setHome()
  expect((await add(stranger, home.folder)).status).toBe(201)
})

test('of a home and its twin that are configured at the same time, one is refused', async () => {
  const home = await createHome()
  const answers = await Promise.all([home.setHome(), add(home, home.folder)])
  expect(answers.filter(({ status }) => status === 422)).toHaveLength(1)
})
