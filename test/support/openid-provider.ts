import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { Provider, type AdapterPayload, type ClientMetadata, type JWK } from 'oidc-provider'
import { createAuthority } from './certificates.ts'

/** Claims of a person, by the name with which the person signs in at the provider. */
type Accounts = Record<string, { groups?: string[]; email?: string; email_verified?: boolean; preferred_username?: string }>

export interface OpenIdServer extends AsyncDisposable {
  issuer: string
  clientId: string
  clientSecret: string
  /** PEM of the authority that has signed its certificate. */
  caCertificate: string
  /** Allows the relay to have browsers led back to these addresses. Until then, the provider answers 503. */
  register(redirectUris: string[]): void
  /** Makes the provider answer 503, until it is called with false. */
  setAway(isAway: boolean): void
  stop(): Promise<void>
}

interface ServerOptions {
  accounts: Accounts
  /** Puts every claim into the ID token. By default, only the user info endpoint has those of the scopes. */
  hasFullIdToken?: boolean
  client?: Partial<ClientMetadata>
}

// Its default prints a warning.
const createStorage = () => {
  const stored = new Map<string, AdapterPayload>()
  return (model: string) => {
    const keyOf = (id: string) => `${model} ${id}`
    return {
      upsert: async (id: string, payload: AdapterPayload) => void stored.set(keyOf(id), payload),
      find: async (id: string) => stored.get(keyOf(id)),
      findByUserCode: async () => undefined,
      findByUid: async (uid: string) => [...stored.values()].find((payload) => payload.uid === uid),
      consume: async (id: string) => {
        stored.get(keyOf(id))!.consumed = Math.floor(Date.now() / 1_000)
      },
      destroy: async (id: string) => void stored.delete(keyOf(id)),
      revokeByGrantId: async (grantId: string) => {
        for (const [key, payload] of stored) if (key.startsWith(keyOf('')) && payload.grantId === grantId) stored.delete(key)
      },
    }
  }
}

const page = (uid: string) => `<!doctype html>
<title>Example provider</title>
<form method="post" action="/interaction/${uid}">
  <label>Name <input name="account"></label>
  <button name="do" value="sign in">Sign in</button>
  <button name="do" value="cancel">Cancel</button>
</form>`

const readForm = async (request: AsyncIterable<Buffer>) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return new URLSearchParams(Buffer.concat(chunks).toString())
}

/** Starts a certified OpenID provider by TLS, on another site than the relay. Its sign-in page asks for the name of an account. */
export const startOpenIdServer = async ({ accounts, hasFullIdToken = false, client = {} }: ServerOptions): Promise<OpenIdServer> => {
  const authority = await createAuthority()
  let handle: ReturnType<Provider['callback']> | undefined
  let isAway = false
  const server = https.createServer(await authority.issue('DNS:localhost,IP:127.0.0.1'), (request, response) => {
    if (handle && !isAway) return void handle(request, response)
    response.statusCode = 503
    return void response.end('away')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `https://localhost:${(server.address() as AddressInfo).port}`
  const [clientId, clientSecret] = ['document-relay', randomBytes(24).toString('base64url')]
  const signingKey: JWK = { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }), use: 'sig' }
  const register = (redirectUris: string[]) => {
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: clientId,
          client_secret: clientSecret,
          redirect_uris: redirectUris,
          token_endpoint_auth_method: 'client_secret_post',
          id_token_signed_response_alg: 'ES256',
          ...client,
        },
      ],
      adapter: createStorage(),
      jwks: { keys: [signingKey] },
      cookies: { keys: [randomBytes(16).toString('hex')] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['preferred_username'], groups: ['groups'] },
      conformIdTokenClaims: !hasFullIdToken,
      pkce: { required: () => true },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
      findAccount: (_, id) => {
        const claims = accounts[id]
        return claims && { accountId: id, claims: () => ({ sub: id, preferred_username: id, ...claims }) }
      },
      // Grants the claims to the relay without asking for consent.
      loadExistingGrant: async (context) => {
        const { oidc } = context
        const grant = new provider.Grant({ clientId: oidc.client!.clientId, accountId: oidc.session!.accountId! })
        grant.addOIDCScope('openid email profile groups')
        await grant.save()
        return grant
      },
    })
    provider.use(async (context, next) => {
      const uid = /^\/interaction\/([\w-]+)$/.exec(context.path)?.[1]
      if (uid === undefined) return next()
      if (context.method === 'GET') {
        context.type = 'html'
        context.body = page(uid)
        return undefined
      }
      const form = await readForm(context.req)
      const isCancelled = form.get('do') === 'cancel'
      const result = isCancelled ? { error: 'access_denied' } : { login: { accountId: form.get('account') ?? '' } }
      context.respond = false
      return provider.interactionFinished(context.req, context.res, result)
    })
    handle = provider.callback()
  }

  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
    await authority.remove()
  }
  return {
    issuer,
    clientId,
    clientSecret,
    caCertificate: authority.certificate,
    register,
    setAway: (value) => {
      isAway = value
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
