import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { MockAgent } from 'undici'
import { createOpenIdProvider, createProviderGuard, type ProviderSettings } from '../../src/security/oidc.ts'
import { testConfig } from '../support/factories.ts'
import { startForwardProxy } from '../support/forward-proxy.ts'
import { startOpenIdServer } from '../support/openid-provider.ts'

const settings: ProviderSettings = {
  issuer: 'https://id.example',
  clientId: 'relay',
  clientSecret: 'hunter2',
  scopes: ['openid'],
  claim: 'groups',
}

/** Stands for a provider that cannot be had here. */
const answering = (issuer: string, status: number, body: object | string, headers: Record<string, string> = {}) => {
  const agent = new MockAgent()
  agent.disableNetConnect()
  const { origin, pathname } = new URL(issuer)
  agent
    .get(origin)
    .intercept({ path: `${pathname.replace(/\/$/, '')}/.well-known/openid-configuration`, method: 'GET' })
    .reply(status, body, { headers: { 'content-type': 'application/json', ...headers } })
    .persist()
  return createOpenIdProvider({ ...settings, issuer }, { dispatcher: () => agent })
}

describe('a provider that is discovered', () => {
  const entra = (tenant: string) => `https://login.microsoftonline.com/${tenant}/v2.0`

  test('may be one tenant of Entra ID', async () => {
    const tenant = entra('4b8f9e9d-0000-4000-8000-000000000000')
    await expect(answering(tenant, 200, { issuer: tenant }).check()).resolves.toBeUndefined()
  })

  test.each(['common', 'organizations', 'consumers'])(
    'must not be all tenants of Entra ID, who make their own claims (%s)',
    async (name) => {
      await expect(answering(entra(name), 200, { issuer: entra('{tenantid}') }).check()).rejects.toMatchObject({
        failure: 'failed',
        message: expect.stringContaining('its issuer is https://login.microsoftonline.com/{tenantid}/v2.0, and not') as string,
      })
    },
  )

  test.each([
    ['does not exist', 404, {}, {}, 'failed', 'unexpected HTTP response status code'],
    [
      'leads elsewhere, where the relay does not follow',
      302,
      '',
      { location: 'https://evil.example/' },
      'failed',
      'unexpected HTTP response',
    ],
    ['fails', 500, 'broken', {}, 'unavailable', 'https://id.example: it has answered 500'],
    ['is no JSON', 200, 'x', {}, 'failed', 'parsing error'],
    ['has another issuer', 200, { issuer: 'https://other.example' }, {}, 'failed', 'its issuer is https://other.example, and not'],
    ['has too many bytes', 200, 'x'.repeat(1_100_000), {}, 'unavailable', 'more than 1048576 bytes'],
  ] as const)('is refused if its answer %s', async (_, status, body, headers, failure, message) => {
    await expect(answering('https://id.example', status, body, headers).check()).rejects.toMatchObject({
      failure,
      message: expect.stringContaining(message) as string,
    })
  })

  test('cannot bring the secret of the relay into the log', async () => {
    const issuer = 'https://id.example'
    const agent = new MockAgent()
    agent.disableNetConnect()
    const headers = { 'content-type': 'application/json' }
    const metadata = { issuer, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/jwks` }
    agent.get(issuer).intercept({ path: '/.well-known/openid-configuration' }).reply(200, metadata, { headers })
    const refusal = { error: 'invalid_client', error_description: 'The secret is not hunter2' }
    agent.get(issuer).intercept({ path: '/token', method: 'POST' }).reply(400, refusal, { headers })
    const provider = createOpenIdProvider(settings, { dispatcher: () => agent })
    const { begun } = await provider.begin('https://relay.example/callback')
    const answer = new URL(`https://relay.example/callback?code=x&state=${begun.state}`)
    await expect(provider.finish(answer, begun)).rejects.toMatchObject({
      failure: 'failed',
      message: expect.stringContaining('invalid_client: The secret is not [REDACTED]') as string,
    })
  })

  test('is given up if it does not answer in time', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const guard = createProviderGuard(testConfig())
    const issuer = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`
    try {
      await expect(createOpenIdProvider({ ...settings, issuer }, guard, 200).check()).rejects.toMatchObject({ failure: 'unavailable' })
    } finally {
      await guard.close()
      silent.close()
    }
  })
})

describe('connections to the provider', () => {
  test('may lead to private addresses without RELAY_ALLOWED_PRIVATE_CIDRS, and to no metadata service', async () => {
    await using provider = await startOpenIdServer({ accounts: {} })
    provider.register([])
    const guard = createProviderGuard(testConfig({ RELAY_ALLOWED_PRIVATE_CIDRS: '' }))
    try {
      await expect(createOpenIdProvider({ ...settings, ...provider }, guard).check()).resolves.toBeUndefined()
      const metadata = createOpenIdProvider({ ...settings, issuer: 'https://169.254.169.254' }, guard)
      await expect(metadata.check()).rejects.toMatchObject({
        failure: 'unavailable',
        message: expect.stringContaining('must not reach') as string,
      })
    } finally {
      await guard.close()
    }
  })

  test('trust the public authorities only, unless the file has another', async () => {
    await using provider = await startOpenIdServer({ accounts: {} })
    provider.register([])
    const guard = createProviderGuard(testConfig())
    try {
      const untrusted = createOpenIdProvider({ ...settings, issuer: provider.issuer }, guard)
      await expect(untrusted.check()).rejects.toMatchObject({
        failure: 'unavailable',
        message: expect.stringContaining('certificate') as string,
      })
    } finally {
      await guard.close()
    }
  })

  test('pass the outgoing proxy', async () => {
    await using provider = await startOpenIdServer({ accounts: {} })
    provider.register([])
    const proxy = await startForwardProxy()
    const guard = createProviderGuard(testConfig({ RELAY_OUTBOUND_PROXY: proxy.urlWithLogin, RELAY_OUTBOUND_NO_PROXY: 'none.example' }))
    try {
      await expect(createOpenIdProvider({ ...settings, ...provider }, guard).check()).resolves.toBeUndefined()
      expect(proxy.targets).toEqual([new URL(provider.issuer).host])
    } finally {
      await guard.close()
      await proxy.stop()
    }
  })
})
