import { request } from 'node:http'
import { createSignInLinks } from '../../../src/access/sign-in-links.ts'
import { createKeyRing } from '../../../src/security/seal.ts'
import { apiKeyParts } from '../../support/api-key.ts'
import { startApi } from '../../support/api.ts'
import { createTestDatabase } from '../../support/database.ts'
import { disposable } from '../../support/disposable.ts'
import { testConfig } from '../../support/factories.ts'
import { share } from '../../support/share.ts'
import { until } from '../../support/until.ts'

const database = share(await createTestDatabase())
const keyRing = createKeyRing(testConfig().RELAY_SECRET_KEYS)
const api = share(await startApi(database.db, { keyRing }))
const overTls = share(
  await startApi(database.db, { variables: { RELAY_BASE_URL: 'https://relay.example/sap', RELAY_SESSION_TTL_MS: '60000' } }),
)
// Each of the tests that send wrong keys has a process of its own, since a process counts them for a minute.
const startGuarded = () => startApi(database.db, { variables: { RELAY_WRONG_KEYS_PER_MINUTE: '2' } })
const elsewhere = share(await startApi(database.db))
const guarded = share(disposable(await startGuarded(), (each) => each.stop()))
const guardedLinks = share(disposable(await startGuarded(), (each) => each.stop()))
const acme = await api.tenant('acme/prod')
const other = await api.tenant('other/prod')

const fromConsole = { 'sec-fetch-site': 'same-origin' }

interface Sent {
  url?: string
  body?: unknown
  headers?: Record<string, string>
}

/** Sends a request with the headers that a browser would send, of which `fetch` forbids some. */
const send = (method: string, path: string, { url = api.baseUrl, body, headers = {} }: Sent = {}) =>
  new Promise<{ status: number; headers: Headers; json: ReturnType<typeof JSON.parse>; text: string }>((resolve, reject) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const sent = request(url + path, { method, headers: { ...type, ...headers } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const received = new Headers()
        for (const [name, values] of Object.entries(response.headersDistinct)) for (const value of values!) received.append(name, value)
        const isJson = response.headers['content-type']?.includes('json')
        resolve({ status: response.statusCode!, headers: received, json: isJson ? JSON.parse(text) : undefined, text })
      })
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })

const signIn = (key: string, options: Sent = {}) =>
  send('POST', '/console/session', { body: { key }, ...options, headers: { ...fromConsole, ...options.headers } })

/** Signs a key in and returns the cookie as a browser sends it back. */
const cookieOf = async (key: string, options?: Sent) => (await signIn(key, options)).headers.getSetCookie()[0]!.split(';')[0]!

const destinations = `${acme.path}/destinations`

test('a key is signed in: the session says what it may do, and its cookie contains neither the key nor its id', async () => {
  const { status, headers, json } = await signIn(acme.keys.viewer)
  expect(status).toBe(200)
  expect(json.data.attributes).toMatchObject({
    user_slug: 'acme',
    workspace_slug: 'prod',
    level: 'viewer',
    key_id: apiKeyParts(acme.keys.viewer).id,
    temporal_workflows_url: null,
  })
  const remainingMs = Date.parse(json.data.attributes.expires_at) - Date.now()
  expect(remainingMs).toBeGreaterThan(11 * 3_600_000)
  expect(remainingMs).toBeLessThanOrEqual(12 * 3_600_000)
  const [cookie] = headers.getSetCookie()
  expect(cookie).toMatch(/^relay_session=[A-Za-z0-9_-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43\d{3}$/)
  const { id, secret } = apiKeyParts(acme.keys.viewer)
  const sealed = Buffer.from(/=([^;]+)/.exec(cookie!)![1]!, 'base64url').toString('latin1')
  expect(sealed).not.toContain(id)
  expect(sealed + cookie!).not.toContain(secret)
  expect(headers.get('cache-control')).toBe('no-store')
})

test('over TLS, the cookie is secure and bound to the host', async () => {
  const [cookie] = (await signIn(acme.keys.viewer, { url: overTls.baseUrl })).headers.getSetCookie()
  expect(cookie).toMatch(/^__Host-relay_session=\S+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+; Secure$/)
})

test('the console reads with the session and, at the level of the key, changes', async () => {
  const viewer = await cookieOf(acme.keys.viewer)
  const admin = await cookieOf(acme.keys.admin)
  expect((await send('GET', destinations, { headers: { ...fromConsole, cookie: viewer } })).status).toBe(200)
  const body = { repo_id: 'S1', name: 'By session' }
  const refused = await send('POST', `${acme.path}/repositories`, { body, headers: { ...fromConsole, cookie: viewer } })
  expect(refused).toMatchObject({ status: 403, json: { error: { code: 'forbidden' } } })
  const created = await send('POST', `${acme.path}/repositories`, { body, headers: { ...fromConsole, cookie: admin } })
  expect(created.status).toBe(201)
})

test('the session tells the console who is signed in, and sign-out removes the cookie', async () => {
  const cookie = await cookieOf(acme.keys.member)
  const found = await send('GET', '/console/session', { headers: { ...fromConsole, cookie } })
  expect(found.json.data.attributes.level).toBe('member')
  expect((await send('GET', '/console/session', { headers: fromConsole })).json).toEqual({ data: null })
  const ended = await send('DELETE', '/console/session', { headers: { ...fromConsole, cookie } })
  expect(ended.status).toBe(204)
  expect(ended.headers.getSetCookie()).toEqual(['relay_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0'])
})

describe('a request that another page has sent', () => {
  test.each([
    ['from another site', 'GET', { 'sec-fetch-site': 'cross-site' }],
    ['from another origin of the site', 'GET', { 'sec-fetch-site': 'same-site' }],
    ['by a link or an address that was typed', 'GET', { 'sec-fetch-site': 'none' }],
    ['from another site, to change something', 'POST', { 'sec-fetch-site': 'cross-site' }],
    ['by an older browser from another origin', 'POST', { origin: 'http://evil.example' }],
    ['by an older browser from another origin, to read', 'GET', { origin: 'http://evil.example' }],
    ['by an older browser from an origin that it hides', 'POST', { origin: 'null' }],
    ['without any origin, to change something', 'POST', {}],
  ] as const)('%s is refused although it has the cookie (%s)', async (_, method, headers) => {
    const cookie = await cookieOf(acme.keys.admin)
    const body = method === 'POST' ? { repo_id: 'S2', name: 'Forged' } : undefined
    const path = method === 'POST' ? `${acme.path}/repositories` : destinations
    const answer = await send(method, path, { body, headers: { ...headers, cookie } })
    expect(answer).toMatchObject({ status: 401, json: { error: { code: 'unauthorized' } } })
    expect(await database.db('repositories').where({ repo_id: 'S2' })).toEqual([])
  })

  test.each([{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { origin: 'http://evil.example' }, {}])(
    'cannot sign a browser in: %j',
    async (headers) => {
      const answer = await send('POST', '/console/session', { body: { key: acme.keys.admin }, headers: headers as Record<string, string> })
      expect(answer.status).toBe(403)
      expect(answer.headers.getSetCookie()).toEqual([])
    },
  )

  test('an older browser, which sends only the origin, may use the session from the console itself', async () => {
    const cookie = await cookieOf(acme.keys.admin)
    const { host } = new URL(api.baseUrl)
    const body = { repo_id: 'S3', name: 'Older browser' }
    const created = await send('POST', `${acme.path}/repositories`, { body, headers: { origin: `http://${host}`, cookie } })
    expect(created.status).toBe(201)
    const behindProxy = await cookieOf(acme.keys.viewer, { url: overTls.baseUrl, headers: { origin: 'https://relay.example' } })
    expect(behindProxy).toMatch(/^__Host-relay_session=./)
  })
})

describe('a session ends', () => {
  const status = async (cookie: string, url = api.baseUrl) =>
    (await send('GET', destinations, { url, headers: { ...fromConsole, cookie } })).status

  const newKey = async (expiresAt?: string) => {
    const { json } = await acme.call('POST', '/api-keys', {
      name: 'Temporary',
      level: 'viewer',
      ...(expiresAt && { expires_at: expiresAt }),
    })
    return json.data as { id: string; attributes: { key: string } }
  }

  test('at once when its key is revoked', async () => {
    const { id, attributes } = await newKey()
    const cookie = await cookieOf(attributes.key)
    expect(await status(cookie)).toBe(200)
    await acme.call('DELETE', `/api-keys/${id}`)
    expect(await status(cookie)).toBe(401)
    expect((await send('GET', '/console/session', { headers: { ...fromConsole, cookie } })).json).toEqual({ data: null })
    expect((await signIn(attributes.key)).status).toBe(401)
  })

  test('not later than its key', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000)
    const { id, attributes } = await newKey(expiresAt.toISOString())
    const { json, headers } = await signIn(attributes.key)
    expect(json.data.attributes.expires_at).toBe(expiresAt.toISOString())
    const cookie = headers.getSetCookie()[0]!.split(';')[0]!
    expect(await status(cookie)).toBe(200)
    await database
      .db('api_keys')
      .where({ id })
      .update({ expires_at: new Date(Date.now() - 1) })
    expect(await status(cookie)).toBe(401)
  })

  test('after RELAY_SESSION_TTL_MS, even if the browser keeps the cookie', async () => {
    const cookie = await cookieOf(acme.keys.viewer, { url: overTls.baseUrl })
    expect(await status(cookie, overTls.baseUrl)).toBe(200)
    const realNow = Date.now
    Date.now = () => realNow() + 61_000
    try {
      expect(await status(cookie, overTls.baseUrl)).toBe(401)
    } finally {
      Date.now = realNow
    }
  })

  test.each([
    ['of another installation', async () => cookieOf(acme.keys.viewer, { url: elsewhere.baseUrl })],
    ['that was modified', async () => (await cookieOf(acme.keys.viewer)).replace(/.{4}$/, 'AAAA')],
    ['that is no envelope', async () => 'relay_session=hello'],
    ['that is a key', async () => `relay_session=${acme.keys.admin}`],
  ])('a cookie %s opens nothing', async (_, make) => {
    expect(await status(await make())).toBe(401)
  })
})

test('a session gives no access to another workspace', async () => {
  const cookie = await cookieOf(other.keys.admin)
  expect((await send('GET', destinations, { headers: { ...fromConsole, cookie } })).status).toBe(401)
})

test('a key in the Authorization header decides, whatever the cookie says', async () => {
  const cookie = await cookieOf(acme.keys.admin)
  const wrong = await send('GET', destinations, { headers: { ...fromConsole, cookie, authorization: 'Bearer wrong' } })
  expect(wrong.status).toBe(401)
  const foreign = { authorization: `Bearer ${acme.keys.viewer}`, 'sec-fetch-site': 'cross-site', cookie }
  expect((await send('GET', destinations, { headers: foreign })).status).toBe(200)
})

test('wrong keys at the sign-in count with those at the API', async () => {
  const wrong = acme.keys.admin.replace(/.{4}$/, 'AAAA')
  expect((await signIn(wrong, { url: guarded.baseUrl })).json.error.code).toBe('unauthorized')
  await guarded.call('GET', destinations, { key: wrong })
  const refused = await signIn(wrong, { url: guarded.baseUrl })
  expect(refused).toMatchObject({ status: 429, json: { error: { code: 'rate_limited' } } })
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
})

test.each([[{}], [{ key: 1 }], [{ key: 'x', workspace: 'acme/prod' }], [undefined]])('a malformed sign-in %j is refused', async (body) => {
  const headers = { ...fromConsole, 'content-type': 'application/json' }
  expect((await send('POST', '/console/session', { body, headers })).json.error.code).toBe('invalid_request')
})

test('no log line contains the cookie or the key', async () => {
  const cookie = await cookieOf(acme.keys.admin)
  await send('GET', destinations, { headers: { ...fromConsole, cookie } })
  const log = api.log.join('\n')
  expect(log).toContain('/console/session')
  expect(log).not.toContain(cookie.split('=')[1])
  expect(log).not.toContain(apiKeyParts(acme.keys.admin).secret)
})

describe('a link', () => {
  const links = createSignInLinks(keyRing)
  const redeem = (token: string) => send('POST', '/console/session', { body: { token }, headers: fromConsole })

  test('signs in with its key until it expires', async () => {
    const token = links.create(apiKeyParts(acme.keys.member).id, 60_000)
    const { status, json, text, headers } = await redeem(token)
    expect(status).toBe(200)
    expect(json.data.attributes).toMatchObject({ user_slug: 'acme', level: 'member' })
    expect(text).not.toContain(token)
    const cookie = headers.getSetCookie()[0]!.split(';')[0]!
    expect((await send('GET', destinations, { headers: { ...fromConsole, cookie } })).status).toBe(200)
    expect((await redeem(token)).status).toBe(200)
  })

  test('that another installation has sealed, that was changed, or that is a session, does not sign in', async () => {
    const { id } = apiKeyParts(acme.keys.viewer)
    const foreign = createKeyRing([`test:${Buffer.alloc(32, 8).toString('base64')}`])
    const token = links.create(id, 60_000)
    const changed = `${token.slice(0, 40)}${token[40] === 'A' ? 'B' : 'A'}${token.slice(41)}`
    const session = (await cookieOf(acme.keys.viewer)).split('=')[1]!
    for (const wrong of [createSignInLinks(foreign).create(id, 60_000), changed, session, 'x', '']) {
      expect((await redeem(wrong)).status).toBe(401)
    }
  })

  test('that has expired, or whose key was revoked, does not sign in', async () => {
    expect((await redeem(links.create(apiKeyParts(acme.keys.viewer).id, -1))).status).toBe(401)
    const { data } = (await acme.call('POST', '/api-keys', { name: 'short', level: 'viewer' })).json
    const token = links.create(data.id, 60_000)
    await acme.call('DELETE', `/api-keys/${data.id}`)
    expect((await redeem(token)).status).toBe(401)
  })

  test('signs in from the console only, and wrong ones are counted like wrong keys', async () => {
    const token = links.create(apiKeyParts(acme.keys.viewer).id, 60_000)
    const foreign = await send('POST', '/console/session', { body: { token }, headers: { 'sec-fetch-site': 'cross-site' } })
    expect(foreign.status).toBe(403)
    const wrong = () => send('POST', '/console/session', { url: guardedLinks.baseUrl, body: { token: 'wrong' }, headers: fromConsole })
    await until('wrong links are refused for a while', async () => (await wrong()).status === 429)
  })
})
