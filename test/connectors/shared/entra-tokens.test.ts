import { inspect } from 'node:util'
import { z } from 'zod'
import { createEntraTokens, entraCredentials, type EntraPrincipal } from '../../../src/connectors/shared/entra-tokens.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startDouble, type DoubleResponse } from '../../support/double.ts'
import { createEntraDouble } from '../../support/entra-double.ts'
import { contextOf, failure } from '../payloads.ts'

const application = {
  tenantId: 'contoso.example',
  clientId: 'client-1',
  clientSecret: 'the-secret',
  scope: 'https://graph.example/.default',
}
const path = `POST /${application.tenantId}/oauth2/v2.0/token`

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
const authority = await createAuthority()
const entra = createEntraDouble(application)
const double = await startDouble(
  await authority.issue('IP:127.0.0.1'),
  async (request) => (await entra.answer(request)) ?? { status: 404, json: { error: 'not in the double' } },
)
beforeEach(() => {
  double.requests.length = 0
  double.faults.length = 0
})
afterAll(async () => {
  await outbound.close()
  await double.stop()
  await authority.remove()
})

const principal = (overrides: Partial<EntraPrincipal> = {}): EntraPrincipal => ({
  ...application,
  authorityHost: `https://127.0.0.1:${double.port}`,
  ...overrides,
})
const context = (overrides: Parameters<typeof contextOf>[1] = {}) => ({
  ...contextOf(outbound, overrides),
  caCertificate: authority.certificate,
})

describe('tokens of Entra, against a double', () => {
  test('a token needs one request, and is used again until it expires', async () => {
    const tokens = createEntraTokens()
    const first = await tokens.get(principal(), context())
    expect(first.expiresAt.getTime()).toBeGreaterThan(Date.now() + 3_500_000)
    expect(await tokens.get(principal(), context())).toEqual(first)
    expect(double.requests).toEqual([path])

    tokens.invalidate(principal())
    expect((await tokens.get(principal(), context())).token).not.toBe(first.token)
  })

  test('a cached token is not given to credentials that differ in anything, such as those of another workspace', async () => {
    const tokens = createEntraTokens()
    await tokens.get(principal(), context())
    for (const other of [{ clientSecret: 'guessed' }, { clientId: 'client-2' }, { tenantId: 'elsewhere.example' }]) {
      expect(await failure(tokens.get(principal(other), context()))).toMatchObject({ code: 'credentials_refused' })
    }
    expect(double.requests).toHaveLength(4)
  })

  test('a token that expires within minutes is not cached', async () => {
    const tokens = createEntraTokens()
    const response: DoubleResponse = { status: 200, json: { token_type: 'Bearer', expires_in: 200, access_token: 'short-lived' } }
    double.faults.push({ match: /token$/, response, times: 1 })
    expect((await tokens.get(principal(), context())).token).toBe('short-lived')
    expect((await tokens.get(principal(), context())).token).not.toBe('short-lived')
  })

  test.each([
    ['clientSecret', 'wrong-secret', /client_secret is wrong.*AADSTS7000215/],
    ['clientId', 'client-2', /client_id is no application.*AADSTS700016/],
    ['tenantId', 'elsewhere.example', /tenant_id is no tenant.*AADSTS90002/],
  ])('a wrong %s is a permanent failure, and the message says what to correct', async (key, value, message) => {
    const error = await failure(createEntraTokens().get(principal({ [key]: value }), context()))
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true, message: expect.stringMatching(message) as string })
    expect(JSON.stringify([error.message, error.answer])).not.toMatch(/the-secret|wrong-secret/)
    expect(double.requests).toHaveLength(1)
  })

  test.each([
    [429, { 'retry-after': '7' }, 7_000],
    [503, {}, undefined],
  ])(
    'status %i can be retried, and is not retried by the token request itself',
    async (status, headers: Record<string, string>, retryAfterMs) => {
      double.faults.push({ match: /token$/, response: { status, headers }, times: 9 })
      const error = await failure(createEntraTokens().get(principal(), context()))
      expect(error).toMatchObject({ code: `http_${status}`, permanent: false, retryAfterMs })
      expect(double.requests).toHaveLength(1)
    },
  )

  test('a lifetime in text, which some servers send, counts like a number', async () => {
    const response: DoubleResponse = { status: 200, json: { token_type: 'Bearer', expires_in: '3599', access_token: 'with-text' } }
    double.faults.push({ match: /token$/, response, times: 1 })
    const tokens = createEntraTokens()
    expect(await tokens.get(principal(), context())).toMatchObject({ token: 'with-text' })
    expect(await tokens.get(principal(), context())).toMatchObject({ token: 'with-text' })
  })

  test.each([
    [{ hello: 'world' }],
    [{ access_token: 'without-lifetime' }],
    [{ access_token: '', expires_in: 3_599 }],
    [{ access_token: ['in-a-list'], expires_in: 3_599 }],
    [{ access_token: 'with-other-lifetime', expires_in: 'soon' }],
  ])('a response without a token and its lifetime is reported as such: %j', async (json) => {
    double.faults.push({ match: /token$/, response: { status: 200, json }, times: 1 })
    const error = await failure(createEntraTokens().get(principal(), context()))
    expect(error).toMatchObject({ code: 'token_unreadable', permanent: false, message: expect.stringContaining('127.0.0.1') as string })
    expect(inspect(error)).not.toMatch(/the-secret|without-lifetime|in-a-list|with-other-lifetime/)
  })

  test('the request uses the outbound guard, and trusts only the authority of the destination', async () => {
    const strict = createOutboundGuard({ allowedCidrs: [] })
    expect(await failure(createEntraTokens().get(principal(), { ...context(), outbound: strict }))).toMatchObject({
      code: 'blocked_address',
    })
    await strict.close()

    expect(await failure(createEntraTokens().get(principal(), contextOf(outbound)))).toMatchObject({ code: 'certificate_refused' })
    expect(double.requests).toEqual([])
  })

  test('the request ends with its attempt', async () => {
    const cancelled = new AbortController()
    const hanging = await startDouble(await authority.issue('IP:127.0.0.1'), () => new Promise(() => {}))
    const token = createEntraTokens().get(
      principal({ authorityHost: `https://127.0.0.1:${hanging.port}` }),
      context({ signal: cancelled.signal }),
    )
    setTimeout(() => cancelled.abort(new Error('cancelled')), 100)
    await expect(token).rejects.toThrow('cancelled')
    await hanging.stop()
  })
})

test.each([
  [{}, true],
  [{ tenant_id: '11111111-2222-3333-4444-555555555555' }, true],
  [{ tenant_id: 'common' }, false],
  [{ tenant_id: 'contoso.example/oauth2' }, false],
  [{ client_id: 'a b' }, false],
  [{ client_secret: 'with a blank' }, false],
])('credentials with %j are valid: %s', (overrides, fits) => {
  const credentials = { tenant_id: 'contoso.example', client_id: 'client-1', client_secret: 'the~secret', ...overrides }
  expect(z.strictObject(entraCredentials).safeParse(credentials).success).toBe(fits)
})
