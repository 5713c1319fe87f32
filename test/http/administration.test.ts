import { createWorkspaces } from '../../src/db/workspaces.ts'
import { startScene } from './api.ts'

const { database, api, acme, other, stop } = await startScene()
afterAll(stop)

describe('api keys', () => {
  test('a new key is shown once and works at once', async () => {
    const userId = await createWorkspaces(database.db).ensureMember(acme.id, 'ada@example.org')
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
    const secret = key.split('_').slice(2).join('_')
    const listed = await acme.call('GET', '/api-keys')
    expect(listed.json.data[0]).toMatchObject({ id: json.data.id, attributes: { name: 'CI', last_used_at: expect.any(String) } })
    expect(listed.text).not.toContain(secret)
    expect(JSON.stringify(await database.db('api_keys'))).not.toContain(secret)
  })

  test('a revoked key is out of the list and of use', async () => {
    const { json } = await acme.call('POST', '/api-keys', { name: 'Short', level: 'viewer' })
    expect((await other.call('DELETE', `/api-keys/${json.data.id}`)).status).toBe(404)
    expect((await acme.call('DELETE', `/api-keys/${json.data.id}`)).status).toBe(204)
    expect((await acme.call('DELETE', `/api-keys/${json.data.id}`)).status).toBe(404)
    expect((await api.call('GET', `${acme.path}/settings`, { key: json.data.attributes.key })).status).toBe(401)
    expect((await acme.call('GET', '/api-keys')).text).not.toContain(json.data.id)
  })

  test('an unknown level, a past expiry and a member of another workspace are 422', async () => {
    const stranger = await createWorkspaces(database.db).ensureMember(other.id, 'eve@example.org')
    for (const wrong of [{ level: 'owner' }, { expires_at: '2020-01-01T00:00:00Z' }, { user_id: stranger }, { expires_at: 'soon' }]) {
      const { status, json } = await acme.call('POST', '/api-keys', { name: 'A', level: 'viewer', ...wrong })
      expect({ status, path: json.error.details[0].path }).toEqual({ status: 422, path: Object.keys(wrong)[0] })
    }
    expect((await acme.call('POST', '/api-keys', { name: 'A' })).status).toBe(400)
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
    rfc: null,
  }

  test('show the defaults, take changes one by one, and store only differences', async () => {
    const { json } = await acme.call('GET', '/settings')
    expect(json.data).toEqual({ id: acme.id, type: 'settings', attributes: defaults })
    await acme.call('PATCH', '/settings', { max_retries: 0, content_days: 30 })
    const changed = await acme.call('PATCH', '/settings', { receiver_allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'], content_days: null })
    expect(changed.json.data.attributes).toEqual({ ...defaults, max_retries: 0, receiver_allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'] })
    const row = await database.db('workspaces').where({ id: acme.id }).first()
    expect(row.settings).toEqual({ max_retries: 0, receiver_allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'] })
    expect((await other.call('GET', '/settings')).json.data.attributes).toEqual(defaults)
  })

  test('simultaneous changes of different settings all stay', async () => {
    await Promise.all([
      other.call('PATCH', '/settings', { captured_bodies_days: 1 }),
      other.call('PATCH', '/settings', { captured_requests_days: 2 }),
      other.call('PATCH', '/settings', { retry_ttl_seconds: 3 }),
    ])
    expect((await other.call('GET', '/settings')).json.data.attributes).toMatchObject({
      captured_bodies_days: 1,
      captured_requests_days: 2,
      retry_ttl_seconds: 3,
    })
  })

  test.each([
    [{ max_retries: 101 }, 422],
    [{ max_retries: -1 }, 422],
    [{ captured_requests_days: 91 }, 422],
    [{ captured_bodies_days: 31 }, 422],
    [{ receiver_allowed_cidrs: ['10.0.0.0'] }, 422],
    [{ retry_initial_interval_seconds: 100, retry_max_interval_seconds: 10 }, 422],
    [{ audit_days: null }, 422],
    [{ max_retries: '5' }, 400],
    [{ max_retries: 1.5 }, 400],
    [{ receiver_allowed_cidrs: [5] }, 400],
    [{ colour: 'red' }, 400],
  ])('%p is %d', async (body, status) => {
    const before = (await acme.call('GET', '/settings')).json
    expect((await acme.call('PATCH', '/settings', body)).status).toBe(status)
    expect((await acme.call('GET', '/settings')).json).toEqual(before)
  })

  test('the system of the bridge takes credentials and never shows them', async () => {
    const credentials = { user: 'RELAY', password: 'canary-rfc' }
    const rfc = { url: 'https://erp.example:44300', client: '100' }
    const made = await acme.call('PATCH', '/settings', { rfc: { ...rfc, credentials } })
    expect(made.json.data.attributes.rfc).toEqual({ ...rfc, allowed_functions: [] })
    const row = await database.db('workspaces').where({ id: acme.id }).first()
    expect(JSON.stringify(row.settings)).not.toContain('canary')
    expect(row.rfc_credentials_sealed.toString('latin1')).not.toContain('canary')

    const changed = await acme.call('PATCH', '/settings', { rfc: { allowed_functions: ['RFC_PING', '/ACME/PING'] } })
    expect(changed.json.data.attributes.rfc).toEqual({ ...rfc, allowed_functions: ['RFC_PING', '/ACME/PING'] })
    const moved = await acme.call('PATCH', '/settings', { rfc: { url: 'https://elsewhere.example' } })
    expect({ status: moved.status, path: moved.json.error.details[0].path }).toEqual({ status: 422, path: 'rfc.credentials' })

    const ended = await acme.call('PATCH', '/settings', { rfc: null })
    expect(ended.json.data.attributes.rfc).toBeNull()
    expect((await database.db('workspaces').where({ id: acme.id }).first()).rfc_credentials_sealed).toBeNull()
    for (const { text } of [made, changed, moved, ended]) expect(text).not.toContain('canary')
  })

  test.each([
    [{ url: 'https://erp/path', client: '100' }, 'rfc.url'],
    [{ url: 'https://user:secret@erp', client: '100' }, 'rfc.url'],
    [{ url: 'file:///etc/passwd', client: '100' }, 'rfc.url'],
    [{ url: 'https://erp', client: '1' }, 'rfc.client'],
    [{ url: 'https://erp' }, 'rfc.client'],
    [{ url: 'https://erp', client: '100', allowed_functions: ['rfc_ping'] }, 'rfc.allowed_functions.0'],
  ])('the system %p does not fit', async (rfc, path) => {
    const { status, json } = await acme.call('PATCH', '/settings', { rfc })
    expect({ status, path: json.error.details[0].path }).toEqual({ status: 422, path })
  })

  test('a compliance-tier workspace may keep its audit log indefinitely', async () => {
    await database.db('workspaces').where({ id: other.id }).update({ compliance_tier: true })
    expect((await other.call('PATCH', '/settings', { audit_days: null })).json.data.attributes.audit_days).toBeNull()
  })
})
