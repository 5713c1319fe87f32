import { systemActor } from '../../src/db/audit.ts'
import { createMembers } from '../../src/workspace/members.ts'
import { apiKeyParts } from '../support/api-key.ts'
import { waitsForLock } from '../support/locks.ts'
import { startScene } from '../support/scene.ts'
import { until } from '../support/until.ts'

const { database, api, acme, other, stop } = await startScene()
afterAll(stop)

describe('API keys', () => {
  test('a new key is returned once and can be used immediately', async () => {
    const userId = await createMembers(database.db).ensure(acme.id, 'ada@example.org', systemActor)
    const expiresAt = '2099-01-01T00:00:00.000Z'
    const { status, json } = await acme.call('POST', '/api-keys', { name: 'CI', level: 'member', expires_at: expiresAt, user_id: userId })
    expect({ status, data: json.data }).toEqual({
      status: 201,
      data: {
        id: expect.any(String),
        type: 'api_key',
        attributes: {
          name: 'CI',
          level: 'member',
          user_id: userId,
          expires_at: expiresAt,
          last_used_at: null,
          created_at: expect.any(String),
          key: expect.stringMatching(new RegExp(`^relay_${json.data.id}_[\\w-]{43}$`)),
        },
      },
    })
    const { key } = json.data.attributes
    expect((await api.call('GET', `${acme.path}/settings`, { key })).status).toBe(200)
    const { secret } = apiKeyParts(key)
    const listed = await acme.call('GET', '/api-keys')
    expect(listed.json.data[0]).toMatchObject({ id: json.data.id, attributes: { name: 'CI', last_used_at: expect.any(String) } })
    expect(listed.text).not.toContain(secret)
    expect(JSON.stringify(await database.db('api_keys'))).not.toContain(secret)
  })

  test('an unknown level, a past expiry and a member of another workspace are 422', async () => {
    const foreignMember = await createMembers(database.db).ensure(other.id, 'eve@example.org', systemActor)
    for (const wrong of [{ level: 'owner' }, { expires_at: '2020-01-01T00:00:00Z' }, { user_id: foreignMember }, { expires_at: 'soon' }]) {
      const { status, json } = await acme.call('POST', '/api-keys', { name: 'A', level: 'viewer', ...wrong })
      expect({ status, path: json.error.details[0].path }).toEqual({ status: 422, path: Object.keys(wrong)[0] })
    }
    expect((await acme.call('POST', '/api-keys', { name: 'A' })).status).toBe(400)
  })

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

describe('settings', () => {
  const defaults = {
    max_retries: 10,
    retry_ttl_seconds: 86_400,
    retry_initial_interval_seconds: 10,
    retry_max_interval_seconds: 3_600,
    captured_requests_days: 30,
    captured_bodies_days: 7,
    audit_days: 365,
    content_days: null,
    receiver_allowed_cidrs: [],
    receiver_max_bytes: null,
    receiver_max_requests_per_minute: null,
    rfc: null,
    tier: 'standard',
  }

  test('GET returns the defaults, PATCH changes single settings, and only differences are stored', async () => {
    const [fresh, untouched] = [await api.tenant('acme/fresh'), await api.tenant('acme/untouched')]
    const { json } = await fresh.call('GET', '/settings')
    expect(json.data).toEqual({ id: fresh.id, type: 'settings', attributes: defaults })
    await fresh.call('PATCH', '/settings', { max_retries: 0, content_days: 30 })
    const changed = await fresh.call('PATCH', '/settings', { receiver_allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'], content_days: null })
    expect(changed.json.data.attributes).toEqual({ ...defaults, max_retries: 0, receiver_allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'] })
    const row = await database.db('workspaces').where({ id: fresh.id }).first()
    expect(row.settings).toEqual({ max_retries: 0, receiver_allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'] })
    expect((await untouched.call('GET', '/settings')).json.data.attributes).toEqual(defaults)
  })

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
    [{ max_retries: 101 }, 422],
    [{ max_retries: -1 }, 422],
    [{ captured_requests_days: 91 }, 422],
    [{ captured_bodies_days: 31 }, 422],
    [{ receiver_allowed_cidrs: ['10.0.0.0'] }, 422],
    [{ retry_initial_interval_seconds: 100, retry_max_interval_seconds: 10 }, 422],
    [{ max_retries: 1, retry_initial_interval_seconds: 10, retry_ttl_seconds: 9 }, 422],
    [{ audit_days: null }, 422],
    [{ audit_days: 364 }, 422],
    [{ audit_days: 3_651 }, 422],
    [{ tier: 'compliance' }, 400],
    [{ max_retries: '5' }, 400],
    [{ max_retries: 1.5 }, 400],
    [{ receiver_allowed_cidrs: [5] }, 400],
    [{ colour: 'red' }, 400],
  ])('PATCH %p is answered with %d', async (body, status) => {
    const before = (await acme.call('GET', '/settings')).json
    expect((await acme.call('PATCH', '/settings', body)).status).toBe(status)
    expect((await acme.call('GET', '/settings')).json).toEqual(before)
  })

  test('the credentials of the bridge are accepted and never returned', async () => {
    const credentials = { user: 'RELAY', password: 'canary-rfc' }
    const rfc = { url: 'https://erp.example:44300', client: '100' }
    const created = await acme.call('PATCH', '/settings', { rfc: { ...rfc, credentials } })
    expect(created.json.data.attributes.rfc).toEqual({ ...rfc, allowed_functions: [] })
    const row = await database.db('workspaces').where({ id: acme.id }).first()
    expect(JSON.stringify(row.settings)).not.toContain('canary')
    expect(row.rfc_credentials_sealed.toString('latin1')).not.toContain('canary')

    const changed = await acme.call('PATCH', '/settings', { rfc: { allowed_functions: ['RFC_PING', '/ACME/PING'] } })
    expect(changed.json.data.attributes.rfc).toEqual({ ...rfc, allowed_functions: ['RFC_PING', '/ACME/PING'] })
    const moved = await acme.call('PATCH', '/settings', { rfc: { url: 'https://elsewhere.example' } })
    expect({ status: moved.status, path: moved.json.error.details[0].path }).toEqual({ status: 422, path: 'rfc.credentials' })

    const removed = await acme.call('PATCH', '/settings', { rfc: null })
    expect(removed.json.data.attributes.rfc).toBeNull()
    expect((await database.db('workspaces').where({ id: acme.id }).first()).rfc_credentials_sealed).toBeNull()
    for (const { text } of [created, changed, moved, removed]) expect(text).not.toContain('canary')
  })

  test.each([
    [{ url: 'https://erp/path', client: '100' }, 'rfc.url'],
    [{ url: 'https://user:secret@erp', client: '100' }, 'rfc.url'],
    [{ url: 'file:///etc/passwd', client: '100' }, 'rfc.url'],
    [{ url: 'https://erp', client: '1' }, 'rfc.client'],
    [{ url: 'https://erp' }, 'rfc.client'],
    [{ url: 'https://erp', client: '100', allowed_functions: ['rfc_ping'] }, 'rfc.allowed_functions.0'],
  ])('the rfc setting %p is invalid', async (rfc, path) => {
    const { status, json } = await acme.call('PATCH', '/settings', { rfc })
    expect({ status, path: json.error.details[0].path }).toEqual({ status: 422, path })
  })

  test('a compliance-tier workspace keeps its audit log indefinitely, and cannot set audit_days', async () => {
    await other.call('PATCH', '/settings', { audit_days: 400 })
    await database.db('workspaces').where({ id: other.id }).update({ compliance_tier: true })
    const { json } = await other.call('GET', '/settings')
    expect(json.data.attributes).toMatchObject({ tier: 'compliance', audit_days: null })
    for (const audit_days of [null, 365]) {
      const refused = await other.call('PATCH', '/settings', { audit_days })
      expect({ status: refused.status, path: refused.json.error.details[0].path }).toEqual({ status: 422, path: 'audit_days' })
    }
    expect((await other.call('PATCH', '/settings', { max_retries: 5 })).json.data.attributes).toMatchObject({
      max_retries: 5,
      audit_days: null,
    })
  })
})
