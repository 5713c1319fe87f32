import { createMembers } from '../../src/access/members.ts'
import { systemActor } from '../../src/db/audit.ts'
import { waitsForLock } from '../support/locks.ts'
import { startScene } from '../support/scene.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const { database, acme, other } = share(await startScene())

describe('API keys', () => {
  test('a member who is deleted while the key is created is 422', async () => {
    const userId = await createMembers(database.db).ensure(acme.id, 'grace@example.org', systemActor)
    const deletion = await database.db.transaction()
    await createMembers(deletion).delete(acme.id, userId, systemActor)
    const created = acme.call('POST', '/api-keys', { name: 'A', level: 'viewer', user_id: userId })
    await until('the new key waits for the deletion', () => waitsForLock(database.db))
    await deletion.commit()
    const { status, json } = await created
    expect({ status, path: json.error.details[0].path }).toEqual({ status: 422, path: 'user_id' })
  })
})

test.each([
  ['9999-12-31T23:59:59-05:00', '9999-12-31T23:59:59.999Z'],
  ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
])('a time that is as far as %s is answered with four digits of a year, in bodies as in filters', async (far, answered) => {
  const created = await acme.call('POST', '/api-keys', { name: 'Far', level: 'viewer', expires_at: far })
  expect({ status: created.status, expires: created.json.data?.attributes.expires_at }).toEqual({ status: 201, expires: answered })
  const { json } = await acme.call('GET', '/api-keys')
  expect(json.data.map(({ attributes }: { attributes: { expires_at: string | null } }) => attributes.expires_at)).toContain(answered)
  const retried = await acme.call('POST', '/documents/retry', { repo_id: 'FAR', date_from: '0000-01-01T00:00:00+05:00', date_to: far })
  expect({ status: retried.status, filter: retried.json.data?.attributes.filter }).toMatchObject({
    status: 202,
    filter: { date_from: '0001-01-01T00:00:00.000Z', date_to: answered },
  })
})

describe('settings', () => {
  test('concurrent changes of different settings do not overwrite each other', async () => {
    await Promise.all([
      other.call('PATCH', '/settings', { captured_bodies_days: 1 }),
      other.call('PATCH', '/settings', { captured_requests_days: 2 }),
      other.call('PATCH', '/settings', { retry_ttl_seconds: 30 }),
    ])
    expect((await other.call('GET', '/settings')).json.data.attributes).toMatchObject({
      captured_bodies_days: 1,
      captured_requests_days: 2,
      retry_ttl_seconds: 30,
    })
  })

  test.each([
    [{ url: 'https://erp/path', client: '100' }, 'rfc.url'],
    [{ url: 'https://user:secret@erp', client: '100' }, 'rfc.url'],
    [{ url: 'file:///etc/passwd', client: '100' }, 'rfc.url'],
    [{ url: 'https://erp', client: '1' }, 'rfc.client'],
    [{ url: 'https://erp' }, 'rfc.client'],
    [{ url: 'https://erp', client: '100', allowed_functions: ['rfc_ping'] }, 'rfc.allowed_functions.0'],
    [{ url: 'http://8.8.8.8', client: '100', credentials: { user: 'RELAY', password: 'canary' } }, 'rfc.url'],
    [{ url: 'http://[2606:4700::1]', client: '100', credentials: { user: 'RELAY', password: 'canary' } }, 'rfc.url'],
    [{ url: 'http://10.0.0.1', client: '100', credentials: { user: 'RELAY', password: 'canary' } }, 'rfc.url'],
  ])('the rfc setting %p is invalid', async (rfc, path) => {
    const { status, json } = await acme.call('PATCH', '/settings', { rfc })
    expect({ status, path: json.error.details[0].path }).toEqual({ status: 422, path })
  })
})
