import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { objstore, wire } from './objstore.ts'

const { database, api, acme, other } = share(await startScene())

const repository = async (repoId: string, tenant = acme) =>
  (await tenant.call('POST', '/repositories', { repo_id: repoId, name: `Name of ${repoId}` })).json.data.id as string
const destination = async (name: string, tenant = acme) =>
  (await tenant.call('POST', '/destinations', objstore(name))).json.data.id as string

const refusal = async (method: string, path: string, body: unknown) => {
  const { status, json } = await acme.call(method, path, body)
  return { status, code: json.error.code, paths: json.error.details?.map(({ path: at }: { path: string }) => at) }
}

test('all connections are listed, or one page with meta if the query has page or per_page', async () => {
  const tenant = await api.tenant('acme/paged')
  const names = ['P1', 'P2', 'P3']
  for (const name of names) await wire(tenant, name, name !== 'P2')
  const list = async (query: string) => {
    const { status, json, headers } = await tenant.call('GET', `/connections${query}`)
    return { status, names: json.data?.map(({ name }: { name: string }) => name), meta: json.meta, link: headers.get('link') }
  }
  const all = names.map((name) => `From ${name}`)
  expect(await list('')).toEqual({ status: 200, names: all, meta: undefined, link: null })
  expect(await list('?is_active=true')).toMatchObject({ names: [all[0], all[2]], meta: undefined })
  expect(await list('?per_page=2')).toMatchObject({ names: all.slice(0, 2), meta: { current_page: 1, per_page: 2, total: 3 } })
  const second = await list('?per_page=2&page=2')
  expect(second).toMatchObject({ names: all.slice(2), meta: { current_page: 2, per_page: 2, total: 3 } })
  expect(second.link).toContain('per_page=2&page=1>; rel="prev"')
  expect(await list('?page=1')).toMatchObject({ names: all, meta: { current_page: 1, per_page: 25, total: 3 } })
  expect(await list('?page=2&per_page=1&is_active=true')).toMatchObject({ names: [all[2]], meta: { total: 2 } })
  expect(await list('?page=0')).toMatchObject({ status: 400 })
  expect(await list('?per_page=101')).toMatchObject({ status: 400 })
})

test('missing fields are 400; unknown, foreign and deleted ids are 422, with a detail for each', async () => {
  const own = await repository('B1')
  const [foreign, target] = [await repository('B1', other), await destination('T')]
  const deleted = await destination('Deleted')
  await acme.call('DELETE', `/destinations/${deleted}`)
  expect(await refusal('POST', '/connections', { name: 'A' })).toEqual({
    status: 400,
    code: 'invalid_request',
    paths: ['repository_ids', 'destination_ids'],
  })
  const body = { name: 'A', repository_ids: [own, foreign], destination_ids: [deleted, target, 'nonsense'] }
  expect(await refusal('POST', '/connections', body)).toEqual({
    status: 422,
    code: 'validation_failed',
    paths: ['repository_ids.1', 'destination_ids.0', 'destination_ids.2'],
  })
  expect(await refusal('POST', '/connections', { ...body, repository_ids: [] })).toMatchObject({ status: 422, paths: ['repository_ids'] })
  expect((await acme.call('GET', '/connections')).json.data.some(({ name }: { name: string }) => name === 'A')).toBe(false)
})

test('unknown and invalid settings are 422', async () => {
  const ends = { name: 'A', repository_ids: [await repository('C1')], destination_ids: [await destination('T')] }
  const refusalOf = async (settings: unknown) => refusal('POST', '/connections', { ...ends, settings })
  expect(await refusalOf({ colour: 'red' })).toMatchObject({ status: 422, paths: ['settings.colour'] })
  expect(await refusalOf({ path_template: '{doc_id}/{comp_id}/{user}' })).toMatchObject({ status: 422, paths: ['settings.path_template'] })
  expect(await refusalOf({ filter: { min_bytes: 'x' } })).toMatchObject({ status: 422, paths: ['settings.filter.min_bytes'] })
  expect(await refusalOf('text')).toMatchObject({ status: 400, paths: ['settings'] })
})

test('properties are accepted if every destination can have them, and a kind that cannot says so', async () => {
  const [repositoryId, store] = [await repository('PR1'), await destination('Store')]
  const made = await acme.call('POST', '/destinations', {
    name: 'Webhook',
    connector_type: 'webhook',
    config: { url: 'https://dms.example.com/in' },
    credentials: {},
  })
  const webhook = made.json.data.id as string
  const create = (settings: object, destinationIds = [store]) =>
    acme.call('POST', '/connections', { name: 'Tagged', repository_ids: [repositoryId], destination_ids: destinationIds, settings })
  const refusalOf = async (properties: object, destinationIds = [store]) => {
    const { status, json } = await create({ properties }, destinationIds)
    return { status, details: json.error.details.map(({ path, message }: { path: string; message: string }) => `${path}: ${message}`) }
  }
  const properties = { Vendor: '{meta.vendor_name}', 'Invoice number': 'No. {erp_object_id}' }
  const { status, json } = await create({ properties })
  expect({ status, settings: json.data.settings }).toEqual({ status: 201, settings: { properties } })
  const path = `/connections/${json.data.id}`

  const toWebhook = /^settings\.properties: Webhook \(webhook\) takes no properties, because its messages contain every field/
  expect(await refusalOf(properties, [store, webhook])).toEqual({ status: 422, details: [expect.stringMatching(toWebhook)] })
  expect(await refusal('PATCH', path, { destination_ids: [webhook] })).toMatchObject({ status: 422, paths: ['settings.properties'] })
  expect((await acme.call('GET', path)).json.data.destinations).toMatchObject([{ id: store }])
  expect((await acme.call('PATCH', path, { destination_ids: [webhook], settings: {} })).status).toBe(200)

  const wrong: [object, RegExp][] = [
    [{ 'a?b': 'x' }, /^settings\.properties\.a\?b: the name must be the name of an object tag.*at Store \(objstore\)$/],
    [{ Vendor: '{vendor}' }, /^settings\.properties\.Vendor: unknown placeholder \{vendor\}/],
    [{ Vendor: '{meta.vendor_name' }, /unmatched brace/],
    [{ Vendor: '' }, /settings\.properties\.Vendor/],
    [{ 'a:b': 'x' }, /^settings\.properties\.a:b: has a name with .* a colon/],
    [{ Vendor: 'x', VENDOR: 'y' }, /^settings\.properties\.VENDOR: differs from another name only in upper and lower case/],
    [Object.fromEntries(Array.from({ length: 11 }, (_, at) => [`P${at}`, 'x'])), /at most 10 properties/],
  ]
  for (const [given, message] of wrong) expect(await refusalOf(given)).toEqual({ status: 422, details: [expect.stringMatching(message)] })
})

test('PATCH replaces a whole set of ids, and changes nothing if an id is unknown', async () => {
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

test('concurrent replacements of a set leave one of the sets complete', async () => {
  const { connectionId, repositoryId } = await wire(acme, 'F1')
  const [b, c] = [await repository('F2'), await repository('F3')]
  const sets = [[repositoryId], [b, c], [c], [repositoryId, b, c]]
  const answers = await Promise.all(sets.map((ids) => acme.call('PATCH', `/connections/${connectionId}`, { repository_ids: ids })))
  for (const { status } of answers) expect(status).toBe(200)
  const left = (await acme.call('GET', `/connections/${connectionId}`)).json.data.repositories.map(({ id }: { id: string }) => id)
  expect(sets).toContainEqual(left)
})

test('removing a destination cancels what the connection held for it, and the answer says how many', async () => {
  const { connectionId, repositoryId, destinationId } = await wire(acme, 'R1', false)
  const [kept, added] = [await destination('Kept'), await destination('Added')]
  await acme.call('PATCH', `/connections/${connectionId}`, { destination_ids: [destinationId, kept] })
  const row = { workspaceId: acme.id, repositoryId, repoId: 'R1' }
  const insert = (status: 'held' | 'retrying') =>
    insertDocument(database.db, {
      ...row,
      deliveries: [destinationId, kept].map((id) => ({ destinationId: id, connectionId, status })),
    })
  const held = [await insert('held'), await insert('held')]
  const retrying = await insert('retrying')
  const { status, json } = await acme.call('PATCH', `/connections/${connectionId}`, { destination_ids: [kept, added], is_active: true })
  expect({ status, meta: json.meta }).toEqual({ status: 200, meta: { cancelled_deliveries: 2 } })
  const statusesOf = async (id: string) =>
    (await acme.call('GET', `/documents/${id}`)).json.data.attributes.deliveries.map(({ status: each }: { status: string }) => each)
  for (const id of held) expect(await statusesOf(id)).toEqual(['cancelled', 'held'])
  // What was forwarded before continues.
  expect(await statusesOf(retrying)).toEqual(['retrying', 'retrying'])
  expect((await acme.call('PATCH', `/connections/${connectionId}`, { name: 'B' })).json.meta).toBeUndefined()
})

test('deleting a connection returns a message, cancels held deliveries and leaves started ones alone', async () => {
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

test('a connection says how many deliveries it holds', async () => {
  const { connectionId, repositoryId, destinationId } = await wire(acme, 'HELD1', false)
  for (const status of ['held', 'held', 'delivered'] as const) {
    const row = { workspaceId: acme.id, repositoryId, repoId: 'HELD1', deliveries: [{ destinationId, connectionId, status }] }
    await insertDocument(database.db, row)
  }
  expect((await acme.call('GET', `/connections/${connectionId}`)).json.data.held_deliveries).toBe(2)
  const listed = (await acme.call('GET', '/connections?is_active=false')).json.data
  expect(listed.find(({ id }: { id: string }) => id === connectionId).held_deliveries).toBe(2)
})

describe('a preview', () => {
  const preview = async (body: object, tenant = acme) => {
    const { status, json } = await tenant.call('POST', '/connections/preview', body, { key: tenant.keys.viewer })
    return { status, code: json.error?.code, paths: json.error?.details?.map(({ path }: { path: string }) => path), ...json.data }
  }
  const at = (second: number) => new Date(Date.UTC(2026, 10, 22, 9, 0, second))

  test('shows which of the newest documents a connection would forward, and under which path', async () => {
    const [first, second] = [await repository('P1'), await repository('P2')]
    const base = { workspaceId: acme.id, contentType: 'application/PDF; charset=x' }
    const oldest = await insertDocument(database.db, { ...base, repositoryId: first, repoId: 'P1', docId: 'A', receivedAt: at(1) })
    const note = { ...base, repositoryId: second, repoId: 'P2', docId: 'B', compId: 'note', receivedAt: at(2) }
    await insertDocument(database.db, note)
    const text = { ...base, repositoryId: first, repoId: 'P1', docId: 'a/b', contentType: 'text/plain', receivedAt: at(3) }
    await insertDocument(database.db, text)
    // Not of these repositories: the same name in another workspace.
    await insertDocument(database.db, { ...base, workspaceId: other.id, repositoryId: await repository('P1', other), repoId: 'P1' })

    const both = { repository_ids: [first, second, first] }
    const settings = { path_template: '{repo_id}/{yyyy}-{mm}-{dd}/{ar_object}-{doc_id}-{comp_id}.{ext}' }
    const all = await preview({ ...both, settings })
    expect(all.documents.map(({ path }: { path: string }) => path)).toEqual([
      'P1/2026-11-22/ZINVOICE-a%2Fb-data.txt',
      'P2/2026-11-22/ZINVOICE-B-note.pdf',
      'P1/2026-11-22/ZINVOICE-A-data.pdf',
    ])
    expect(all.documents[2]).toEqual({
      document_id: oldest,
      doc_id: 'A',
      repo_id: 'P1',
      repository_name: 'Name of P1',
      metadata: { erp_object_type: null, erp_object_id: null, ar_object: 'ZINVOICE' },
      comp_id: 'data',
      content_type: 'application/PDF; charset=x',
      size_bytes: 5,
      received_at: at(1).toISOString(),
      path: 'P1/2026-11-22/ZINVOICE-A-data.pdf',
      unmet_condition: null,
    })

    const unmet = async (filter: object) => {
      const { documents } = await preview({ ...both, settings: { filter } })
      return documents.map(({ path, unmet_condition: condition }: { path: string | null; unmet_condition: string | null }) => {
        expect(path === null).toBe(condition !== null)
        return condition
      })
    }
    expect(await unmet({ content_types: ['application/pdf'], comp_ids: ['data'] })).toEqual(['content_types', 'comp_ids', null])
    expect(await unmet({ min_bytes: 6 })).toEqual(['min_bytes', 'min_bytes', 'min_bytes'])
    expect(await unmet({ max_bytes: 4 })).toEqual(['max_bytes', 'max_bytes', 'max_bytes'])
    expect((await preview({ repository_ids: [await repository('P3')] })).documents).toEqual([])
  })

  test('reads the newest documents only', async () => {
    const id = await repository('P4')
    for (let second = 0; second < 52; second += 1) {
      const row = { workspaceId: acme.id, repositoryId: id, repoId: 'P4', docId: `D${second}`, receivedAt: at(second) }
      await insertDocument(database.db, row)
    }
    const { documents } = await preview({ repository_ids: [id] })
    expect(documents).toHaveLength(50)
    expect([documents[0].doc_id, documents[49].doc_id]).toEqual(['D51', 'D2'])
  })

  test('refuses invalid settings and unknown repositories as a create does', async () => {
    const own = await repository('P5')
    const template = { path_template: '{doc_id}' }
    expect(await preview({ repository_ids: [own], settings: template })).toMatchObject({ status: 422, paths: ['settings.path_template'] })
    const foreign = await repository('P5', other)
    expect(await preview({ repository_ids: [own, foreign] })).toMatchObject({ status: 422, paths: ['repository_ids.1'] })
    expect(await preview({ repository_ids: [] })).toMatchObject({ status: 422, paths: ['repository_ids'] })
    expect(await preview({})).toMatchObject({ status: 400, paths: ['repository_ids'] })
  })
})
