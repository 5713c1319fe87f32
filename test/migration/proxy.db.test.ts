import { startForwardProxy } from '../support/forward-proxy.ts'
import { startOldContentServer } from '../support/old-content-server.ts'
import { startScene, type Scene } from '../support/scene.ts'
import { share } from '../support/share.ts'

const [scene, old, proxy, operators] = await Promise.all([
  startScene().then(share),
  startOldContentServer().then(share),
  startForwardProxy(),
  startForwardProxy(),
])
afterAll(() => Promise.all([proxy.stop(), operators.stop()]))
old.put('D1', { data: 'hello' })

const oldServer = { url: old.url, cont_rep: 'Z1' }
const oldAddress = new URL(old.url).host
const hidden = proxy.url.replace('//', '//***@')
const password = encodeURIComponent(proxy.password)

const open = async ({ workspace, db }: Scene = scene) => {
  const opened = await workspace()
  const { call, repositoryId, source } = opened
  const path = `/repositories/${repositoryId}`
  return {
    set: (upstream: object) => call('PATCH', path, { upstream: { ...oldServer, ...upstream } }),
    /** Reads a document. @returns its bytes, or why it could not be read */
    read: async () => {
      const { status, body, headers } = await source.get('D1')
      return status === 200 ? String(body) : headers['x-errordescription']
    },
    test: async () => (await call('POST', `${path}/test-upstream`)).json.data.message,
    audit: async () => (await call('GET', '/audit-logs?event=repository.updated')).json.data[0].attributes,
    row: () => db('repositories').where({ id: repositoryId }).first(),
    /** Changes the stored upstream, as a change of the settings of the installation would. */
    alter: async (change: object) => {
      const { upstream } = await db('repositories').where({ id: repositoryId }).first()
      await db('repositories')
        .where({ id: repositoryId })
        .update({ upstream: JSON.stringify({ ...upstream, ...change }) })
    },
  }
}

describe('with RELAY_OUTBOUND_PROXY, an upstream is reached', () => {
  test.each([
    ['directly at a private address', {}, false],
    ['through the proxy, where the installation has no such exception', { RELAY_OUTBOUND_NO_PROXY: 'none.invalid' }, true],
  ])('%s', async (_, variables, isProxied) => {
    await using strict = await startScene({ variables: { RELAY_OUTBOUND_PROXY: operators.urlWithLogin, ...variables } })
    const { set, read } = await open(strict)
    await set({})
    const before = operators.targets.length
    expect(await read()).toBe('hello')
    expect(operators.targets.length > before).toBe(isProxied)
  })

  test('through a proxy of its own that the installation reaches directly', async () => {
    await using strict = await startScene({ variables: { RELAY_OUTBOUND_PROXY: operators.urlWithLogin } })
    const { set, read } = await open(strict)
    await set({ proxy_url: proxy.urlWithLogin })
    const [before, passed] = [operators.connections(), proxy.targets.length]
    expect(await read()).toBe('hello')
    expect([operators.connections(), proxy.targets.length > passed]).toEqual([before, true])
  })

  test('through no proxy of its own on the internet', async () => {
    await using strict = await startScene({ variables: { RELAY_OUTBOUND_PROXY: operators.urlWithLogin } })
    const { set, test: check, alter } = await open(strict)
    const internet = { url: 'http://8.8.8.8/archive' }
    const { status, json } = await set({ ...internet, proxy_url: proxy.urlWithLogin })
    expect([status, json.error.details]).toEqual([
      422,
      [{ path: 'upstream.proxy_url', message: expect.stringContaining('adds 8.8.8.8 to RELAY_OUTBOUND_NO_PROXY') }],
    ])
    await set(internet)
    await alter({ proxy_url: proxy.url })
    const before = proxy.connections()
    expect(await check()).toContain('adds 8.8.8.8 to RELAY_OUTBOUND_NO_PROXY')
    expect(proxy.connections()).toBe(before)
  })

  test('not through any proxy of its own, where the installation has no such exception', async () => {
    await using strict = await startScene({
      variables: { RELAY_OUTBOUND_PROXY: operators.urlWithLogin, RELAY_OUTBOUND_NO_PROXY: 'none.invalid' },
    })
    const { set, read, alter } = await open(strict)
    const before = [proxy.connections(), operators.connections()]
    const { status, json } = await set({ proxy_url: proxy.urlWithLogin })
    expect([status, json.error.details]).toEqual([
      422,
      [{ path: 'upstream.proxy_url', message: expect.stringContaining('adds its name to RELAY_OUTBOUND_NO_PROXY') }],
    ])
    await set({})
    await alter({ proxy_url: proxy.url })
    expect(await read()).toMatch(/^upstream_failed: .*the proxy of proxy_url is only for targets that the relay would reach directly/)
    expect([proxy.connections(), operators.connections()]).toEqual(before)
  })
})

describe('the proxy of an upstream', () => {
  test('is asked with its password, which is never returned, and kept if the answer is sent back', async () => {
    const { set, read, row, audit } = await open()
    const { json, text } = await set({ proxy_url: `${proxy.urlWithLogin}/` })
    expect(json.data.attributes.upstream.proxy_url).toBe(hidden)
    expect((await audit()).description).toBe('Repository Z1 was changed: upstream, upstream.proxy_url.')
    expect(text + JSON.stringify([await row(), await audit()])).not.toContain(password)
    const before = proxy.targets.length
    expect(await read()).toBe('hello')
    expect(new Set(proxy.targets.slice(before))).toEqual(new Set([oldAddress]))

    const { upstream_secrets_sealed: sealed } = await row()
    expect((await set({ proxy_url: hidden, delivers: true })).status).toBe(200)
    expect((await set({ proxy_url: proxy.urlWithLogin })).status).toBe(200)
    expect((await row()).upstream_secrets_sealed).toEqual(sealed)
    // Bound to the address of the old server as well, and sealed again.
    await set({ proxy_url: hidden, url: `${old.url}/other` })
    expect((await audit()).description).toBe('Repository Z1 was changed: upstream.')
    await set({ proxy_url: hidden })
    expect(await read()).toBe('hello')
    const { status, json: refused } = await set({ proxy_url: operators.url.replace('//', '//***@') })
    expect([status, refused.error.details[0].path]).toEqual([422, 'upstream.proxy_url'])
    await set({ proxy_url: null })
    expect((await row()).upstream_secrets_sealed).toBeNull()
  })

  test('that refuses the password, demands one, or is down is a failure of the upstream', async () => {
    const { set, read, test: check } = await open()
    await set({ proxy_url: proxy.url.replace('//', '//relay:canary-wrong@') })
    const failed = 'upstream: the content server cannot be reached: the proxy of proxy_url'
    expect(await read()).toBe(`upstream_failed: ${failed} refuses the user and password of its address (407)`)
    expect(await check()).toBe(`${failed} refuses the user and password of its address (407)`)
    await set({ proxy_url: proxy.url })
    expect(await check()).toBe(`${failed} demands a user and a password, and its address has none (407)`)
    // Nothing listens at the port discard.
    await set({ proxy_url: 'http://relay:canary@127.0.0.1:9' })
    expect(await check()).toBe(`${failed} cannot be reached (ECONNREFUSED)`)
  })

  test('at a private address that the operator does not allow is neither saved nor asked', async () => {
    const { set, read, alter } = await open()
    const { status, json } = await set({ proxy_url: 'http://10.1.2.3:3128' })
    expect([status, json.error.details]).toEqual([
      422,
      [{ path: 'upstream.proxy_url', message: expect.stringMatching(/^the proxy of proxy_url is at .*RELAY_ALLOWED_PRIVATE_CIDRS$/) }],
    ])
    await set({})
    await alter({ proxy_url: 'http://10.1.2.3:3128' })
    const failure = await read()
    expect(failure).toMatch(/^upstream_failed: .*: the proxy of proxy_url is at an address that targets must not have/)
    // The source system need not know where a proxy is.
    expect(failure).not.toContain('10.1.2.3')
  })

  test('is refused after a repository that does not exist, or has changed since', async () => {
    const { call, repositoryId } = await scene.workspace()
    const body = { upstream: { ...oldServer, proxy_url: 'http://10.1.2.3:3128' } }
    const stale = { headers: { 'if-match': '"stale"' } }
    expect((await call('PATCH', '/repositories/unknown', body)).status).toBe(404)
    expect((await call('PATCH', `/repositories/${repositoryId}`, body, stale)).status).toBe(412)
    expect((await call('PATCH', `/repositories/${repositoryId}`, body)).status).toBe(422)
  })

  test('gets its password over TLS, or in a private network that the operator allows', async () => {
    const { set } = await open()
    expect((await set({ proxy_url: 'http://relay:canary@8.8.8.8:3128' })).json.error.details[0].message).toMatch(/without TLS/)
    expect((await set({ proxy_url: 'https://relay:canary@8.8.8.8:3128' })).status).toBe(200)
  })

  test.each(['http://10.1.2.3/archive', 'http://169.254.169.254/archive', 'http://[::1]:9/archive'])(
    'is not asked for %s, which the operator does not allow',
    async (url) => {
      await using strict = await startScene({ variables: { RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8' } })
      const { set, test: check } = await open(strict)
      await set({ url, proxy_url: proxy.urlWithLogin })
      const before = proxy.connections()
      expect(await check()).toContain('RELAY_ALLOWED_PRIVATE_CIDRS')
      expect(proxy.connections()).toBe(before)
    },
  )
})

describe('allowed_cidrs of an upstream', () => {
  test.each([
    ['directly', {}],
    ['through a proxy', { proxy_url: proxy.urlWithLogin }],
  ])('restricts the addresses that are reached %s', async (_, way) => {
    const { set, read } = await open()
    await set({ ...way, allowed_cidrs: ['10.0.0.0/8', '127.0.0.0/30'] })
    expect(await read()).toBe('hello')
    const other = await open()
    const { json } = await other.set({ ...way, allowed_cidrs: ['10.0.0.0/8', '::/0'] })
    expect(json.data.attributes.upstream.allowed_cidrs).toEqual(['10.0.0.0/8', '::/0'])
    const before = proxy.connections()
    expect(await other.read()).toBe(
      'upstream_failed: upstream: the content server cannot be reached: 127.0.0.1 resolves to an address outside of allowed_cidrs',
    )
    expect(proxy.connections()).toBe(before)
  })

  test('never allows what the operator does not', async () => {
    const { set, test: check } = await open()
    await set({ url: 'http://10.1.2.3/archive', allowed_cidrs: ['10.0.0.0/8', '127.0.0.0/8'] })
    expect(await check()).toContain('RELAY_ALLOWED_PRIVATE_CIDRS')
  })
})
