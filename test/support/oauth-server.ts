import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { Provider, type AdapterPayload, type JWK } from 'oidc-provider'

/** The parts of a request for a token that tests read. */
interface TokenRequest {
  status: number
  authorization: string | undefined
  form: Record<string, string>
}

export interface OAuthServer extends AsyncDisposable {
  tokenUrl: string
  /** Every request for a token so far. */
  requests: TokenRequest[]
  /** Returns true if a header of the form `Bearer TOKEN` has a token that this server has issued, and that is still valid. */
  accepts(authorization: string | undefined): Promise<boolean>
  /** Revokes the token of a header of that form. */
  revoke(authorization: string | undefined): Promise<void>
  stop(): Promise<void>
}

interface Client {
  id: string
  secret?: string
  authMethod?: 'client_secret_basic' | 'client_secret_post'
  /** PEM. The client proves that it has the key, instead of a secret, in the way of Entra (PS256). */
  certificate?: string
}

const publicKeyOf = (certificate: string): JWK => ({
  ...new X509Certificate(certificate).publicKey.export({ format: 'jwk' }),
  use: 'sig',
})

// Its defaults print a warning each.
const storage = () => {
  const stored = new Map<string, AdapterPayload>()
  return (model: string) => {
    const keyOf = (id: string) => `${model} ${id}`
    return {
      upsert: async (id: string, payload: AdapterPayload) => void stored.set(keyOf(id), payload),
      find: async (id: string) => stored.get(keyOf(id)),
      findByUserCode: async () => undefined,
      findByUid: async () => undefined,
      consume: async () => {},
      destroy: async (id: string) => void stored.delete(keyOf(id)),
      revokeByGrantId: async () => {},
    }
  }
}
const signingKey = (): JWK => ({ ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }), use: 'sig' })

/** The one API for which the server issues tokens. */
const api = 'https://api.example'

/** Starts a certified OpenID provider that issues tokens for the scope `documents` to clients, by TLS. */
export const startOAuthServer = async (
  tls: { key: string; cert: string },
  clients: Client[],
  tokenPath = '/token',
): Promise<OAuthServer> => {
  const provider = new Provider('https://127.0.0.1', {
    routes: { token: tokenPath },
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    enabledJWA: { clientAuthSigningAlgValues: ['PS256'] },
    clients: clients.map(({ id, secret, certificate, authMethod = 'client_secret_basic' }) => ({
      client_id: id,
      ...(certificate === undefined ? { client_secret: secret } : { jwks: { keys: [publicKeyOf(certificate)] } }),
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
      token_endpoint_auth_method: certificate === undefined ? authMethod : 'private_key_jwt',
      scope: 'documents',
      id_token_signed_response_alg: 'ES256',
    })),
    adapter: storage(),
    jwks: { keys: [signingKey()] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    scopes: ['documents'],
    extraParams: ['audience'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => api,
        getResourceServerInfo: () => ({ scope: 'documents', accessTokenFormat: 'opaque', accessTokenTTL: 3_600 }),
      },
    },
    ttl: { ClientCredentials: 3_600 },
  })
  const requests: TokenRequest[] = []
  provider.use(async (context, next) => {
    await next()
    if (context.path !== tokenPath) return
    const { body = {} } = (context as unknown as { oidc?: { body?: Record<string, string> } }).oidc ?? {}
    requests.push({ status: context.status, authorization: context.get('authorization') || undefined, form: { ...body } })
  })
  const handle = provider.callback()
  const server = https.createServer(tls, (request, response) => void handle(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const find = (authorization = '') => provider.ClientCredentials.find(authorization.replace(/^Bearer /, ''))
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    tokenUrl: `https://127.0.0.1:${port}${tokenPath}`,
    requests,
    accepts: async (authorization) => (await find(authorization))?.isValid ?? false,
    revoke: async (authorization) => {
      const token = await find(authorization)
      await token?.destroy()
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
