import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { objstore, startApi, startScene, wire, type Api } from './api.ts'
import { insertDocument } from './documents-in.ts'

const { database, api, acme, other, stop } = await startScene()
afterAll(stop)

const create = async (name: string, config?: object) =>
  (await acme.call('POST', '/destinations', objstore(name, config))).json.data.id as string

const faultsOf = async (body: unknown) => {
  const { status, json } = await acme.call('POST', '/destinations', body)
  return { status, code: json.error.code, paths: json.error.details?.map(({ path }: { path: string }) => path) }
}

test('a new destination is connected, and shows its config but never its credentials', async () => {
  const { status, json, text } = await acme.call('POST', '/destinations', objstore('Archive'))
  expect(status).toBe(201)
  expect(json.data).toEqual({
    id: expect.stringMatching(/^[0-9A-Z]{26}$/),
    type: 'destination',
    attributes: {
      name: 'Archive',
      connector_type: 'objstore',
      status: 'connected',
      config: { bucket: 'archive', region: 'eu-central-1' },
      last_error: null,
      last_delivered_at: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: expect.any(String),
    },
  })
  const shown = await acme.call('GET', `/destinations/${json.data.id}`)
  const changed = await acme.call('PATCH', `/destinations/${json.data.id}`, { credentials: objstore('').credentials })
  const listed = await acme.call('GET', '/destinations')
  for (const answer of [text, shown.text, changed.text, listed.text]) expect(answer).not.toContain('canary')
  const row = await database.db('destinations').where({ id: json.data.id }).first()
  expect(JSON.stringify(row) + row.credentials_sealed.toString('latin1')).not.toContain('canary')
  expect(api.log.join('')).not.toContain('canary')
})

test('only the single response has the connections that lead there', async () => {
  const { destinationId, connectionId } = await wire(acme, 'D1')
  const { json } = await acme.call('GET', `/destinations/${destinationId}`)
  expect(json.data.attributes.connections).toEqual([
    { id: connectionId, source_repo_id: 'D1', source_name: 'Repository D1', status: 'active' },
  ])
  const listed = await acme.call('GET', '/destinations?type=objstore&per_page=100')
  expect(listed.json.data.length).toBeGreaterThan(0)
  for (const { attributes } of listed.json.data) expect(attributes).not.toHaveProperty('connections')
  expect((await acme.call('GET', '/destinations?type=sftp')).json.meta.total).toBe(0)
})

test('an unknown connector type, one without a connector, and a config that does not fit are 422', async () => {
  expect(await faultsOf({ ...objstore('A'), connector_type: 'fax' })).toEqual({
    status: 422,
    code: 'validation_failed',
    paths: ['connector_type'],
  })
  expect(await faultsOf({ ...objstore('A'), connector_type: 'drive' })).toMatchObject({ status: 422, paths: ['connector_type'] })
  expect(await faultsOf({ ...objstore('A', { bucket: 5, colour: 'red' }), credentials: {} })).toMatchObject({
    status: 422,
    paths: ['config.bucket', 'config.colour', 'credentials.access_key_id', 'credentials.secret_access_key'],
  })
  expect(await faultsOf({ ...objstore('A'), credentials: undefined })).toMatchObject({ status: 400, paths: ['credentials'] })
})

test('PATCH merges the config, removes what is null, and replaces the credentials', async () => {
  const id = await create('A', { prefix: 'in/' })
  const sealed = async () => (await database.db('destinations').where({ id }).first()).credentials_sealed as Buffer
  const before = await sealed()
  const merged = await acme.call('PATCH', `/destinations/${id}`, { name: 'B', config: { bucket: 'new' } })
  expect(merged.json.data.attributes).toMatchObject({ name: 'B', config: { bucket: 'new', region: 'eu-central-1', prefix: 'in/' } })
  expect(await sealed()).toEqual(before)

  const removed = await acme.call('PATCH', `/destinations/${id}`, { config: { prefix: null } })
  expect(removed.json.data.attributes.config).toEqual({ bucket: 'new', region: 'eu-central-1' })

  expect((await acme.call('PATCH', `/destinations/${id}`, { credentials: { access_key_id: 'only' } })).status).toBe(422)
  expect((await acme.call('PATCH', `/destinations/${id}`, { config: { region: null } })).status).toBe(422)
  expect(await sealed()).toEqual(before)
  expect((await acme.call('PATCH', `/destinations/${id}`, { connector_type: 'sftp' })).status).toBe(400)
})

test('of many simultaneous merges none loses the keys of another', async () => {
  const id = await create('A')
  await Promise.all([
    acme.call('PATCH', `/destinations/${id}`, { config: { bucket: 'b' } }),
    acme.call('PATCH', `/destinations/${id}`, { config: { region: 'r' } }),
    acme.call('PATCH', `/destinations/${id}`, { config: { prefix: 'p' } }),
  ])
  const { json } = await acme.call('GET', `/destinations/${id}`)
  expect(json.data.attributes.config).toEqual({ bucket: 'b', region: 'r', prefix: 'p' })
})

test('deleting takes the connections that lead there, and cancels what was not delivered', async () => {
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

test('of two simultaneous deletions exactly one wins', async () => {
  const id = await create('A')
  const statuses = await Promise.all([1, 2].map(async () => (await acme.call('DELETE', `/destinations/${id}`)).status))
  expect(statuses.map(String).toSorted()).toEqual(['204', '404'])
})

test('a connection cannot come to lead to a destination that is being deleted', async () => {
  for (let round = 0; round < 5; round += 1) {
    const { repositoryId } = await wire(acme, `R${round}`)
    const destination = await create('Doomed')
    const [made] = await Promise.all([
      acme.call('POST', '/connections', { name: 'A', repository_ids: [repositoryId], destination_ids: [destination] }),
      acme.call('DELETE', `/destinations/${destination}`),
    ])
    // made first, and removed with the destination; or refused
    const left = made.status === 201 ? (await acme.call('GET', `/connections/${made.json.data.id}`)).status : made.status
    expect(left).toBe(made.status === 201 ? 404 : 422)
  }
})

test('a test says what came of it, always with 200, and hides the secrets that a target quotes', async () => {
  const { name: _, ...good } = objstore('')
  const missing = { ...good, config: { ...good.config, bucket: 'missing' } }
  const silent = { ...good, config: { ...good.config, bucket: 'silent' } }
  const run = async (body: unknown, at: Pick<Api, 'call'> = api) =>
    (await at.call('POST', `${acme.path}/destinations/test`, { key: acme.keys.admin, body })).json.data
  expect(await run(good)).toMatchObject({ status: 'success' })
  expect(await run(missing)).toEqual({ status: 'failed', message: 'there is no such bucket (asked with [REDACTED])' })
  const hasty = await startApi(database.db, { variables: { RELAY_PROBE_TIMEOUT_MS: '200' } })
  expect(await run(silent, hasty)).toEqual({ status: 'failed', message: 'the test took longer than 200 ms' })
  await hasty.stop()
  expect((await acme.call('POST', '/destinations/test', { ...good, config: {} })).status).toBe(422)
})

test('a real target is really asked, and what it answers is told', async () => {
  const asked: (string | undefined)[] = []
  const target = createServer((request, response) => {
    asked.push(request.headers.authorization)
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
  expect(refused.json.data).toEqual({ status: 'failed', message: expect.stringContaining('403') })
  expect(refused.text).not.toContain('canary')
  expect(asked).toEqual(['Bearer canary-token', 'Bearer canary-token'])
  target.close()
})

test('testing a failing destination with success makes it connected again', async () => {
  const id = await create('A')
  await database.db('destinations').where({ id }).update({ status: 'failing', last_error: 'access denied' })
  expect((await acme.call('GET', `/destinations/${id}`)).json.data.attributes).toMatchObject({
    status: 'failing',
    last_error: 'access denied',
  })
  expect((await acme.call('POST', `/destinations/${id}/test`)).json.data.status).toBe('success')
  expect((await acme.call('GET', `/destinations/${id}`)).json.data.attributes).toMatchObject({ status: 'connected', last_error: null })

  await acme.call('PATCH', `/destinations/${id}`, { config: { bucket: 'missing' } })
  const failed = await acme.call('POST', `/destinations/${id}/test`)
  expect(failed.json.data.status).toBe('failed')
  expect(failed.text).not.toContain('canary')
})

test('credentials that no configured key opens fail the test with a way out', async () => {
  const id = await create('A')
  await database
    .db('destinations')
    .where({ id })
    .update({ credentials_sealed: Buffer.from('\x01\x05other', 'latin1') })
  const { status, json } = await acme.call('POST', `/destinations/${id}/test`)
  expect({ status, result: json.data.status }).toEqual({ status: 200, result: 'failed' })
  expect(json.data.message).toMatch(/save them again/)
})

test('a destination of another workspace is answered like one that does not exist', async () => {
  const id = await create('A')
  for (const [method, path, body] of [
    ['GET', `/destinations/${id}`],
    ['PATCH', `/destinations/${id}`, { name: 'Mine' }],
    ['DELETE', `/destinations/${id}`],
    ['POST', `/destinations/${id}/test`],
  ] as const) {
    const foreign = await other.call(method, path, body)
    const unknown = await other.call(method, path.replace(id, '01JZZZZZZZZZZZZZZZZZZZZZZZ'), body)
    expect(foreign.status).toBe(404)
    expect({ ...foreign.json.error, request_id: '' }).toEqual({ ...unknown.json.error, request_id: '' })
  }
  expect((await other.call('GET', '/destinations')).json.meta.total).toBe(0)
  expect((await acme.call('GET', `/destinations/${id}`)).json.data.attributes.name).toBe('A')
})
