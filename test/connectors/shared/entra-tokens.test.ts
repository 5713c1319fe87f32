import { inspect } from 'node:util'
import { z } from 'zod'
import { createTokenCache } from '../../../src/connectors/shared/access-tokens.ts'
import { createEntraTokens, entraCredentials, type EntraPrincipal } from '../../../src/connectors/shared/entra-tokens.ts'
import { createOutboundGuard } from '../../../src/security/outbound.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startDouble, type DoubleResponse } from '../../support/double.ts'
import { createEntraDouble } from '../../support/entra-double.ts'
import { startOAuthServer } from '../../support/oauth-server.ts'
import { until } from '../../support/until.ts'
import { contextOf, failure, later } from '../payloads.ts'

const application = {
  tenantId: 'contoso.example',
  clientId: 'client-1',
  clientSecret: 'the-secret',
  scope: 'https://graph.example/.default',
}
const path = `POST /${application.tenantId}/oauth2/v2.0/token`

const outbound = createOutboundGuard({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
const authority = await createAuthority()
const { cert, key } = await authority.issueClient(30, ['rsa:2048'])
const entra = createEntraDouble({ ...application, certificate: cert, federatedToken: 'federated.token' })
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

const { tenantId, clientId, scope } = application
const principal = (overrides: Partial<EntraPrincipal> = {}): EntraPrincipal => ({
  tenantId,
  clientId,
  scope,
  proof: { secret: application.clientSecret },
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
    for (const other of [{ proof: { secret: 'guessed' } }, { clientId: 'client-2' }, { tenantId: 'elsewhere.example' }]) {
      expect(await failure(tokens.get(principal(other), context()))).toMatchObject({ code: 'credentials_refused' })
    }
    expect(double.requests).toHaveLength(4)
  })

  test('a token that lives for minutes is used for half of them, and then renewed', async () => {
    const tokens = createEntraTokens()
    const response: DoubleResponse = { status: 200, json: { token_type: 'Bearer', expires_in: 300, access_token: 'short-lived' } }
    double.faults.push({ match: /token$/, response, times: 1 })
    expect((await tokens.get(principal(), context())).token).toBe('short-lived')
    expect((await later(2, () => tokens.get(principal(), context()))).token).toBe('short-lived')
    expect((await later(3, () => tokens.get(principal(), context()))).token).not.toBe('short-lived')
    expect(double.requests).toHaveLength(2)
  })

  test('a token that lives for an hour is renewed five minutes before its end', async () => {
    const tokens = createEntraTokens()
    const { token } = await tokens.get(principal(), context())
    expect((await later(54, () => tokens.get(principal(), context()))).token).toBe(token)
    expect((await later(56, () => tokens.get(principal(), context()))).token).not.toBe(token)
  })

  test('attempts that need a token at the same time share one request, and its failure', async () => {
    const tokens = createEntraTokens()
    const shared = await Promise.all(Array.from({ length: 50 }, () => tokens.get(principal(), context())))
    expect(new Set(shared.map(({ token }) => token)).size).toBe(1)
    expect(double.requests).toEqual([path])

    tokens.invalidate(principal())
    double.faults.push({ match: /token$/, response: { status: 503 }, times: 1 })
    const failed = await Promise.all(Array.from({ length: 50 }, () => failure(tokens.get(principal(), context()))))
    expect(new Set(failed.map(({ code }) => code))).toEqual(new Set(['http_503']))
    expect(double.requests).toEqual([path, path])

    // A failure is not kept.
    await tokens.get(principal(), context())
    expect(double.requests).toHaveLength(3)
  })

  test('a token that was refused is forgotten, unless it has been renewed since', async () => {
    const tokens = createEntraTokens()
    const { token } = await tokens.get(principal(), context())
    tokens.invalidate(principal(), token)
    const renewed = await tokens.get(principal(), context())
    tokens.invalidate(principal(), token)
    expect(await tokens.get(principal(), context())).toEqual(renewed)
    expect(double.requests).toHaveLength(2)
  })

  test('kinds that share a cache share the tokens of a principal', async () => {
    const cache = createTokenCache()
    await createEntraTokens(cache).get(principal(), context())
    await createEntraTokens(cache).get(principal(), context())
    expect(double.requests).toEqual([path])
  })

  test.each([
    ['proof', { secret: 'wrong-secret' }, /client_secret is wrong.*AADSTS7000215/],
    ['clientId', 'client-2', /client_id is no application.*AADSTS700016/],
    ['tenantId', 'elsewhere.example', /tenant_id is no tenant.*AADSTS90002/],
  ])('a wrong %s is a permanent failure, and the message says what to correct', async (part, value, message) => {
    const error = await failure(createEntraTokens().get(principal({ [part]: value }), context()))
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

  test('a request by certificate is signed with its key, and no secret is sent', async () => {
    const { token } = await createEntraTokens().get(principal({ proof: { certificate: cert, key } }), context())
    expect(token).toMatch(/^entra-token-/)
  })

  test('a certificate that is not registered for the application is refused, and the message says so', async () => {
    const other = await authority.issueClient(30, ['rsa:2048'])
    const proofs = [
      { certificate: other.cert, key: other.key },
      { certificate: other.cert, key },
    ]
    for (const proof of proofs) {
      const error = await failure(createEntraTokens().get(principal({ proof }), context()))
      const message = /client_certificate is not registered for this application.*AADSTS700027/
      expect(error).toMatchObject({ code: 'credentials_refused', permanent: true, message: expect.stringMatching(message) as string })
      expect(inspect(error)).not.toContain(other.key.split('\n')[1])
    }
  })

  test.each<[string, DoubleResponse]>([
    ['a page of a proxy', { status: 403, text: '<html>Blocked</html>' }],
    ['a refusal without a reason', { status: 400, json: {} }],
    ['a clock that differs', { status: 401, json: { error: 'invalid_client', error_description: 'AADSTS700024: Not within its time.' } }],
    ['temporarily_unavailable', { status: 400, json: { error: 'temporarily_unavailable' } }],
    [
      'a fault that Entra calls transient',
      { status: 400, json: { error: 'invalid_request', error_description: 'AADSTS90033: Transient.' } },
    ],
  ])('%s is no final error', async (_what, response) => {
    double.faults.push({ match: /token$/, response, times: 1 })
    const error = await failure(createEntraTokens().get(principal(), context()))
    expect(error).toMatchObject({ code: `http_${response.status}`, permanent: false })
  })

  test('a federated token is read for each request, and shown in no message', async () => {
    let token = 'federated.wrong'
    const proof = { tokenFile: '/var/run/secrets/azure/token', workspace: 'acme/invoices' }
    const paths: string[] = []
    const read = async (tokenPath: string) => {
      paths.push(tokenPath)
      return token
    }
    const error = await failure(createEntraTokens(undefined, read).get(principal({ proof }), context()))
    expect(error).toMatchObject({
      code: 'credentials_refused',
      message: expect.stringMatching(/no federated credential.*AADSTS700213/) as string,
    })
    expect(JSON.stringify([error.message, error.answer])).not.toContain(token)
    token = 'federated.token'
    expect((await createEntraTokens(undefined, read).get(principal({ proof }), context())).token).toMatch(/^entra-token-/)
    expect(paths).toEqual([proof.tokenFile, proof.tokenFile])
  })

  test('without allowed directories, no file is read', async () => {
    const error = await failure(
      createEntraTokens().get(principal({ proof: { tokenFile: '/etc/hostname', workspace: 'acme/invoices' } }), context()),
    )
    expect(error).toMatchObject({ code: 'credentials_refused', permanent: true })
    expect(double.requests).toEqual([])
  })

  test('an independent server accepts the signature (RFC 7523)', async () => {
    const tokenPath = `/${tenantId}/oauth2/v2.0/token`
    const server = await startOAuthServer(await authority.issue('IP:127.0.0.1'), [{ id: clientId, certificate: cert }], tokenPath)
    const authorityHost = new URL(server.tokenUrl).origin
    const signed = principal({ authorityHost, scope: 'documents', proof: { certificate: cert, key } })
    const { token } = await createEntraTokens().get(signed, context())
    expect(await server.accepts(`Bearer ${token}`)).toBe(true)
    expect(server.requests).toEqual([expect.objectContaining({ status: 200, authorization: undefined })])
    await server.stop()
  })

  const startHanging = async () => {
    const ended = Promise.withResolvers<void>()
    const hanging = await startDouble(await authority.issue('IP:127.0.0.1'), ({ body }) => {
      body.socket.once('close', () => ended.resolve())
      return new Promise(() => {})
    })
    return { ...hanging, ended: ended.promise, principal: principal({ authorityHost: `https://127.0.0.1:${hanging.port}` }) }
  }

  test('a request ends with the last attempt that waits for it', async () => {
    const hanging = await startHanging()
    const tokens = createEntraTokens()
    const attempts = [new AbortController(), new AbortController()] as const
    const [first, second] = attempts.map(({ signal }) => tokens.get(hanging.principal, context({ signal })))
    await until('the request has arrived', () => hanging.requests.length === 1)

    attempts[0].abort(new Error('first cancelled'))
    await expect(first).rejects.toThrow('first cancelled')
    const third = tokens.get(hanging.principal, context({ signal: attempts[1].signal }))
    attempts[1].abort(new Error('second cancelled'))
    await expect(second).rejects.toThrow('second cancelled')
    await expect(third).rejects.toThrow('second cancelled')

    await hanging.ended
    expect(hanging.requests).toHaveLength(1)
    await hanging.stop()
  })

  test('an issuer that says nothing is not waited for longer than the idle timeout', async () => {
    const hanging = await startHanging()
    const error = await failure(createEntraTokens().get(hanging.principal, context({ idleTimeoutMs: 300 })))
    expect(error).toMatchObject({ code: 'timeout', permanent: false })
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
