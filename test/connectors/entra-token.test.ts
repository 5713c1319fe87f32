import { z } from 'zod'
import { createEntraTokens, entraCredentials, type EntraPrincipal } from '../../src/connectors/entra-token.ts'
import { createOutboundGuard, type OutboundGuard } from '../../src/security/outbound.ts'
import { createAuthority, type Authority } from '../support/certificates.ts'
import { startDouble, type Double, type Said } from '../support/double.ts'
import { createEntraDouble } from '../support/entra-double.ts'
import { contextOf, failure } from './parcels.ts'

const application = {
  tenantId: 'contoso.example',
  clientId: 'client-1',
  clientSecret: 'the-secret',
  scope: 'https://graph.example/.default',
}
const path = `POST /${application.tenantId}/oauth2/v2.0/token`
let authority: Authority
let double: Double
let outbound: OutboundGuard

beforeAll(async () => {
  outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
  authority = await createAuthority()
  const entra = createEntraDouble(application)
  double = await startDouble(
    await authority.issue('IP:127.0.0.1'),
    async (asked) => (await entra.answer(asked)) ?? { status: 404, json: { error: 'not in the double' } },
  )
})
beforeEach(() => {
  double.asked.length = 0
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

describe('tokens of Entra, by a double of it', () => {
  test('a token takes one request, and is used again for as long as it lives', async () => {
    const tokens = createEntraTokens()
    const first = await tokens.take(principal(), context())
    expect(first.expiresAt.getTime()).toBeGreaterThan(Date.now() + 3_500_000)
    expect(await tokens.take(principal(), context())).toEqual(first)
    expect(double.asked).toEqual([path])

    tokens.forget(principal())
    expect((await tokens.take(principal(), context())).token).not.toBe(first.token)
  })

  test('a token that ends within minutes is not kept', async () => {
    const tokens = createEntraTokens()
    const say: Said = { status: 200, json: { token_type: 'Bearer', expires_in: 200, access_token: 'short-lived' } }
    double.faults.push({ match: /token$/, say, times: 1 })
    expect((await tokens.take(principal(), context())).token).toBe('short-lived')
    expect((await tokens.take(principal(), context())).token).not.toBe('short-lived')
  })

  test.each([
    ['clientSecret', 'wrong-secret', /client_secret is wrong.*AADSTS7000215/],
    ['clientId', 'client-2', /client_id names no application.*AADSTS700016/],
    ['tenantId', 'elsewhere.example', /tenant_id names no tenant.*AADSTS90002/],
  ])('a wrong %s is final, and the message tells what to correct', async (key, value, message) => {
    const error = await failure(createEntraTokens().take(principal({ [key]: value }), context()))
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true, message: expect.stringMatching(message) as string })
    expect(JSON.stringify([error.message, error.answer])).not.toMatch(/the-secret|wrong-secret/)
    expect(double.asked).toHaveLength(1)
  })

  test.each([
    [429, { 'retry-after': '7' }, 7_000],
    [503, {}, undefined],
  ])('%i is worth another try, which is not ours to make', async (status, headers: Record<string, string>, retryAfterMs) => {
    double.faults.push({ match: /token$/, say: { status, headers }, times: 9 })
    const error = await failure(createEntraTokens().take(principal(), context()))
    expect(error).toMatchObject({ code: `http_${status}`, permanent: false, retryAfterMs })
    expect(double.asked).toHaveLength(1)
  })

  test('an answer that is no token is told as such', async () => {
    double.faults.push({ match: /token$/, say: { status: 200, json: { hello: 'world' } }, times: 1 })
    expect(await failure(createEntraTokens().take(principal(), context()))).toMatchObject({ code: 'token_unreadable', permanent: false })
  })

  test('goes no other way out than the guarded one, and trusts nobody but the authority named', async () => {
    const strict = createOutboundGuard({ allowedCidrs: [] })
    expect(await failure(createEntraTokens().take(principal(), { ...context(), outbound: strict }))).toMatchObject({
      code: 'blocked_address',
    })
    await strict.close()

    expect(await failure(createEntraTokens().take(principal(), contextOf(outbound)))).toMatchObject({ code: 'certificate_refused' })
    expect(double.asked).toEqual([])
  })

  test('ends with the attempt it is for', async () => {
    const cancelled = new AbortController()
    const hanging = await startDouble(await authority.issue('IP:127.0.0.1'), () => new Promise(() => {}))
    const taken = createEntraTokens().take(
      principal({ authorityHost: `https://127.0.0.1:${hanging.port}` }),
      context({ signal: cancelled.signal }),
    )
    setTimeout(() => cancelled.abort(new Error('cancelled')), 100)
    await expect(taken).rejects.toThrow('cancelled')
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
])('credentials with %j fit: %s', (overrides, fits) => {
  const credentials = { tenant_id: 'contoso.example', client_id: 'client-1', client_secret: 'the~secret', ...overrides }
  expect(z.strictObject(entraCredentials).safeParse(credentials).success).toBe(fits)
})
