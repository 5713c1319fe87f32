import { createKey } from '../../src/access/key-administration.ts'
import { apiEndpoints } from '../../src/api/app.ts'
import { newId } from '../../src/base/ids.ts'
import { allows, keyLevels } from '../../src/security/levels.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const { database, api, acme } = share(await startScene())

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

test('every deletion requires admin', () => {
  const levelOf = Object.fromEntries(
    apiEndpoints({} as Parameters<typeof apiEndpoints>[0] & object).map(({ method, path, level }) => [`${method} ${path}`, level]),
  )
  const deleting = Object.keys(levelOf).filter((route) => route.startsWith('DELETE'))
  expect(deleting.length).toBeGreaterThan(5)
  expect(deleting.map((route) => levelOf[route])).toEqual(deleting.map(() => 'admin'))
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
