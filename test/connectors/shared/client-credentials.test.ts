import { inspect } from 'node:util'
import { createTokenCache } from '../../../src/connectors/shared/access-tokens.ts'
import { createClientTokens, type ClientPrincipal } from '../../../src/connectors/shared/client-credentials.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startDouble, type DoubleResponse } from '../../support/double.ts'
import { startOAuthServer } from '../../support/oauth-server.ts'
import { contextOf, failure } from '../payloads.ts'

const authority = await createAuthority()
const certificate = await authority.issue('IP:127.0.0.1')
const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] })
// Characters that differ in a form and in an address.
const secret = 'a+b c:d/e%20'
const server = await startOAuthServer(certificate, [
  { id: 'basic client:1', secret },
  { id: 'post', secret, authMethod: 'client_secret_post' },
])
beforeEach(() => {
  server.requests.length = 0
})
afterAll(async () => {
  await outbound.close()
  await server.stop()
  await authority.remove()
})

const principal = (overrides: Partial<ClientPrincipal> = {}): ClientPrincipal => ({
  tokenUrl: server.tokenUrl,
  clientId: 'basic client:1',
  clientSecret: secret,
  authMethod: 'client_secret_basic',
  scope: 'documents',
  audience: undefined,
  ...overrides,
})
const context = () => ({ ...contextOf(outbound), caCertificate: authority.certificate })
const tokensOf = () => createClientTokens(createTokenCache())

describe('tokens of an OAuth2 server', () => {
  test.each<[Partial<ClientPrincipal>]>([[{}], [{ clientId: 'post', authMethod: 'client_secret_post' }]])(
    'are issued to a client that identifies itself with %j, for many attempts',
    async (overrides) => {
      const tokens = tokensOf()
      const { token } = await tokens.get(principal(overrides), context())
      expect(await server.accepts(`Bearer ${token}`)).toBe(true)
      expect((await tokens.get(principal(overrides), context())).token).toBe(token)
      expect(server.requests).toHaveLength(1)
      const [{ authorization, form }] = server.requests as [(typeof server.requests)[number]]
      expect([authorization === undefined, 'client_secret' in form]).toEqual(overrides.authMethod ? [true, true] : [false, false])
    },
  )

  test('are asked for with scope and audience', async () => {
    await tokensOf().get(principal({ audience: 'https://dms.example' }), context())
    expect(server.requests[0]?.form).toEqual({ grant_type: 'client_credentials', scope: 'documents', audience: 'https://dms.example' })
    await tokensOf().get(principal({ scope: undefined }), context())
    expect(server.requests[1]?.form).toEqual({ grant_type: 'client_credentials' })
  })

  test.each<[Partial<ClientPrincipal>, RegExp]>([
    [{ clientSecret: 'wrong-secret' }, /correct client_id, client_secret and token_auth_method \(invalid_client/],
    [{ clientId: 'nobody' }, /correct client_id/],
  ])('are refused to a client with %j, and the message says what to correct', async (overrides, message) => {
    const error = await failure(tokensOf().get(principal(overrides), context()))
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true, message: expect.stringMatching(message) as string })
    expect(inspect(error)).not.toContain('wrong-secret')
  })

  test('are asked for through the outbound guard, from a server of the authority that the credentials name', async () => {
    const strict = createOutboundGuard({ allowedCidrs: [] })
    const blocked = await failure(tokensOf().get(principal(), { ...context(), outbound: strict }))
    expect(blocked).toMatchObject({ code: 'blocked_address', permanent: true })
    await strict.close()
    const untrusted = await failure(tokensOf().get(principal(), contextOf(outbound)))
    expect(untrusted).toMatchObject({
      code: 'certificate_refused',
      message: expect.stringContaining(`no token from ${new URL(server.tokenUrl).host}`) as string,
    })
    expect(server.requests).toEqual([])
  })

  const answering = async (response: DoubleResponse, act: (tokenUrl: string) => Promise<void>) => {
    const double = await startDouble(certificate, async () => response)
    try {
      await act(`https://127.0.0.1:${double.port}/token`)
    } finally {
      await double.stop()
    }
    return double.requests.length
  }

  test('without a lifetime are used once', async () => {
    const requests = await answering({ status: 200, json: { access_token: 'once' } }, async (tokenUrl) => {
      const tokens = tokensOf()
      for (let asked = 0; asked < 2; asked += 1) expect((await tokens.get(principal({ tokenUrl }), context())).token).toBe('once')
    })
    expect(requests).toBe(2)
  })

  test.each([
    [{ access_token: 'with\r\nx-injected: 1', expires_in: 60 }],
    [{ access_token: 'of-another-type', expires_in: 60, token_type: 'DPoP' }],
  ])('that cannot be sent as a bearer token are refused: %j', async (json) => {
    await answering({ status: 200, json }, async (tokenUrl) => {
      const error = await failure(tokensOf().get(principal({ tokenUrl }), context()))
      expect(error).toMatchObject({ code: 'token_unreadable', permanent: false })
      expect(inspect(error)).not.toMatch(/injected|of-another-type/)
    })
  })

  test.each([
    ['invalid_scope', 'correct scope'],
    ['invalid_target', 'correct audience'],
    ['unauthorized_client', 'let the client use the client credentials grant'],
    ['unheard_of', 'correct token_url, client_id and client_secret'],
  ])('that are refused with %s have a message that says what to correct', async (code, correction) => {
    await answering({ status: 400, json: { error: code, error_description: 'the server says so' } }, async (tokenUrl) => {
      const error = await failure(tokensOf().get(principal({ tokenUrl }), context()))
      expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
      expect(error.message).toContain(`issued no token: ${correction} (${code}: the server says so)`)
    })
  })

  test('of a server that redirects are not followed, and one that is busy is asked again later', async () => {
    await answering({ status: 302, headers: { location: 'https://elsewhere.example/' } }, async (tokenUrl) => {
      expect(await failure(tokensOf().get(principal({ tokenUrl }), context()))).toMatchObject({ code: 'http_302', permanent: false })
    })
    await answering({ status: 503, headers: { 'retry-after': '7' } }, async (tokenUrl) => {
      const error = await failure(tokensOf().get(principal({ tokenUrl }), context()))
      expect(error).toMatchObject({ code: 'http_503', permanent: false, retryAfterMs: 7_000 })
    })
  })
})
