import { apiEndpoints } from '../../src/api/app.ts'
import { newId } from '../../src/base/ids.ts'
import { newApiKey } from '../../src/security/api-keys.ts'
import { allows, keyLevels } from '../../src/security/levels.ts'
import { createKey } from '../../src/workspace/administration.ts'
import { startApi } from '../support/api.ts'
import type { Answer } from '../support/client.ts'
import { startScene } from '../support/scene.ts'

const { database, api, acme, other, stop } = await startScene({ variables: { RELAY_WRONG_KEYS_PER_MINUTE: '1000' } })
afterAll(stop)

const withoutRequestId = ({ status, headers, json }: Answer) => {
  const { request_id, ...error } = json.error
  expect(request_id).toBe(headers.get('x-relay-request-id'))
  return { status, error, challenge: headers.get('www-authenticate') }
}

test('a missing, unknown, malformed, expired, revoked or foreign key gets the same response', async () => {
  const expired = await createKey(database.db, { workspace: 'acme/prod', level: 'admin' })
  await database
    .db('api_keys')
    .where({ id: expired.id })
    .update({ expires_at: new Date(Date.now() - 1) })
  const revoked = await createKey(database.db, { workspace: 'acme/prod', level: 'admin' })
  expect((await acme.call('DELETE', `/api-keys/${revoked.id}`)).status).toBe(204)
  const rightIdWrongSecret = acme.keys.admin.slice(0, -2) + 'zz'

  const answers = [
    await api.call('GET', `${acme.path}/settings`),
    ...(await Promise.all(
      [newApiKey().key, 'nonsense', expired.key, revoked.key, rightIdWrongSecret, other.keys.admin].map((key) =>
        api.call('GET', `${acme.path}/settings`, { key }),
      ),
    )),
    await api.call('GET', '/api/no/body/settings', { key: acme.keys.admin }),
  ]
  const [first] = answers.map(withoutRequestId)
  expect(first).toMatchObject({ status: 401, error: { code: 'unauthorized' }, challenge: 'Bearer' })
  for (const answer of answers) expect(withoutRequestId(answer)).toEqual(first)
})

test('every endpoint accepts its own key level and higher ones, and refuses lower ones', async () => {
  const endpoints = apiEndpoints({} as Parameters<typeof apiEndpoints>[0] & object)
  expect(endpoints.length).toBeGreaterThan(20)
  for (const { method, path, level } of endpoints) {
    for (const held of keyLevels) {
      const { status, json } = await acme.call(method, path.replace(':id', newId()), undefined, { key: acme.keys[held] })
      const isRefused = status === 403 && json.error.code === 'forbidden'
      expect({ method, path, held, isRefused }).toEqual({ method, path, held, isRefused: !allows(held, level) })
      expect([200, 400, 403, 404]).toContain(status)
    }
  }
})

test('deleting and API keys require admin, changing requires member', () => {
  const levelOf = Object.fromEntries(
    apiEndpoints({} as Parameters<typeof apiEndpoints>[0] & object).map(({ method, path, level }) => [`${method} ${path}`, level]),
  )
  expect(levelOf).toMatchObject({
    'GET /destinations': 'viewer',
    'POST /destinations': 'member',
    'PATCH /connections/:id': 'member',
    'POST /destinations/:id/test': 'member',
    'DELETE /repositories/:id': 'admin',
    'GET /api-keys': 'admin',
    'GET /settings': 'viewer',
    'PATCH /settings': 'admin',
  })
  const deleting = Object.keys(levelOf).filter((route) => route.startsWith('DELETE'))
  expect(deleting.map((route) => levelOf[route])).toEqual(deleting.map(() => 'admin'))
})

test('too many wrong keys from one address are answered with 429, while a valid key is still accepted', async () => {
  const strict = await startApi(database.db, { variables: { RELAY_WRONG_KEYS_PER_MINUTE: '3' } })
  try {
    const answers: Answer[] = []
    for (let tries = 0; tries < 5; tries += 1) answers.push(await strict.call('GET', `${acme.path}/settings`, { key: newApiKey().key }))
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 429, 429])
    expect(answers[4]!.json.error.code).toBe('rate_limited')
    expect(Number(answers[4]!.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await strict.call('GET', `${acme.path}/settings`, { key: acme.keys.viewer })).status).toBe(200)
  } finally {
    await strict.stop()
  }
})

test('last_used_at is written at most once a minute', async () => {
  const { id, key } = await createKey(database.db, { workspace: 'acme/prod', level: 'viewer' })
  const lastUse = async () => (await database.db('api_keys').where({ id }).first()).last_used_at as Date | null
  expect(await lastUse()).toBeNull()
  await Promise.all([1, 2, 3].map(() => api.call('GET', `${acme.path}/settings`, { key })))
  const first = await lastUse()
  expect(first).toBeInstanceOf(Date)
  await api.call('GET', `${acme.path}/settings`, { key })
  expect(await lastUse()).toEqual(first)

  await database
    .db('api_keys')
    .where({ id })
    .update({ last_used_at: new Date(Date.now() - 61_000) })
  await api.call('GET', `${acme.path}/settings`, { key })
  expect((await lastUse())!.getTime()).toBeGreaterThanOrEqual(first!.getTime())
})
