import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { Agent, fetch as fetchOverTls, type RequestInit } from 'undici'
import { localAddress } from '../../../src/api/console/sign-in.ts'
import { begunSignIn, createKeyRing, sessionCookie } from '../../../src/security/seal.ts'
import { startApi, type Api } from '../../support/api.ts'
import { createTestDatabase } from '../../support/database.ts'
import { testConfig } from '../../support/factories.ts'
import { createFolder } from '../../support/folder.ts'
import { startOpenIdServer, type OpenIdServer } from '../../support/openid-provider.ts'
import { share } from '../../support/share.ts'
import { writeSignInFile } from '../../support/sign-in-file.ts'

const accounts = {
  vera: { groups: ['viewers'] },
  mona: { groups: ['members', 'elsewhere'], email: 'mona@example.com', email_verified: true },
  mallory: { groups: ['members'], email: 'adam@example.com', email_verified: false, preferred_username: 'Adam@Example.com' },
  adam: { groups: ['admins', 'viewers'], email: 'adam@example.com', email_verified: true },
  otto: { groups: ['others'] },
  nora: { groups: ['nothing'] },
}
type Account = keyof typeof accounts

const database = share(await createTestDatabase())
const folder = share(await createFolder())
const keyRing = createKeyRing(testConfig().RELAY_SECRET_KEYS)
const provider = share(await startOpenIdServer({ accounts }))
const fullTokens = share(await startOpenIdServer({ accounts, hasFullIdToken: true }))

const access = [
  { value: 'viewers', workspace: 'acme/prod', level: 'viewer' },
  { value: 'members', workspace: 'acme/prod', level: 'member' },
  { value: 'admins', workspace: 'acme/prod', level: 'admin' },
  { value: 'elsewhere', workspace: 'acme/test', level: 'viewer' },
  { value: 'elsewhere', workspace: 'acme/not-yet', level: 'admin' },
  { value: 'others', workspace: 'other/prod', level: 'admin' },
]

const startWith = async (
  name: string,
  server: OpenIdServer,
  { variables = {}, ...changes }: { variables?: Record<string, string> } & Record<string, unknown> = {},
) =>
  startApi(database.db, {
    keyRing,
    variables: { RELAY_OIDC_FILE: await writeSignInFile(`${folder.path}/${name}.json`, server, { access, ...changes }), ...variables },
  })

const api = share(await startWith('main', provider))
const withFullTokens = share(await startWith('full', fullTokens))
const overTls = share(await startWith('tls', provider, { variables: { RELAY_BASE_URL: 'https://relay.example/sap' } }))
const withLessAccess = share(await startWith('less', provider, { access: access.slice(0, 1) }))
const withWrongSecret = share(await startWith('wrong-secret', provider, { client_secret: { file: await writeSecret('wrong') } }))
const withWrongIssuer = share(await startWith('wrong-issuer', provider, { issuer: provider.issuer.replace('localhost', '127.0.0.1') }))
const withoutProvider = share(await startApi(database.db, { keyRing }))
provider.register([api, withLessAccess, withWrongSecret].map(callbackOf).concat('https://relay.example/sap/console/sign-in/callback'))
fullTokens.register([callbackOf(withFullTokens)])
const acme = await api.tenant('acme/prod')
const acmeTest = await api.tenant('acme/test')
const other = await api.tenant('other/prod')
await acme.call('GET', '/settings')

async function writeSecret(secret: string) {
  const path = `${folder.path}/${secret}`
  await writeFile(path, secret)
  return path
}

function callbackOf({ baseUrl }: Pick<Api, 'baseUrl'>) {
  return `${baseUrl}/console/sign-in/callback`
}

const fromConsole = { 'sec-fetch-site': 'same-origin' }

interface Sent {
  url?: string
  body?: unknown
  headers?: Record<string, string>
}

/** Sends a request with the headers that a browser would send, of which `fetch` forbids some. */
const send = (method: string, path: string, { url = api.baseUrl, body, headers = {} }: Sent = {}) =>
  new Promise<{ status: number; headers: Headers; json: ReturnType<typeof JSON.parse> }>((resolve, reject) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const sent = request(url + path, { method, headers: { ...type, ...headers } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const received = new Headers()
        for (const [name, values] of Object.entries(response.headersDistinct)) for (const value of values!) received.append(name, value)
        const isJson = response.headers['content-type']?.includes('json') && chunks.length > 0
        resolve({
          status: response.statusCode!,
          headers: received,
          json: isJson ? JSON.parse(Buffer.concat(chunks).toString()) : undefined,
        })
      })
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })

const cookiesOf = (headers: Headers) =>
  headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0]!)
    .filter((cookie) => !cookie.endsWith('='))

/** Signs in at the provider as a browser would. @returns where the provider leads the browser */
const answerOf = async (address: string, account: string, button = 'sign in', at = provider): Promise<URL> => {
  const dispatcher = new Agent({ connect: { ca: at.caCertificate } })
  const jar = new Map<string, string>()
  const visit = async (url: URL, init: RequestInit = {}): Promise<URL> => {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetchOverTls(url, { ...init, dispatcher, redirect: 'manual', headers: { cookie } })
    for (const each of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? []
      jar.set(name, value)
    }
    const location = response.headers.get('location')
    if (location === null) return url
    const next = new URL(location, url)
    return next.origin === url.origin ? visit(next) : next
  }
  try {
    const form = await visit(new URL(address))
    if (form.origin !== at.issuer) return form
    return await visit(form, { method: 'POST', body: new URLSearchParams({ account, do: button }) })
  } finally {
    await dispatcher.close()
  }
}

interface Way {
  at?: Pick<Api, 'baseUrl'>
  to?: string
  button?: string
  server?: OpenIdServer
}

/** Begins a sign-in at the relay, answers the provider, and stops before the answer of the provider reaches the relay. */
const begin = async (account: Account, { at = api, to = '', button, server }: Way = {}) => {
  const started = await send('GET', `/console/sign-in/start?to=${encodeURIComponent(to)}`, { url: at.baseUrl })
  const answer = await answerOf(started.headers.get('location')!, account, button, server)
  return { started, answer, cookie: cookiesOf(started.headers).join('; ') }
}

const finish = (answer: URL, cookie: string, at: Pick<Api, 'baseUrl'> = api) =>
  send('GET', answer.pathname.replace(/^\/sap/, '') + answer.search, {
    url: at.baseUrl,
    headers: { cookie, 'sec-fetch-site': 'cross-site' },
  })

const signIn = async (account: Account, way: Way = {}) => {
  const { answer, cookie } = await begin(account, way)
  const finished = await finish(answer, cookie, way.at)
  return { finished, location: finished.headers.get('location')!, cookie: cookiesOf(finished.headers).join('; ') }
}

const sessionOf = async (cookie: string, { at = api, query = '' }: { at?: Pick<Api, 'baseUrl'>; query?: string } = {}) =>
  (await send('GET', `/console/session${query}`, { url: at.baseUrl, headers: { ...fromConsole, cookie } })).json

/** Calls the management API as the console does. */
const callWith = (
  cookie: string,
  method: string,
  path: string,
  { body, headers, at = api }: { body?: unknown; headers?: Record<string, string>; at?: Pick<Api, 'baseUrl'> } = {},
) => send(method, path, { url: at.baseUrl, body, headers: { ...fromConsole, ...headers, cookie } })

test('the provider is asked for a code with PKCE, and what its answer is checked against stays sealed with the browser', async () => {
  const { headers, status } = await send('GET', '/console/sign-in/start?to=documents')
  expect(status).toBe(302)
  const url = new URL(headers.get('location')!)
  expect(url.origin + url.pathname).toBe(`${provider.issuer}/auth`)
  expect(Object.fromEntries(url.searchParams)).toEqual({
    client_id: 'document-relay',
    response_type: 'code',
    redirect_uri: callbackOf(api),
    scope: 'openid profile email groups',
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    code_challenge_method: 'S256',
  })
  const [cookie] = headers.getSetCookie()
  expect(cookie).toMatch(/^relay_sign_in=[\w-]+; Path=\/console\/sign-in\/callback; HttpOnly; SameSite=Lax; Max-Age=600$/)
  expect(cookie!.length).toBeLessThan(4_096)
  expect(headers.get('cache-control')).toBe('no-store')
})

test('over TLS below a path, both cookies are secure, and the browser is led to the addresses that it sees', async () => {
  const { started, answer, cookie } = await begin('vera', { at: overTls, to: 'destinations' })
  expect(started.headers.getSetCookie()[0]).toMatch(
    /^__Secure-relay_sign_in=[\w-]+; Path=\/sap\/console\/sign-in\/callback; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/,
  )
  expect(answer.origin + answer.pathname).toBe('https://relay.example/sap/console/sign-in/callback')
  const finished = await finish(answer, cookie, overTls)
  expect(finished.headers.get('location')).toBe('/sap/console/destinations')
  expect(finished.headers.getSetCookie()).toEqual([
    '__Secure-relay_sign_in=; Path=/sap/console/sign-in/callback; HttpOnly; SameSite=Lax; Max-Age=0; Secure',
    expect.stringMatching(/^__Host-relay_session=[\w-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=3\d{3}; Secure$/),
  ])
})

test.each([
  ['the user info endpoint', api, provider],
  ['the ID token', withFullTokens, fullTokens],
] as const)('a person is signed in with the groups of %s, for an hour, and with the workspaces that exist', async (_, at, server) => {
  const { finished, location, cookie } = await signIn('mona', { at, server, to: 'documents?status=failed' })
  expect({ status: finished.status, location }).toEqual({ status: 302, location: '/console/documents?status=failed' })
  const { data } = await sessionOf(cookie, { at })
  expect(data.attributes).toMatchObject({
    user_slug: 'acme',
    workspace_slug: 'prod',
    level: 'member',
    key_id: null,
    person: { id: 'mona', name: 'mona@example.com' },
    workspaces: [
      { user_slug: 'acme', workspace_slug: 'prod', level: 'member' },
      { user_slug: 'acme', workspace_slug: 'test', level: 'viewer' },
    ],
  })
  const remainingMs = Date.parse(data.attributes.expires_at) - Date.now()
  expect(remainingMs).toBeGreaterThan(3_000_000)
  expect(remainingMs).toBeLessThanOrEqual(3_600_000)
})

test('the page that asks gets the workspace that it shows, if the person may use it', async () => {
  const { cookie } = await signIn('mona')
  const shown = async (workspace: string) => {
    const { attributes } = (await sessionOf(cookie, { query: `?workspace=${encodeURIComponent(workspace)}` })).data
    return `${attributes.user_slug}/${attributes.workspace_slug} ${attributes.level}`
  }
  expect(await shown('acme/test')).toBe('acme/test viewer')
  for (const wrong of ['other/prod', 'acme/not-yet', 'acme', '', '\u0000/x']) expect(await shown(wrong)).toBe('acme/prod member')
})

test('the sign-in page learns the name of the provider, if there is one', async () => {
  expect(await sessionOf('')).toEqual({ data: null, meta: { provider: 'Example Corp' } })
  expect(await sessionOf('', { at: withoutProvider })).toEqual({ data: null })
  expect((await send('POST', '/console/sign-in/start')).status).toBe(405)
})

test('the cookie of a person with many workspaces and a long name fits into 4 kB', async () => {
  const person = {
    id: 'x'.repeat(255),
    name: 'Ä'.repeat(200),
    rules: Array.from({ length: 100 }, (_, index) => String(index).padStart(12, '-')),
  }
  const sealed = keyRing.seal({ person, expiresAt: Date.now() }, sessionCookie).toString('base64url')
  expect(`__Host-relay_session=${sealed}`.length).toBeLessThan(4_096)
})

describe('access', () => {
  test.each([
    ['vera', 200, 403, 403],
    ['mona', 200, 201, 403],
    ['adam', 200, 201, 200],
  ] as const)('of %s follows the highest level', async (account, read, write, administrate) => {
    const { cookie } = await signIn(account)
    const body = { repo_id: `R${account}`, name: 'Inbox' }
    expect((await callWith(cookie, 'GET', `${acme.path}/destinations`)).status).toBe(read)
    expect((await callWith(cookie, 'POST', `${acme.path}/repositories`, { body })).status).toBe(write)
    expect((await callWith(cookie, 'GET', `${acme.path}/api-keys`)).status).toBe(administrate)
  })

  test('of a refused person is explained by the level', async () => {
    const { cookie } = await signIn('vera')
    const { json } = await callWith(cookie, 'GET', `${acme.path}/api-keys`)
    expect(json.error).toMatchObject({
      code: 'forbidden',
      message: 'This operation requires level admin. You have level viewer in this workspace.',
    })
  })

  test('ends at the workspaces of the person, for every endpoint', async () => {
    const { cookie } = await signIn('adam')
    const statuses = new Set<string>()
    for (const { method, path } of api.endpoints) {
      const address = other.path + path.replaceAll(/:[a-z_A-Z]+/g, '01K00000000000000000000000')
      const { status, json } = await callWith(cookie, method, address, { ...(['POST', 'PUT', 'PATCH'].includes(method) && { body: {} }) })
      statuses.add(`${status} ${json?.error.code}`)
    }
    expect([...statuses]).toEqual(['401 unauthorized'])
    expect((await callWith(cookie, 'GET', `${acmeTest.path}/destinations`)).status).toBe(401)
    expect((await callWith(cookie, 'GET', '/api/acme/not-yet/destinations')).status).toBe(401)
  })

  test('follows the rules of the process: a rule that was removed gives none any more', async () => {
    const { cookie } = await signIn('mona')
    expect(await sessionOf(cookie, { at: withLessAccess })).toMatchObject({ data: null })
    expect((await callWith(cookie, 'GET', `${acme.path}/destinations`, { at: withLessAccess })).status).toBe(401)
    const { cookie: viewer } = await signIn('vera')
    expect((await callWith(viewer, 'GET', `${acme.path}/destinations`, { at: withLessAccess })).status).toBe(200)
  })

  test('ends when people cannot sign in any more', async () => {
    const { cookie } = await signIn('mona')
    expect(await sessionOf(cookie, { at: withoutProvider })).toEqual({ data: null })
    expect((await callWith(cookie, 'GET', `${acme.path}/destinations`, { at: withoutProvider })).status).toBe(401)
  })

  test('ends after an hour, even if the browser keeps the cookie', async () => {
    const { cookie } = await signIn('mona')
    const realNow = Date.now
    Date.now = () => realNow() + 3_601_000
    try {
      expect(await sessionOf(cookie)).toMatchObject({ data: null })
      expect((await callWith(cookie, 'GET', `${acme.path}/destinations`)).status).toBe(401)
    } finally {
      Date.now = realNow
    }
  })

  test('is refused to a request that another page has sent', async () => {
    const { cookie } = await signIn('adam')
    const headers = { 'sec-fetch-site': 'cross-site' }
    expect((await callWith(cookie, 'GET', `${acme.path}/destinations`, { headers })).status).toBe(401)
  })

  test('to the figures of workspaces is to those that the person may use', async () => {
    const listed = async (cookie: string) => {
      const { status, headers, json } = await send('GET', '/console/workspace-states', { headers: { ...fromConsole, cookie } })
      expect(headers.get('cache-control')).toBe('no-store')
      expect(status).toBe(200)
      return json.data.map(({ attributes }: { attributes: { user_slug: string; workspace_slug: string } }) => attributes)
    }
    const none = { attention: 0, open: 0, failing: 0, held: 0, refusing: 0 }
    const state = { ...none, oldest_open_at: null, last_request_at: null, stored_bytes: 0, max_bytes: expect.any(Number) }
    expect(await listed((await signIn('mona')).cookie)).toEqual([
      { user_slug: 'acme', workspace_slug: 'prod', ...state },
      { user_slug: 'acme', workspace_slug: 'test', ...state },
    ])
    expect(await listed((await signIn('otto')).cookie)).toEqual([{ user_slug: 'other', workspace_slug: 'prod', ...state }])
    const { cookie } = await signIn('mona')
    const statusOf = async (headers: Record<string, string>, method = 'GET', at = api) =>
      (await send(method, '/console/workspace-states', { url: at.baseUrl, headers })).status
    expect(await statusOf(fromConsole)).toBe(401)
    expect(await statusOf({ cookie, 'sec-fetch-site': 'cross-site' })).toBe(401)
    expect(await statusOf({ ...fromConsole, cookie }, 'GET', withLessAccess)).toBe(401)
    expect(await statusOf({ ...fromConsole, cookie }, 'POST')).toBe(405)
  })

  test('to the events of a workspace ends where that to the workspace ends', async () => {
    const { cookie } = await signIn('mona')
    const statusOf = async (workspace: string) =>
      (await send('HEAD', `/console/events?workspace=${workspace}`, { headers: { ...fromConsole, cookie } })).status
    expect(await statusOf('acme/prod')).toBe(200)
    expect(await statusOf('acme/test')).toBe(200)
    for (const refused of ['other/prod', 'acme/not-yet']) expect(await statusOf(refused)).toBe(401)
  })

  test('gives no access to the bridge, which programs call with keys', async () => {
    const { cookie } = await signIn('adam')
    expect((await callWith(cookie, 'POST', '/bridge/acme/prod/rfc/X', { body: {} })).status).toBe(401)
  })
})

describe('the audit log', () => {
  const entryOf = async (id: string) => (await acme.call('GET', `/audit-logs?subject_id=${id}`)).json.data[0].attributes

  test('names the person', async () => {
    const { cookie } = await signIn('mona')
    const { json } = await callWith(cookie, 'POST', `${acme.path}/repositories`, { body: { repo_id: 'A1', name: 'Inbox' } })
    expect(await entryOf(json.data.id)).toMatchObject({
      event: 'repository.created',
      actor_type: 'user',
      user_id: null,
      metadata: { person_id: 'mona', person_name: 'mona@example.com' },
    })
  })

  test('names the member with the address of the person, too', async () => {
    const id = '01K0000000000000000000ADAM'
    await database.db('members').insert({ id, workspace_id: acme.id, email: 'Adam@Example.com', name: 'Adam' })
    const { cookie } = await signIn('adam')
    const { json } = await callWith(cookie, 'POST', `${acme.path}/repositories`, { body: { repo_id: 'A2', name: 'Inbox' } })
    expect(await entryOf(json.data.id)).toMatchObject({ actor_type: 'user', user_id: id, metadata: { person_id: 'adam' } })
  })

  test('names no member whose address a person only claims to have, as e-mail address or as user name', async () => {
    const { cookie } = await signIn('mallory')
    const { json } = await callWith(cookie, 'POST', `${acme.path}/repositories`, { body: { repo_id: 'A3', name: 'Inbox' } })
    expect(await entryOf(json.data.id)).toMatchObject({ actor_type: 'user', user_id: null, metadata: { person_id: 'mallory' } })
  })

  test('names the person in every entry of a bulk retry', async () => {
    const { cookie } = await signIn('mona')
    const { json } = await callWith(cookie, 'POST', `${acme.path}/documents/retry`, { body: { status: 'failed' } })
    expect(await entryOf(json.data.id)).toMatchObject({ event: 'bulk_retry.started', metadata: { person_name: 'mona@example.com' } })
    expect(await database.db('bulk_retries').where({ id: json.data.id }).first()).toMatchObject({
      actor_type: 'user',
      actor_id: 'mona',
      actor_name: 'mona@example.com',
    })
  })
})

test('an Idempotency-Key belongs to the person and the workspace', async () => {
  const create = async (account: Account, repoId: string) => {
    const { cookie } = await signIn(account)
    const body = { repo_id: repoId, name: 'Inbox' }
    const { status, json, headers } = await callWith(cookie, 'POST', `${acme.path}/repositories`, {
      body,
      headers: { 'idempotency-key': 'once' },
    })
    return { status, id: json.data?.id as string | undefined, isReplayed: headers.has('idempotent-replayed') }
  }
  const first = await create('mona', 'I1')
  expect(first).toMatchObject({ status: 201, isReplayed: false })
  expect(await create('mona', 'I1')).toEqual({ ...first, isReplayed: true })
  expect(await create('mona', 'I2')).toMatchObject({ status: 422 })
  expect(await create('adam', 'I3')).toMatchObject({ status: 201, isReplayed: false })
})

test('the log names the person of a request by the id, and contains no code, token, secret or cookie', async () => {
  const { answer, cookie } = await begin('mona')
  const finished = await finish(answer, cookie)
  const session = cookiesOf(finished.headers).join()
  await callWith(session, 'GET', `${acme.path}/destinations`)
  const log = api.log.join('\n')
  expect(log).toContain('"person_id":"mona"')
  for (const secret of [
    answer.searchParams.get('code')!,
    answer.searchParams.get('state')!,
    provider.clientSecret,
    session.split('=')[1]!,
  ]) {
    expect(log).not.toContain(secret)
  }
})

describe('a sign-in that fails ends at the sign-in page, which says why:', () => {
  const failure = /^\/console\/documents#sign-in-failed=(\w+)$/
  const failureOf = ({ status, headers }: { status: number; headers: Headers }) => {
    expect(status).toBe(302)
    expect(cookiesOf(headers)).toEqual([])
    return failure.exec(headers.get('location')!)?.[1]
  }
  const to = 'documents'

  test('the person has cancelled it at the provider', async () => {
    const { finished } = await signIn('mona', { to, button: 'cancel' })
    expect(failureOf(finished)).toBe('denied')
  })

  test('no group opens a workspace', async () => {
    expect(failureOf((await signIn('nora', { to })).finished)).toBe('no_access')
    expect(api.log.join('\n')).toContain('the claim groups of nora has 1 values, and none of them opens a workspace')
  })

  test('the state is that of another sign-in', async () => {
    const [one, another] = [await begin('mona', { to }), await begin('adam', { to })]
    expect(failureOf(await finish(one.answer, another.cookie))).toBe('mismatch')
  })

  test('there is no state', async () => {
    const { answer, cookie } = await begin('mona', { to })
    answer.searchParams.delete('state')
    expect(failureOf(await finish(answer, cookie))).toBe('mismatch')
  })

  test('the browser has not begun it, or its cookie was changed', async () => {
    const { answer, cookie } = await begin('mona', { to })
    for (const wrong of ['', cookie.replace(/.{4}$/, 'AAAA'), 'relay_sign_in=x']) {
      expect((await finish(answer, wrong)).headers.get('location')).toBe('/console/#sign-in-failed=expired')
    }
  })

  test('it took too long', async () => {
    const { answer, cookie } = await begin('mona', { to })
    const realNow = Date.now
    Date.now = () => realNow() + 601_000
    try {
      expect(failureOf(await finish(answer, cookie))).toBe('expired')
    } finally {
      Date.now = realNow
    }
  })

  test('its answer was used before', async () => {
    const { answer, cookie } = await begin('mona', { to })
    expect((await finish(answer, cookie)).headers.get('location')).toBe('/console/documents')
    expect(failureOf(await finish(answer, cookie))).toBe('expired')
  })

  test('the code belongs to another verifier: somebody has stolen it', async () => {
    const { answer, cookie } = await begin('mona', { to })
    const name = cookie.split('=')[0]!
    const begun = keyRing.open(Buffer.from(cookie.split('=')[1]!, 'base64url'), begunSignIn) as object
    const forged = keyRing.seal({ ...begun, codeVerifier: 'x'.repeat(43) }, begunSignIn).toString('base64url')
    expect(failureOf(await finish(answer, `${name}=${forged}`))).toBe('expired')
  })

  test('the ID token was issued for another sign-in', async () => {
    const { answer, cookie } = await begin('mona', { to })
    const name = cookie.split('=')[0]!
    const begun = keyRing.open(Buffer.from(cookie.split('=')[1]!, 'base64url'), begunSignIn) as object
    const forged = keyRing.seal({ ...begun, nonce: 'x'.repeat(43) }, begunSignIn).toString('base64url')
    expect(failureOf(await finish(answer, `${name}=${forged}`))).toBe('failed')
  })

  test('the provider refuses the secret of the relay', async () => {
    const { finished } = await signIn('mona', { to, at: withWrongSecret })
    expect(failureOf(finished)).toBe('failed')
    const log = withWrongSecret.log.join('\n')
    expect(log).toContain('invalid_client')
    expect(log).not.toContain('"wrong"')
  })

  test('the provider says that it is another issuer', async () => {
    const started = await send('GET', `/console/sign-in/start?to=${to}`, { url: withWrongIssuer.baseUrl })
    expect(failureOf(started)).toBe('failed')
    expect(withWrongIssuer.log.join('\n')).toContain('its issuer is')
  })

  test('the provider is away, at the beginning or at the end, and works again later', async () => {
    await using fresh = await startWith('fresh', provider)
    provider.register(
      [api, withLessAccess, withWrongSecret, fresh].map(callbackOf).concat('https://relay.example/sap/console/sign-in/callback'),
    )
    provider.setAway(true)
    try {
      expect(failureOf(await send('GET', `/console/sign-in/start?to=${to}`, { url: fresh.baseUrl }))).toBe('unavailable')
      provider.setAway(false)
      const { answer, cookie } = await begin('mona', { to, at: fresh })
      provider.setAway(true)
      expect(failureOf(await finish(answer, cookie, fresh))).toBe('unavailable')
      provider.setAway(false)
      expect((await finish(answer, cookie, fresh)).headers.get('location')).toBe('/console/documents')
    } finally {
      provider.setAway(false)
    }
  })
})

test.each([
  ['documents/1?x=y', '/sap/console/documents/1?x=y'],
  ['', '/sap/console/'],
  ['/sap/console/failures', '/sap/console/failures'],
  ['/sap/api/x', '/sap/console/'],
  ['../api/x', '/sap/console/'],
  ['https://evil.example/', '/sap/console/'],
  ['//evil.example/sap/console/', '/sap/console/'],
  ['\\\\evil.example', '/sap/console/'],
  ['\t//evil.example', '/sap/console/'],
  ['javascript:alert(1)', '/sap/console/'],
  ['/sap/consoleevil', '/sap/console/'],
  ['x\r\ny', '/sap/console/xy'],
  ['x\r\nset-cookie: a=b', '/sap/console/'],
  ['documents#sign-in=token', '/sap/console/documents'],
  ['x'.repeat(1_001), '/sap/console/'],
])('a person is led to %j only below the console', (to, address) => {
  expect(localAddress(to, '/sap')).toBe(address)
})

test('an address whose sign-ins fail is answered 429 with Retry-After, and the provider is not asked', async () => {
  const few = share(await startWith('few', provider, { variables: { RELAY_WRONG_KEYS_PER_MINUTE: '2' } }))
  const get = (path: string) => send('GET', path, { url: few.baseUrl })
  const callback = '/console/sign-in/callback?code=x&state=y'
  expect([(await get(callback)).status, (await get(callback)).status]).toEqual([302, 302])
  for (const refused of [await get(callback), await get('/console/sign-in/start')]) {
    expect(refused).toMatchObject({ status: 429, json: { error: { code: 'rate_limited' } } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  }
})
