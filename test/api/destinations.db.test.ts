import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startApi, type Api } from '../support/api.ts'
import type { Json } from '../support/client.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { insertDocument } from './insert-document.ts'
import { findWithoutNetwork, objstore, wire } from './objstore.ts'

const { database, api, acme } = share(await startScene({ findConnector: findWithoutNetwork }))

const create = async (name: string, config?: object) =>
  (await acme.call('POST', '/destinations', objstore(name, config))).json.data.id as string

const refusalOf = async (body: unknown) => {
  const { status, json } = await acme.call('POST', '/destinations', body)
  return { status, code: json.error.code, paths: json.error.details?.map(({ path }: { path: string }) => path) }
}

test('no line of the log contains credentials', async () => {
  const id = await create('Archive')
  await acme.call('PATCH', `/destinations/${id}`, { credentials: objstore('').credentials })
  await acme.call('PATCH', `/destinations/${id}`, { credentials: { access_key_id: 'canary' } })
  expect(api.log.join('')).not.toContain('canary')
})

test('the slots in use are the leases that have not run out, and their number is a limit of the config or the default', async () => {
  const id = await create('Slots')
  await database
    .db('destinations')
    .where({ id })
    .update({ config: JSON.stringify({ max_concurrent_deliveries: 3 }) })
  const lease = (number: number, until: string) => ({ destination_id: id, number, holder: `attempt-${number}`, leased_until: until })
  const [past, future] = [new Date(Date.now() - 60_000).toISOString(), new Date(Date.now() + 3_600_000).toISOString()]
  await database.db('destination_slots').insert([lease(1, future), lease(2, past), lease(3, future)])
  const slotsOf = async (path: string) => {
    const { slots, slots_in_use: inUse } = (await acme.call('GET', path)).json.data.attributes
    return [inUse, slots]
  }
  expect(await slotsOf(`/destinations/${id}`)).toEqual([2, 3])
  expect(await slotsOf(`/destinations/${await create('Unlimited')}`)).toEqual([0, 16])
})

test('an unknown connector type, an unavailable connector and an invalid config are 422', async () => {
  expect(await refusalOf({ ...objstore('A'), connector_type: 'fax' })).toEqual({
    status: 422,
    code: 'validation_failed',
    paths: ['connector_type'],
  })
  expect(await refusalOf({ ...objstore('A'), connector_type: 'drive' })).toMatchObject({ status: 422, paths: ['connector_type'] })
  expect(await refusalOf({ ...objstore('A', { bucket: 5, colour: 'red' }), credentials: {} })).toMatchObject({
    status: 422,
    paths: ['config.bucket', 'config.colour', 'credentials.access_key_id', 'credentials.secret_access_key'],
  })
  expect(await refusalOf({ ...objstore('A'), credentials: undefined })).toMatchObject({ status: 400, paths: ['credentials'] })
})

test('a directory that the operator has not allowed is refused with 422, when created and when tested', async () => {
  const directory = { connector_type: 'directory', config: { path: '/srv/archive' }, credentials: {} }
  for (const [path, body] of [
    ['/destinations', { name: 'Archive', ...directory }],
    ['/destinations/test', directory],
  ] as const) {
    const { status, json } = await acme.call('POST', path, body)
    expect([status, json.error.code]).toEqual([422, 'validation_failed'])
    expect(json.error.details).toEqual([{ path: 'config.path', message: expect.stringContaining('RELAY_DIRECTORY_ROOTS') }])
  }
  expect(await refusalOf({ name: 'Archive', ...directory, credentials: { username: 'u' } })).toMatchObject({ status: 422 })
  expect(await refusalOf({ name: 'Archive', ...directory, credentials: undefined })).toMatchObject({ status: 400, paths: ['credentials'] })
})

test('a change of the name alone leaves no audit entry, a change of the config names all that changed', async () => {
  const id = await create('A')
  const changes = async () => {
    const { json } = await acme.call('GET', `/audit-logs?subject_id=${id}&event=destination.updated`)
    return json.data.map(({ attributes }: { attributes: { metadata: { changed: string[] } } }) => attributes.metadata.changed)
  }
  expect((await acme.call('PATCH', `/destinations/${id}`, { name: 'B' })).json.data.attributes.name).toBe('B')
  expect(await changes()).toEqual([])
  await acme.call('PATCH', `/destinations/${id}`, { name: 'C', config: { bucket: 'new' } })
  expect(await changes()).toEqual([['name', 'config.bucket']])
})

test("concurrent PATCH requests do not lose each other's config keys", async () => {
  const id = await create('A')
  await Promise.all([
    acme.call('PATCH', `/destinations/${id}`, { config: { bucket: 'b' } }),
    acme.call('PATCH', `/destinations/${id}`, { config: { region: 'r' } }),
    acme.call('PATCH', `/destinations/${id}`, { config: { prefix: 'p' } }),
  ])
  const { json } = await acme.call('GET', `/destinations/${id}`)
  expect(json.data.attributes.config).toEqual({ bucket: 'b', region: 'r', prefix: 'p' })
})

test('deleting a destination deletes its connections and cancels its open deliveries', async () => {
  const { repositoryId, destinationId, connectionId } = await wire(acme, 'D2')
  const second = await create('Second')
  const both = await acme.call('POST', '/connections', {
    name: 'Both',
    repository_ids: [repositoryId],
    destination_ids: [destinationId, second],
  })
  const row = { workspaceId: acme.id, repositoryId, repoId: 'D2' }
  const delivery = { destinationId, connectionId }
  const pending = await insertDocument(database.db, { ...row, deliveries: [{ ...delivery, status: 'retrying' }], status: 'retrying' })
  const held = await insertDocument(database.db, {
    ...row,
    deliveries: [{ destinationId: second, connectionId: both.json.data.id, status: 'held' }],
    status: 'pending',
  })
  const done = await insertDocument(database.db, { ...row, deliveries: [{ ...delivery, status: 'delivered' }], status: 'delivered' })

  const deleted = await acme.call('DELETE', `/destinations/${destinationId}`)
  expect({ status: deleted.status, text: deleted.text }).toEqual({ status: 204, text: '' })
  expect((await acme.call('GET', `/destinations/${destinationId}`)).status).toBe(404)
  expect((await acme.call('DELETE', `/destinations/${destinationId}`)).status).toBe(404)
  expect((await acme.call('GET', `/connections/${connectionId}`)).status).toBe(404)
  expect((await acme.call('GET', `/connections/${both.json.data.id}`)).status).toBe(404)
  expect((await acme.call('GET', `/destinations/${second}`)).json.data.attributes.connections).toEqual([])

  const statusOf = async (id: string) => (await acme.call('GET', `/documents/${id}`)).json.data.attributes
  expect(await statusOf(pending)).toMatchObject({
    status: 'failed',
    deliveries: [{ status: 'cancelled', destination_name: 'Bucket of D2' }],
  })
  expect(await statusOf(held)).toMatchObject({ status: 'failed', deliveries: [{ status: 'cancelled', destination_name: 'Second' }] })
  expect(await statusOf(done)).toMatchObject({ status: 'delivered', deliveries: [{ status: 'delivered' }] })
})

test('a deletion names the connections that went too and the repositories that are wired to nothing, a dry run deletes nothing', async () => {
  const { repositoryId, destinationId, connectionId } = await wire(acme, 'D3')
  const spare = await wire(acme, 'D4')
  const link = async (name: string, repository_ids: string[]) =>
    (await acme.call('POST', '/connections', { name, repository_ids, destination_ids: [destinationId] })).json.data.id as string
  // D4 stays wired by its own connection, and a repository that is deleted is not named.
  const shared = await link('Shared', [repositoryId, spare.repositoryId])
  const gone = await acme.call('POST', '/repositories', { repo_id: 'D5', name: 'Gone' })
  await link('From a deleted repository', [gone.json.data.id])
  await acme.call('DELETE', `/repositories/${gone.json.data.id}`)

  const expected = {
    removed_connections: [
      { id: connectionId, name: 'From D3' },
      { id: shared, name: 'Shared' },
    ],
    unlinked_connections: [],
    removed_notifications: [],
    unwired_repositories: [{ id: repositoryId, repo_id: 'D3', name: 'Repository D3' }],
    affected_destinations: [],
    failed_documents_delivered: 0,
  }
  const dryRun = await acme.call('DELETE', `/destinations/${destinationId}?dry_run=true`)
  expect({ status: dryRun.status, data: dryRun.json.data }).toEqual({ status: 200, data: expected })
  expect((await acme.call('GET', `/connections/${shared}`)).status).toBe(200)
  expect((await acme.call('DELETE', `/destinations/${destinationId}?dry_run=yes`)).status).toBe(400)

  const deleted = await acme.call('DELETE', `/destinations/${destinationId}?dry_run=false`)
  expect(deleted.status).toBe(204)
  expect(deleted.headers.get('x-relay-removed-connections')).toBe(`${connectionId}, ${shared}`)
  const { json } = await acme.call('GET', `/audit-logs?subject_id=${destinationId}&event=destination.deleted`)
  expect(json.data[0].attributes).toMatchObject({
    description:
      'Destination Bucket of D3 (objstore) was deleted. Connections deleted with it: From D3, Shared. ' +
      'Repositories without a destination from then on: D3.',
    metadata: { name: 'Bucket of D3', connector_type: 'objstore', ...expected },
  })
  expect((await acme.call('DELETE', `/destinations/${destinationId}?dry_run=true`)).status).toBe(404)
})

test('a deletion says how many failed documents count as delivered from then on', async () => {
  const { repositoryId, destinationId, connectionId } = await wire(acme, 'D40')
  const other = await create('Other of D40')
  const insert = (...statuses: ['failed', 'delivered' | 'failed' | 'retrying' | 'cancelled' | undefined]) =>
    insertDocument(database.db, {
      workspaceId: acme.id,
      repositoryId,
      repoId: 'D40',
      status: 'failed',
      deliveries: [destinationId, other].flatMap((id, at) =>
        statuses[at] ? [{ destinationId: id, connectionId, status: statuses[at] }] : [],
      ),
    })
  const closed = [await insert('failed', 'delivered'), await insert('failed', 'delivered')]
  const open = [await insert('failed', 'failed'), await insert('failed', 'cancelled'), await insert('failed', undefined)]
  const retrying = await insert('failed', 'retrying')

  const dryRun = await acme.call('DELETE', `/destinations/${destinationId}?dry_run=true`)
  expect(dryRun.json.data.failed_documents_delivered).toBe(2)
  expect((await acme.call('DELETE', `/destinations/${destinationId}`)).status).toBe(204)

  const statusOf = async (id: string) => (await acme.call('GET', `/documents/${id}`)).json.data.attributes.status
  const after = await Promise.all([...closed, ...open, retrying].map(statusOf))
  expect(after).toEqual(['delivered', 'delivered', 'failed', 'failed', 'failed', 'retrying'])
  const { json } = await acme.call('GET', `/audit-logs?subject_id=${destinationId}&event=destination.deleted`)
  expect(json.data[0].attributes).toMatchObject({
    description: expect.stringMatching(/Failed documents that count as delivered from then on: 2\.$/) as string,
    metadata: { failed_documents_delivered: 2 },
  })
})

test('a deletion names the other destinations that lose documents, and the ids are in a header', async () => {
  const { repositoryId, destinationId, connectionId } = await wire(acme, 'D6')
  const [lone, wired] = [await create('Lone'), await create('Wired')]
  const spare = await wire(acme, 'D7')
  await acme.call('PATCH', `/connections/${connectionId}`, {
    repository_ids: [repositoryId, spare.repositoryId],
    destination_ids: [lone, destinationId, wired],
  })
  // An inactive connection holds what arrives, so nothing is lost.
  await acme.call('POST', '/connections', {
    name: 'Other way',
    is_active: false,
    repository_ids: [repositoryId, spare.repositoryId],
    destination_ids: [wired],
  })
  const affected = [{ id: lone, name: 'Lone', repo_ids: ['D6', 'D7'] }]
  const { json } = await acme.call('DELETE', `/destinations/${destinationId}?dry_run=true`)
  expect(json.data).toMatchObject({
    removed_connections: [{ id: connectionId }],
    affected_destinations: affected,
    unwired_repositories: [],
  })
  const deleted = await acme.call('DELETE', `/destinations/${destinationId}`)
  expect(deleted.headers.get('x-relay-affected-destinations')).toBe(lone)
  const entries = await acme.call('GET', `/audit-logs?subject_id=${destinationId}&event=destination.deleted`)
  expect(entries.json.data[0].attributes).toMatchObject({
    description: expect.stringMatching(/Destinations that also lose documents: Lone\.$/) as string,
    metadata: { affected_destinations: affected },
  })
})

test('keep_connections unlinks a destination, and only a connection that would be empty is deleted', async () => {
  const { repositoryId, destinationId, connectionId: alone } = await wire(acme, 'D8')
  const other = await create('Other')
  const both = await acme.call('POST', '/connections', {
    name: 'Both',
    is_active: false,
    repository_ids: [repositoryId],
    destination_ids: [destinationId, other],
  })
  const shared = both.json.data.id as string
  const document = await insertDocument(database.db, {
    workspaceId: acme.id,
    repositoryId,
    repoId: 'D8',
    deliveries: [
      { destinationId, connectionId: shared, status: 'held' },
      { destinationId: other, connectionId: shared, status: 'held' },
    ],
    status: 'pending',
  })
  const expected = {
    removed_connections: [{ id: alone, name: 'From D8' }],
    unlinked_connections: [{ id: shared, name: 'Both' }],
    removed_notifications: [],
    unwired_repositories: [],
    affected_destinations: [],
    failed_documents_delivered: 0,
  }
  const address = `/destinations/${destinationId}?keep_connections=true`
  expect((await acme.call('DELETE', `${address}&dry_run=true`)).json.data).toEqual(expected)
  const deleted = await acme.call('DELETE', address)
  expect({ status: deleted.status, removed: deleted.headers.get('x-relay-removed-connections') }).toEqual({ status: 204, removed: alone })
  expect((await acme.call('GET', `/connections/${alone}`)).status).toBe(404)
  const kept = (await acme.call('GET', `/connections/${shared}`)).json.data
  expect(kept.destinations).toEqual([{ id: other, type: 'objstore', name: 'Other' }])
  const { deliveries } = (await acme.call('GET', `/documents/${document}`)).json.data.attributes
  expect(Object.fromEntries(deliveries.map((each: Json) => [each.destination_id, each.status]))).toEqual({
    [destinationId]: 'cancelled',
    [other]: 'held',
  })
  const entries = await acme.call('GET', `/audit-logs?subject_id=${shared}&event=connection.updated`)
  expect(entries.json.data[0].attributes.metadata).toMatchObject({
    before: { destination_ids: [destinationId, other] },
    after: { destination_ids: [other] },
  })
})

test('a deletion erases config and credentials, and keeps name and kind for the documents that refer to the destination', async () => {
  const id = await create('Erased', { prefix: 'canary-prefix' })
  await database.db('destination_gates').insert({ destination_id: id, last_error: 'canary-error' })
  const deleted = await acme.call('DELETE', `/destinations/${id}`)
  expect(deleted.headers.get('x-relay-removed-connections')).toBe('')
  expect(await database.db('destinations').where({ id }).first()).toMatchObject({
    name: 'Erased',
    connector_type: 'objstore',
    config: {},
    credentials_sealed: Buffer.alloc(0),
  })
  expect(await database.db('destination_gates').where({ destination_id: id }).first()).toMatchObject({ last_error: null })
})

test('of two concurrent deletions exactly one succeeds', async () => {
  const id = await create('A')
  const statuses = await Promise.all([1, 2].map(async () => (await acme.call('DELETE', `/destinations/${id}`)).status))
  expect(statuses.map(String).toSorted()).toEqual(['204', '404'])
})

test('a connection cannot be created to a destination that is being deleted', async () => {
  for (let round = 0; round < 5; round += 1) {
    const { repositoryId } = await wire(acme, `R${round}`)
    const destination = await create('Doomed')
    const [made] = await Promise.all([
      acme.call('POST', '/connections', { name: 'A', repository_ids: [repositoryId], destination_ids: [destination] }),
      acme.call('DELETE', `/destinations/${destination}`),
    ])
    // The connection was created first and deleted together with the destination, or it was refused.
    const left = made.status === 201 ? (await acme.call('GET', `/connections/${made.json.data.id}`)).status : made.status
    expect(left).toBe(made.status === 201 ? 404 : 422)
  }
})

test('a test reports its result with 200 and redacts secrets that the target quotes', async () => {
  const { name: _, ...good } = objstore('')
  const missing = { ...good, config: { ...good.config, bucket: 'missing' } }
  const silent = { ...good, config: { ...good.config, bucket: 'silent' } }
  const run = async (body: unknown, at: Pick<Api, 'call'> = api) =>
    (await at.call('POST', `${acme.path}/destinations/test`, { key: acme.keys.admin, body })).json.data
  expect(await run(good)).toMatchObject({ status: 'success' })
  expect(await run(missing)).toEqual({
    status: 'failed',
    message: 'there is no such bucket (asked with [REDACTED])',
    error_code: 'bucket_missing',
  })
  const hasty = await startApi(database.db, { findConnector: findWithoutNetwork, limits: { endpoints: { probeTimeoutMs: 200 } } })
  expect(await run(silent, hasty)).toEqual({ status: 'failed', message: 'the test took longer than 0.2 s', error_code: 'probe_timeout' })
  await hasty.stop()
  expect((await acme.call('POST', '/destinations/test', { ...good, config: {} })).status).toBe(422)
})

test('a test contacts the target and reports its response', async () => {
  const authorizations: (string | undefined)[] = []
  const target = createServer((request, response) => {
    authorizations.push(request.headers.authorization)
    response.statusCode = request.url === '/right' ? 204 : 403
    response.end(`no entry for ${request.headers.authorization}`)
  }).listen(0, '127.0.0.1')
  await once(target, 'listening')
  const { port } = target.address() as AddressInfo
  const run = (path: string) =>
    acme.call('POST', '/destinations/test', {
      connector_type: 'webhook',
      config: { url: `http://127.0.0.1:${port}${path}` },
      credentials: { bearer_token: 'canary-token' },
    })
  expect((await run('/right')).json.data.status).toBe('success')
  const refused = await run('/wrong')
  expect(refused.json.data).toEqual({ status: 'failed', message: expect.stringContaining('403'), error_code: 'http_403' })
  expect(refused.text).not.toContain('canary')
  expect(authorizations).toEqual(['Bearer canary-token', 'Bearer canary-token'])
  target.close()
})

test('a change is tested with the stored credentials or new ones, and stores nothing', async () => {
  const requests: [method: string | undefined, authorization: string | undefined][] = []
  const target = createServer((request, response) => {
    requests.push([request.method, request.headers.authorization])
    response.end()
  }).listen(0, '127.0.0.1')
  await once(target, 'listening')
  const { port } = target.address() as AddressInfo
  const config = { url: `http://127.0.0.1:${port}/in` }
  const body = { name: 'A', connector_type: 'webhook', config, credentials: { bearer_token: 'canary-stored' } }
  const { id } = (await acme.call('POST', '/destinations', body)).json.data
  const stored = () => database.db('destinations').where({ id }).first()
  const before = await stored()
  const run = (change: object) => acme.call('POST', `/destinations/${id}/test-change`, change)
  expect((await run({ config: { method: 'PUT' } })).json.data.status).toBe('success')
  expect((await run({ credentials: { bearer_token: 'canary-new' } })).json.data.status).toBe('success')
  expect(requests).toEqual([
    ['PUT', 'Bearer canary-stored'],
    ['POST', 'Bearer canary-new'],
  ])
  expect((await run({ config: { method: 'DELETE' } })).json.error.details[0].path).toBe('config.method')
  expect((await acme.call('POST', `/destinations/${id}/test-change`, {}, { key: acme.keys.viewer })).status).toBe(403)
  expect(requests).toHaveLength(2)
  expect(await stored()).toEqual(before)
  target.close()
})

test('a successful test sets a failing destination to connected', async () => {
  const id = await create('A')
  await database.db('destinations').where({ id }).update({ status: 'failing' })
  const failure = { last_error: 'access denied', last_error_code: 'http_403', last_error_at: new Date(), failed_attempts: 3 }
  await database.db('destination_gates').insert({ destination_id: id, ...failure })
  expect((await acme.call('GET', `/destinations/${id}`)).json.data.attributes).toMatchObject({
    status: 'failing',
    last_error: 'access denied',
    last_error_code: 'http_403',
    failed_attempts: 3,
  })
  expect((await acme.call('POST', `/destinations/${id}/test`)).json.data.status).toBe('success')
  expect((await acme.call('GET', `/destinations/${id}`)).json.data.attributes).toMatchObject({
    status: 'connected',
    last_error: null,
    last_error_code: null,
    last_error_at: null,
    failed_attempts: 0,
  })

  await acme.call('PATCH', `/destinations/${id}`, { config: { bucket: 'missing' } })
  const failed = await acme.call('POST', `/destinations/${id}/test`)
  expect(failed.json.data.status).toBe('failed')
  expect(failed.text).not.toContain('canary')
})

test('a test fails with a remedy if no configured key decrypts the credentials', async () => {
  const id = await create('A')
  await database
    .db('destinations')
    .where({ id })
    .update({ credentials_sealed: Buffer.from('\x01\x05other', 'latin1') })
  const { status, json } = await acme.call('POST', `/destinations/${id}/test`)
  expect({ status, result: json.data.status }).toEqual({ status: 200, result: 'failed' })
  expect(json.data.message).toMatch(/Save the credentials again/)
  const change = await acme.call('POST', `/destinations/${id}/test-change`, { config: { prefix: 'in/' } })
  expect(change.json.data).toEqual({ status: 'failed', message: expect.stringMatching(/Save the credentials again/) })
})

test('path, query and header values of a webhook are masked for viewers, and members see what they wrote', async () => {
  const config = {
    url: 'https://hooks.example/services/T0001/S3CR3TPATH?key=S3CR3TQUERY',
    headers: { 'X-Tenant': 'S3CR3THEADER' },
    method: 'PUT',
  }
  const body = { name: 'Hook', connector_type: 'webhook', config, credentials: {} }
  const created = await acme.call('POST', '/destinations', body, { key: acme.keys.member })
  expect(created.json.data.attributes.config).toEqual(config)
  const id = created.json.data.id
  const read = async (key: string) => {
    const one = await acme.call('GET', `/destinations/${id}`, undefined, { key })
    const listed = await acme.call('GET', '/destinations?type=webhook', undefined, { key })
    expect(listed.json.data.at(-1).attributes.config).toEqual(one.json.data.attributes.config)
    return one
  }
  for (const key of [acme.keys.member, acme.keys.admin]) expect((await read(key)).json.data.attributes.config).toEqual(config)
  const seen = await read(acme.keys.viewer)
  expect(seen.text).not.toContain('S3CR3T')
  expect(seen.json.data.attributes.config).toEqual({
    url: 'https://hooks.example/[REDACTED]',
    headers: { 'X-Tenant': '[REDACTED]' },
    method: 'PUT',
  })
  await acme.call('PATCH', `/destinations/${id}`, { config: { url: 'https://hooks.example' } })
  expect((await read(acme.keys.viewer)).json.data.attributes.config.url).toBe('https://hooks.example/')
})

test('a url with the origin of the relay itself is saved with a warning', async () => {
  const own = await startApi(database.db, { variables: { RELAY_BASE_URL: 'https://relay.example/base' } })
  const save = (method: string, path: string, url: string) =>
    own.call(method, `${acme.path}${path}`, {
      key: acme.keys.admin,
      body: { ...(method === 'POST' && { name: 'Loop', connector_type: 'webhook' }), config: { url }, credentials: {} },
    })
  const looping = await save('POST', '/destinations', 'https://RELAY.example:443/receiver/acme/prod?create&contRep=Z1')
  expect(looping.status).toBe(201)
  expect(looping.json.data.attributes.warnings).toEqual([
    { code: 'leads_back', message: expect.stringMatching(/^config\.url leads back to this relay/) },
  ])
  const elsewhere = await save('PATCH', `/destinations/${looping.json.data.id}`, 'https://relay.example:8443/receiver')
  expect(elsewhere.json.data.attributes.warnings).toEqual([])
  await own.stop()
})
