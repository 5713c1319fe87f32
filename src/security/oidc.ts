import * as oidc from 'openid-client'
import { request } from 'undici'
import { messageOf } from '../base/errors.ts'
import { withoutSecrets } from '../base/secrets.ts'
import { plainText } from '../base/text.ts'
import { allowableCidrs } from './address-filter.ts'
import { openOutboundGuard, type Outbound, type OutboundConfig, type OutboundGuard } from './outbound.ts'

/** What identifies the relay at an OpenID provider. */
export interface ProviderSettings {
  issuer: string
  clientId: string
  clientSecret: string
  scopes: readonly string[]
  /** The claim that decides what a person may do. */
  claim: string
  /** PEM. Trusted instead of the public authorities. */
  caCertificate?: string | undefined
}

/** What is known of a person who has signed in, as the provider has said it. */
export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string }

/** What the answer of the provider is checked against. It stays with the browser, sealed. */
export interface BegunSignIn {
  state: string
  nonce: string
  codeVerifier: string
}

/**
 * Why a sign-in has failed, as the sign-in page explains it. `denied`: the provider or the person has refused it. `expired`: it took too
 * long, or was not begun in this browser. `mismatch`: the answer belongs to another sign-in. `no_access`: no claim opens a workspace.
 * `unavailable`: the provider does not answer. `failed`: anything else, which the log explains.
 */
export type SignInFailure = 'denied' | 'expired' | 'mismatch' | 'no_access' | 'unavailable' | 'failed'

/** A sign-in that has failed. Its message is for the log, and contains no token. */
export class SignInError extends Error {
  readonly failure: SignInFailure

  constructor(failure: SignInFailure, message: string, options: { cause?: unknown } = {}) {
    super(plainText(message, reasonMaxCharacters), options)
    this.name = 'SignInError'
    this.failure = failure
  }
}

/** Path to which the provider leads browsers back. */
export const callbackPath = '/console/sign-in/callback'

/** Returns the redirect URI, which has to be registered at the provider. @param baseUrl of the relay, as browsers see it */
export const redirectUriOf = (baseUrl: string): string => `${baseUrl.replace(/\/+$/, '')}${callbackPath}`

class ProviderUnreachable extends Error {}

// For each request to the provider, from the resolution of its name to the end of the answer.
const usualTimeoutMs = 10_000
// A token with 200 groups has about 20 kB.
const answerMaxBytes = 1024 * 1024
// Keys are read again whenever a token names an unknown one. Addresses of a provider change once in years.
const discoveryTtlMs = 3_600_000
const reasonMaxCharacters = 500

/**
 * Creates the guard of connections to the provider. It allows private addresses: the operator of the installation names the provider, and
 * should not have to open its network to the destinations of all workspaces.
 */
export const createProviderGuard = (config: Omit<OutboundConfig, 'RELAY_ALLOWED_PRIVATE_CIDRS'>): OutboundGuard =>
  openOutboundGuard({ ...config, RELAY_ALLOWED_PRIVATE_CIDRS: allowableCidrs })

const readLimited = async (body: AsyncIterable<Buffer>): Promise<Buffer> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > answerMaxBytes) throw new Error(`the answer has more than ${answerMaxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const withoutBody = new Set([204, 205, 304])

/** Sends the requests of the OpenID client through the guard, without following redirects. */
const createSend =
  (outbound: Pick<Outbound, 'dispatcher'>, caCertificate: string | undefined, timeoutMs: number): oidc.CustomFetch =>
  async (url, { method, headers, body, signal }) => {
    try {
      const response = await request(url, {
        method: method as 'GET' | 'POST',
        headers,
        body: typeof body === 'string' || body instanceof URLSearchParams ? body.toString() : null,
        ...(signal && { signal }),
        dispatcher: outbound.dispatcher({ connectTimeoutMs: timeoutMs, caCertificate }),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      })
      const bytes = await readLimited(response.body)
      const { statusCode: status } = response
      if (status >= 500) throw new Error(`it has answered ${status}`)
      const sent = Object.entries(response.headers).flatMap(([name, values]) =>
        [values ?? []].flat().map((value): [string, string] => [name, value]),
      )
      return new Response(withoutBody.has(status) ? null : new Uint8Array(bytes), { status, headers: sent })
    } catch (thrown) {
      throw new ProviderUnreachable(`${new URL(url).origin}: ${messageOf(thrown)}`, { cause: thrown })
    }
  }

/** Providers that name no method accept the one that every provider has to accept (RFC 6749, 2.3.1). */
const clientAuth = (secret: string): oidc.ClientAuth => {
  const [post, basic] = [oidc.ClientSecretPost(secret), oidc.ClientSecretBasic(secret)]
  return (server, ...rest) => (server.token_endpoint_auth_methods_supported?.includes('client_secret_post') ? post : basic)(server, ...rest)
}

const causesOf = (thrown: unknown): unknown[] => (thrown instanceof Error ? [thrown, ...causesOf(thrown.cause)] : [])

/** Returns the messages of an error and of its causes. The cause of some errors is an answer with tokens, which is left out. */
const reasonOf = (thrown: unknown): string =>
  causesOf(thrown)
    .map((cause) => {
      const { error, error_description: description } = cause as { error?: unknown; error_description?: unknown }
      return [messageOf(cause), ...[error, description].filter((each) => typeof each === 'string')].join(': ')
    })
    .join(': ')

const failureOf = (thrown: unknown): SignInFailure => {
  if (causesOf(thrown).some((cause) => cause instanceof ProviderUnreachable)) return 'unavailable'
  if (thrown instanceof oidc.ClientError && thrown.code === 'OAUTH_TIMEOUT') return 'unavailable'
  if (thrown instanceof oidc.AuthorizationResponseError) {
    if (thrown.error === 'access_denied') return 'denied'
    return ['server_error', 'temporarily_unavailable'].includes(thrown.error) ? 'unavailable' : 'failed'
  }
  // The code was used before, or has expired.
  return thrown instanceof oidc.ResponseBodyError && thrown.error === 'invalid_grant' ? 'expired' : 'failed'
}

const hrefOf = (text: string) => (URL.canParse(text) ? new URL(text).href : text)

/**
 * Creates the client of an OpenID provider: authorization code with PKCE. The provider is discovered at the first sign-in, so that the
 * relay starts without it.
 */
export const createOpenIdProvider = (
  { issuer, clientId, clientSecret, scopes, claim, caCertificate }: ProviderSettings,
  outbound: Pick<Outbound, 'dispatcher'>,
  timeoutMs = usualTimeoutMs,
) => {
  const send = createSend(outbound, caCertificate, timeoutMs)
  let known: { configuration: oidc.Configuration; until: number } | undefined
  let running: Promise<oidc.Configuration> | undefined

  const otherIssuer = (stated: string, cause?: unknown) =>
    new SignInError('failed', `the provider says that its issuer is ${stated}, and not ${issuer}`, { cause })

  const discover = async (): Promise<oidc.Configuration> => {
    const options: oidc.DiscoveryRequestOptions = {
      [oidc.customFetch]: send,
      timeout: timeoutMs / 1_000,
      // The token comes from the provider by TLS. Its signature is checked as well, because a proxy may end TLS.
      execute: [oidc.enableNonRepudiationChecks],
    }
    const discovering = oidc.discovery(new URL(issuer), clientId, {}, clientAuth(clientSecret), options)
    const configuration = await discovering.catch((thrown: unknown) => {
      const { body } = ((thrown as Error).cause ?? {}) as { body?: { issuer?: unknown } }
      throw typeof body?.issuer === 'string' ? otherIssuer(body.issuer, thrown) : thrown
    })
    const { issuer: stated } = configuration.serverMetadata()
    // The client would accept an issuer for all tenants of Entra ID, whose administrators could then give themselves any claim.
    if (hrefOf(stated) !== hrefOf(issuer)) throw otherIssuer(stated)
    return configuration
  }

  const ensure = (): Promise<oidc.Configuration> => {
    if (known && known.until > Date.now()) return Promise.resolve(known.configuration)
    running ??= discover()
      .then((configuration) => {
        known = { configuration, until: Date.now() + discoveryTtlMs }
        return configuration
      })
      .finally(() => {
        running = undefined
      })
    return running
  }

  const readClaims = async (configuration: oidc.Configuration, answer: URL, begun: BegunSignIn): Promise<Claims> => {
    const tokens = await oidc.authorizationCodeGrant(configuration, answer, {
      expectedState: begun.state,
      expectedNonce: begun.nonce,
      pkceCodeVerifier: begun.codeVerifier,
      idTokenExpected: true,
    })
    const claims = tokens.claims()!
    // Many providers put groups and addresses only there.
    if (claims[claim] !== undefined || configuration.serverMetadata().userinfo_endpoint === undefined) return claims
    const info = await oidc.fetchUserInfo(configuration, tokens.access_token, claims.sub)
    // What the token says of an address says nothing of another one.
    return { ...claims, ...(info.email !== undefined && { email_verified: undefined }), ...info }
  }

  const explained = (thrown: unknown): never => {
    if (thrown instanceof SignInError) throw thrown
    // A provider could repeat what it was sent.
    throw new SignInError(failureOf(thrown), withoutSecrets(reasonOf(thrown), [clientSecret]))
  }

  return {
    /** Reads what the provider says about itself. @throws `SignInError` that says what is wrong */
    check: async (): Promise<void> => void (await discover().catch(explained)),

    /**
     * Begins a sign-in. @returns where the browser is sent, and what the answer is checked against
     * @param isAsked the provider asks who it is, although it knows the browser
     * @throws `SignInError`
     */
    begin: async (redirectUri: string, isAsked = false): Promise<{ url: URL; begun: BegunSignIn }> => {
      const configuration = await ensure().catch(explained)
      const begun = { state: oidc.randomState(), nonce: oidc.randomNonce(), codeVerifier: oidc.randomPKCECodeVerifier() }
      const url = oidc.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: scopes.join(' '),
        state: begun.state,
        nonce: begun.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(begun.codeVerifier),
        code_challenge_method: 'S256',
        ...(isAsked && { prompt: 'login' }),
      })
      return { url, begun }
    },

    /** Checks the answer of the provider and exchanges its code. @param answer the redirect URI with the query. @throws `SignInError` */
    finish: async (answer: URL, begun: BegunSignIn): Promise<Claims> => {
      if (answer.searchParams.get('state') !== begun.state) {
        throw new SignInError('mismatch', 'the state of the answer is not that of the sign-in that this browser has begun last')
      }
      const configuration = await ensure().catch(explained)
      return readClaims(configuration, answer, begun).catch(explained)
    },
  }
}

export type OpenIdProvider = ReturnType<typeof createOpenIdProvider>
