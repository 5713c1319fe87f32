import { objstore, startScene, wire } from './api.ts'
import { insertDocument } from './documents-in.ts'

const { database, acme, other, stop } = await startScene()
afterAll(stop)

const repository = async (repoId: string, tenant = acme) =>
  (await tenant.call('POST', '/repositories', { repo_id: repoId, name: `Name of ${repoId}` })).json.data.id as string
const destination = async (name: string, tenant = acme) =>
  (await tenant.call('POST', '/destinations', objstore(name))).json.data.id as string

const refusal = async (method: string, path: string, body: unknown) => {
  const { status, json } = await acme.call(method, path, body)
  return { status, code: json.error.code, paths: json.error.details?.map(({ path: at }: { path: string }) => at) }
}

test('a connection is flat, active by default, and keeps the order of its ends', async () => {
  const [a, b] = [await repository('A1'), await repository('A2')]
  const [x, y] = [await destination('X'), await destination('Y')]
  const body = { name: 'Fan', repository_ids: [b, a, b], destination_ids: [y, x], settings: { on_resume: 'skip' } }
  const { status, json } = await acme.call('POST', '/connections', body)
  expect({ status, json }).toEqual({
    status: 201,
    json: {
      data: {
        id: expect.any(String),
        name: 'Fan',
        is_active: true,
        repositories: [
          { id: b, repo_id: 'A2', description: 'Name of A2' },
          { id: a, repo_id: 'A1', description: 'Name of A1' },
        ],
        destinations: [
          { id: y, type: 'objstore', name: 'Y' },
          { id: x, type: 'objstore', name: 'X' },
        ],
        settings: { on_resume: 'skip' },
        created_at: expect.any(String),
        updated_at: expect.any(String),
      },
    },
  })
  expect((await acme.call('GET', `/connections/${json.data.id}`)).json).toEqual(json)
})

test('missing fields are 400, unknown, foreign and deleted ids 422 and each is named', async () => {
  const mine = await repository('B1')
  const [theirs, target] = [await repository('B1', other), await destination('T')]
  const gone = await destination('Gone')
  await acme.call('DELETE', `/destinations/${gone}`)
  expect(await refusal('POST', '/connections', { name: 'A' })).toEqual({
    status: 400,
    code: 'invalid_request',
    paths: ['repository_ids', 'destination_ids'],
  })
  const body = { name: 'A', repository_ids: [mine, theirs], destination_ids: [gone, target, 'nonsense'] }
  expect(await refusal('POST', '/connections', body)).toEqual({
    status: 422,
    code: 'validation_failed',
    paths: ['repository_ids.1', 'destination_ids.0', 'destination_ids.2'],
  })
  expect(await refusal('POST', '/connections', { ...body, repository_ids: [] })).toMatchObject({ status: 422, paths: ['repository_ids'] })
  expect((await acme.call('GET', '/connections')).json.data.some(({ name }: { name: string }) => name === 'A')).toBe(false)
})

test('settings that are unknown or wrong are 422', async () => {
  const ends = { name: 'A', repository_ids: [await repository('C1')], destination_ids: [await destination('T')] }
  const faultOf = async (settings: unknown) => refusal('POST', '/connections', { ...ends, settings })
  expect(await faultOf({ colour: 'red' })).toMatchObject({ status: 422, paths: ['settings.colour'] })
  expect(await faultOf({ path_template: '{doc_id}/{comp_id}/{user}' })).toMatchObject({ status: 422, paths: ['settings.path_template'] })
  expect(await faultOf({ filter: { min_bytes: 'x' } })).toMatchObject({ status: 422, paths: ['settings.filter.min_bytes'] })
  expect(await faultOf('text')).toMatchObject({ status: 400, paths: ['settings'] })
})

test('PATCH with is_active alone switches; the list filters by it', async () => {
  const { connectionId } = await wire(acme, 'D1')
  const before = (await acme.call('GET', `/connections/${connectionId}`)).json.data
  const off = await acme.call('PATCH', `/connections/${connectionId}`, { is_active: false })
  expect(off.json.data).toEqual({ ...before, is_active: false, updated_at: expect.any(String) })
  const idsOf = async (query: string) => (await acme.call('GET', `/connections${query}`)).json.data.map(({ id }: { id: string }) => id)
  expect(await idsOf('?is_active=false')).toEqual([connectionId])
  expect(await idsOf('?is_active=true')).not.toContain(connectionId)
  expect(await idsOf('')).toContain(connectionId)
  expect((await acme.call('GET', '/connections?is_active=maybe')).status).toBe(400)
})

test('PATCH replaces a whole set, and changes nothing where an id is unknown', async () => {
  const { connectionId, repositoryId } = await wire(acme, 'E1')
  const [second, third] = [await repository('E2'), await repository('E3')]
  const path = `/connections/${connectionId}`
  const replaced = await acme.call('PATCH', path, { repository_ids: [third, second] })
  expect(replaced.json.data.repositories.map(({ id }: { id: string }) => id)).toEqual([third, second])
  expect(replaced.json.data.destinations).toHaveLength(1)

  const refused = await refusal('PATCH', path, { name: 'New', repository_ids: [repositoryId], destination_ids: ['nonsense'] })
  expect(refused).toMatchObject({ status: 422, paths: ['destination_ids.0'] })
  expect((await acme.call('GET', path)).json).toEqual(replaced.json)
  expect((await acme.call('PATCH', path, {})).json).toEqual(replaced.json)
})

test('simultaneous replacements leave one of the sets, whole', async () => {
  const { connectionId, repositoryId } = await wire(acme, 'F1')
  const [b, c] = [await repository('F2'), await repository('F3')]
  const sets = [[repositoryId], [b, c], [c], [repositoryId, b, c]]
  const answers = await Promise.all(sets.map((ids) => acme.call('PATCH', `/connections/${connectionId}`, { repository_ids: ids })))
  for (const { status } of answers) expect(status).toBe(200)
  const left = (await acme.call('GET', `/connections/${connectionId}`)).json.data.repositories.map(({ id }: { id: string }) => id)
  expect(sets).toContainEqual(left)
})

test('deleting a connection answers a message, cancels what it held and lets go on what it has forwarded', async () => {
  const { connectionId, repositoryId, destinationId } = await wire(acme, 'G1')
  const row = { workspaceId: acme.id, repositoryId, repoId: 'G1' }
  const held = await insertDocument(database.db, { ...row, deliveries: [{ destinationId, connectionId, status: 'held' }] })
  const open = await insertDocument(database.db, { ...row, deliveries: [{ destinationId, connectionId, status: 'pending' }] })
  const { status, json } = await acme.call('DELETE', `/connections/${connectionId}`)
  expect({ status, json }).toEqual({ status: 200, json: { message: expect.any(String) } })
  expect((await acme.call('DELETE', `/connections/${connectionId}`)).status).toBe(404)
  const statusOf = async (id: string) => (await acme.call('GET', `/documents/${id}`)).json.data.attributes.deliveries[0].status
  expect(await statusOf(held)).toBe('cancelled')
  expect(await statusOf(open)).toBe('pending')
})

test('a connection of another workspace is answered like one that does not exist', async () => {
  const { connectionId } = await wire(acme, 'H1')
  for (const [method, body] of [['GET'], ['PATCH', { is_active: false }], ['DELETE']] as const) {
    expect((await other.call(method, `/connections/${connectionId}`, body)).status).toBe(404)
  }
  expect((await acme.call('GET', `/connections/${connectionId}`)).json.data.is_active).toBe(true)
})
