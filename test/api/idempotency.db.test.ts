import { createIdempotencyKeys } from '../../src/api/idempotency-keys.ts'
import { newId } from '../../src/base/ids.ts'
import type { Replayed } from '../../src/capture/replay.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createRetention } from '../../src/maintenance/retention.ts'
import { createRepositories } from '../../src/routing/repositories.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { startApi } from '../support/api.ts'
import type { WorkspaceClient } from '../support/client.ts'
import { startCommitFaults } from '../support/commit-fault.ts'
import { readOpenApi } from '../support/contract.ts'
import { databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { testConfig } from '../support/factories.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'
import { findWithoutNetwork, objstore } from './objstore.ts'
import { createResources } from './resources.ts'

const replayed = (): Replayed => ({ newRequestId: newId(), statusCode: 201, acknowledged: 0 })
let replay: () => Promise<Replayed> = () => Promise.resolve(replayed())
const { database, api, acme, other } = share(await startScene({ replay: () => replay() }))

const { id: adminKeyId } = await database.db('api_keys').where({ workspace_id: acme.id, level: 'admin' }).first('id')

/** An API that reaches PostgreSQL through a proxy. */
const startCut = async () => {
  const url = new URL(database.url)
  const faults = share(await startCommitFaults(Number(url.port)))
  url.port = String(faults.port)
  const db = share(disposable(openDatabase(databaseConfig(url.href), 'test'), (opened) => opened.destroy()))
  return { faults, api: share(await startApi(db, { findConnector: findWithoutNetwork })) }
}
const cut = await startCut()

const post = async (path: string, body: unknown, key: string, { tenant = acme, apiKey = acme.keys.admin, at = api } = {}) => {
  const answer = await at.call('POST', tenant.path + path, { key: apiKey, body, headers: { 'idempotency-key': key } })
  return { ...answer, isReplayed: answer.headers.get('idempotent-replayed') === 'true', id: answer.json.data?.id as string | undefined }
}
const destinationsNamed = async (name: string) =>
  Number((await database.db('destinations').where({ name }).count({ total: '*' }).first())?.total)
const keyRow = (key: string) => database.db('idempotency_keys').where({ key })

test('every POST accepts an Idempotency-Key', async () => {
  const { paths } = await readOpenApi()
  const posts = Object.values(paths).flatMap((methods) => (methods['post'] ? [methods['post']] : []))
  expect(posts.length).toBeGreaterThan(10)
  for (const { operationId, parameters } of posts) {
    expect({ operationId, names: parameters.map(({ name }) => name) }).toMatchObject({ names: expect.arrayContaining(['Idempotency-Key']) })
  }
})

test('a repetition gets the first answer and creates nothing', async () => {
  const first = await post('/destinations', objstore('Once'), 'once')
  const second = await post('/destinations', objstore('Once'), 'once')
  expect({ status: first.status, isReplayed: first.isReplayed }).toEqual({ status: 201, isReplayed: false })
  expect({ status: second.status, isReplayed: second.isReplayed, json: second.json }).toEqual({
    status: 201,
    isReplayed: true,
    json: first.json,
  })
  expect(second.headers.get('etag')).toBe(first.headers.get('etag'))
  expect(await destinationsNamed('Once')).toBe(1)
  await post('/destinations', objstore('Once'), 'once more')
  expect(await destinationsNamed('Once')).toBe(2)
})

test('the first answer keeps its status, whatever has happened since', async () => {
  const started = await post('/documents/retry', {}, 'bulk')
  await acme.call('POST', `/bulk-retries/${started.id}/cancel`)
  const repeated = await post('/documents/retry', {}, 'bulk')
  expect({ status: repeated.status, isReplayed: repeated.isReplayed, json: repeated.json }).toEqual({
    status: 202,
    isReplayed: true,
    json: started.json,
  })
})

test('a new API key is returned again, and is not stored in clear', async () => {
  const [first, second] = [
    await post('/api-keys', { name: 'CI', level: 'viewer' }, 'ci'),
    await post('/api-keys', { name: 'CI', level: 'viewer' }, 'ci'),
  ]
  const { key } = first.json.data.attributes
  expect(second.json.data.attributes.key).toBe(key)
  const [row] = await keyRow('ci')
  for (const sealed of [row.answer_sealed, row.request_sealed]) {
    expect(sealed.length).toBeGreaterThan(40)
    expect(sealed.toString('latin1')).not.toContain(key.slice(-43))
    expect(sealed.toString('latin1')).not.toContain('viewer')
  }
})

test.each([
  ['another body', '/destinations', objstore('B')],
  ['another path', '/documents/retry', {}],
])('a key that was used for %s is 422', async (_, path, body) => {
  const key = newId()
  await post('/destinations', objstore('A'), key)
  const { status, json } = await post(path, body, key)
  expect({ status, error: json.error }).toMatchObject({
    status: 422,
    error: { code: 'validation_failed', details: [{ path: 'idempotency-key', message: 'was used for a different request' }] },
  })
})

test('the layout of the JSON does not make it another body', async () => {
  const first = await post('/destinations', JSON.stringify(objstore('Layout')), 'layout')
  const second = await post('/destinations', JSON.stringify(objstore('Layout'), undefined, 2), 'layout')
  expect({ isReplayed: second.isReplayed, id: second.id }).toEqual({ isReplayed: true, id: first.id })
})

test('a request that changes nothing is executed again, and nothing is stored for its key', async () => {
  const { name: _name, ...target } = objstore('A')
  const first = await post('/destinations/test', target, 'test')
  const second = await post('/destinations/test', target, 'test')
  expect([first.status, second.status, second.isReplayed]).toEqual([200, 200, false])
  expect(await keyRow('test')).toEqual([])
  expect(await post('/destinations/test', target, 'x'.repeat(256))).toMatchObject({ status: 400 })
})

test('an API key that has used too many is refused with Retry-After, repetitions and other API keys are not', async () => {
  const few = share(await startApi(database.db, { maxIdempotencyKeys: 2, findConnector: findWithoutNetwork }))
  const tenant = await few.tenant('few/prod')
  const send = (key: string, apiKey = tenant.keys.admin) => post('/destinations', objstore('Few'), key, { tenant, apiKey, at: few })
  expect([(await send('1')).status, (await send('2')).status]).toEqual([201, 201])
  const refused = await send('3')
  expect(refused).toMatchObject({ status: 429, json: { error: { code: 'rate_limited' } } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(80_000)
  expect(await send('1')).toMatchObject({ status: 201, isReplayed: true })
  expect((await send('3', tenant.keys.member)).status).toBe(201)
  // Another process counts what is stored.
  const next = share(await startApi(database.db, { maxIdempotencyKeys: 2, findConnector: findWithoutNetwork, keyRing: few.keyRing }))
  expect((await post('/destinations', objstore('Few'), '4', { tenant, apiKey: tenant.keys.admin, at: next })).status).toBe(429)
})

test('keys of different API keys and workspaces are independent', async () => {
  const ids = [
    (await post('/destinations', objstore('Shared'), 'shared')).id,
    (await post('/destinations', objstore('Shared'), 'shared', { apiKey: acme.keys.member })).id,
    (await post('/destinations', objstore('Shared'), 'shared', { tenant: other, apiKey: other.keys.admin })).id,
  ]
  expect(new Set(ids).size).toBe(3)
})

test('of concurrent duplicates one is executed', async () => {
  const answers = await Promise.all(Array.from({ length: 10 }, () => post('/destinations', objstore('Race'), 'race')))
  expect(await destinationsNamed('Race')).toBe(1)
  const succeeded = answers.filter(({ status }) => status === 201)
  expect(new Set(succeeded.map(({ id }) => id)).size).toBe(1)
  expect(succeeded.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1)
  expect(answers.filter(({ status }) => status !== 201 && status !== 409)).toEqual([])
})

describe('while a request is being executed', () => {
  const { byPath } = createResources({ db: database.db, store: undefined as never, certificate: '' })
  const replayPath = async (tenant: WorkspaceClient) => `/requests/${(await byPath['/requests/{id}']!(tenant))['id']}/replay`

  test('its repetition is 409 with Retry-After, and gets the answer afterwards', async () => {
    const path = await replayPath(acme)
    const { promise, resolve } = Promise.withResolvers<Replayed>()
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    replay = () => {
      begin()
      return promise
    }
    const running = post(path, undefined, 'running')
    await begun
    const { status, json, headers } = await post(path, undefined, 'running')
    expect({ status, code: json.error.code, retryAfter: headers.get('retry-after') }).toEqual({
      status: 409,
      code: 'conflict',
      retryAfter: '1',
    })
    resolve(replayed())
    const first = await running
    replay = () => Promise.reject(new Error('must not be executed again'))
    const repeated = await post(path, undefined, 'running')
    expect({ status: repeated.status, json: repeated.json }).toEqual({ status: 202, json: first.json })
  })

  test('a failure frees its key', async () => {
    const path = await replayPath(acme)
    replay = () => Promise.reject(new Error('the process is out of luck'))
    expect((await post(path, undefined, 'unlucky')).status).toBe(500)
    replay = () => Promise.resolve(replayed())
    expect(await post(path, undefined, 'unlucky')).toMatchObject({ status: 202, isReplayed: false })
  })
})

test('a refused request is not stored: its key can be used again, with a corrected body', async () => {
  const name = 'A'
  await acme.call('POST', '/repositories', { repo_id: 'TAKEN', name })
  expect((await post('/repositories', { repo_id: 'TAKEN', name }, 'refused')).status).toBe(409)
  expect((await post('/repositories', { repo_id: '', name }, 'refused')).status).toBe(422)
  expect(await keyRow('refused')).toEqual([])
  expect(await post('/repositories', { repo_id: 'FREE', name }, 'refused')).toMatchObject({ status: 201, isReplayed: false })
})

test('a request whose process was lost is executed again after its lock, but not with another body', async () => {
  await post('/destinations', objstore('Lost'), 'lost')
  await keyRow('lost').update({ answer_sealed: null, changed_id: null })
  expect((await post('/destinations', objstore('Lost'), 'lost')).status).toBe(409)
  await keyRow('lost').update({ locked_until: new Date(Date.now() - 1_000) })
  expect((await post('/destinations', objstore('Other'), 'lost')).status).toBe(422)
  const answers = await Promise.all(Array.from({ length: 5 }, () => post('/destinations', objstore('Lost'), 'lost')))
  expect(answers.filter(({ status, isReplayed }) => status === 201 && !isReplayed)).toHaveLength(1)
  expect(await destinationsNamed('Lost')).toBe(2)
})

test('a request whose process was lost after its change is not executed again, and the answer names what it has created', async () => {
  const { id } = await post('/destinations', objstore('Committed'), 'committed')
  await keyRow('committed').update({ answer_sealed: null })
  expect((await post('/destinations', objstore('Committed'), 'committed')).status).toBe(409)
  await keyRow('committed').update({ locked_until: new Date(Date.now() - 1_000) })
  const { status, json } = await post('/destinations', objstore('Committed'), 'committed')
  expect({ status, error: json.error }).toMatchObject({
    status: 409,
    error: { code: 'conflict', message: expect.stringContaining(id!) as string },
  })
  expect(await destinationsNamed('Committed')).toBe(1)
})

test('an execution whose key was taken over changes nothing any more', async () => {
  const owner = `api_key ${adminKeyId}`
  const execution = { id: newId(), workspaceId: acme.id, owner, key: 'slow' }
  const named = { workspace_id: acme.id, owner, key: 'slow' }
  const row = { ...named, request_sealed: Buffer.from(''), expires_at: new Date(Date.now() + 86_400_000) }
  await database.db('idempotency_keys').insert({ ...row, execution_id: newId(), locked_until: new Date() })
  const actor = { type: 'api_key', id: adminKeyId, name: 'Night batch', userId: null, execution } as const
  const repository = {
    repoId: 'SLOW',
    name: 'Slow',
    signatureVerification: false,
    signedParameterOrder: 'fixed',
    acceptsMcreate: true,
    codePage: 'windows-1252',
    homeDestinationId: null,
    homeAfterDays: 30,
    upstream: null,
  } as const
  const keyRing = createKeyRing([`test:${Buffer.alloc(32).toString('base64')}`])
  const outbound = { refusalOfProxy: async () => undefined }
  await expect(createRepositories(database.db).insert(acme.id, repository, actor, { keyRing, outbound })).rejects.toMatchObject({
    code: 'conflict',
  })
  expect(await database.db('repositories').where({ repo_id: 'SLOW' })).toEqual([])
})

describe('if the connection to PostgreSQL is cut during COMMIT', () => {
  const repeat = (name: string) => post('/destinations', objstore(name), name, { at: cut.api })
  const settled = (name: string) =>
    until(
      `the outcome of ${name} is known`,
      () => repeat(name),
      ({ status, json }) => status !== 409 || !json.error.message.includes('not known yet'),
    )
  /** Sends a request whose COMMIT is cut. */
  const cutDuring = async (name: string, fault: 'answer lost' | 'never sent' | 'delayed') => {
    cut.faults.cutNext(fault)
    const { status, json } = await repeat(name)
    expect({ status, error: json.error }).toMatchObject({ status: 503, error: { code: 'unavailable', nothing_changed: false } })
  }

  test('and the change was committed, it is not made again', async () => {
    await cutDuring('Answer lost', 'answer lost')
    const { status, json } = await settled('Answer lost')
    const { id } = await database.db('destinations').where({ name: 'Answer lost' }).first()
    expect({ status, message: json.error.message }).toEqual({ status: 409, message: expect.stringContaining(id) as string })
    expect(await destinationsNamed('Answer lost')).toBe(1)
  })

  test('and the change was rolled back, a repetition makes it', async () => {
    await cutDuring('Never sent', 'never sent')
    expect(await settled('Never sent')).toMatchObject({ status: 201, isReplayed: false })
    expect(await repeat('Never sent')).toMatchObject({ status: 201, isReplayed: true })
    expect(await destinationsNamed('Never sent')).toBe(1)
  })

  test('and PostgreSQL has not ended the transaction, the outcome is unknown until it has', async () => {
    await cutDuring('Delayed', 'delayed')
    for (let round = 0; round < 3; round += 1) {
      const { status, json, headers } = await repeat('Delayed')
      expect({ status, message: json.error.message, retryAfter: headers.get('retry-after') }).toEqual({
        status: 409,
        message: expect.stringContaining('not known yet') as string,
        retryAfter: '1',
      })
    }
    const { execution_id: executionId } = await keyRow('Delayed').first()
    const key = { workspaceId: acme.id, owner: `api_key ${adminKeyId}`, key: 'Delayed' }
    expect(await createIdempotencyKeys(database.db).takeOver(key, executionId, { id: newId(), lockMs: 1 })).toBe(false)
    expect(await destinationsNamed('Delayed')).toBe(0)
    cut.faults.deliver()
    expect((await settled('Delayed')).status).toBe(409)
    expect(await destinationsNamed('Delayed')).toBe(1)
  })
})

test('a key can be used again after it has expired, and retention removes it', async () => {
  const first = await post('/destinations', objstore('Brief'), 'brief')
  await keyRow('brief').update({ expires_at: new Date(Date.now() - 1_000) })
  const second = await post('/destinations', objstore('Other'), 'brief')
  expect({ status: second.status, isReplayed: second.isReplayed }).toEqual({ status: 201, isReplayed: false })
  expect(second.id).not.toBe(first.id)

  await post('/destinations', objstore('Kept'), 'kept')
  await keyRow('brief').update({ expires_at: new Date(Date.now() - 1_000) })
  const retention = createRetention(database.db, testConfig())
  expect((await retention.removeExpired(new Date(), new AbortController().signal)).idempotencyKeys).toBe(1)
  expect(await keyRow('brief')).toEqual([])
  expect(await keyRow('kept')).toHaveLength(1)
})

test('an answer that no configured key opens is 409', async () => {
  await post('/destinations', objstore('Sealed'), 'sealed')
  // Each API of this test has sealing keys of its own.
  const rotated = await startApi(database.db)
  try {
    const { status, json } = await post('/destinations', objstore('Sealed'), 'sealed', { at: rotated })
    expect({ status, code: json.error.code }).toEqual({ status: 409, code: 'conflict' })
    expect(await destinationsNamed('Sealed')).toBe(1)
  } finally {
    await rotated.stop()
  }
})

test.each([[''], ['x'.repeat(256)], ['caf\u00e9']])('the key %p is 400', async (key) => {
  const { status, json } = await post('/destinations', objstore('Malformed'), key)
  expect({ status, code: json.error.code }).toEqual({ status: 400, code: 'invalid_request' })
  expect(await destinationsNamed('Malformed')).toBe(0)
})
