import { DeliveryError, type AttemptContext } from '../connector.ts'
import type { AccessTokens, TokenCache } from '../shared/access-tokens.ts'
import { clientPrincipalOf, clientSecretsOf, createClientTokens } from '../shared/client-credentials.ts'
import { entraPrincipalOf, entraSecretsOf, type EntraTokens } from '../shared/entra-tokens.ts'
import type { EmailCredentials } from './schema.ts'

/** How the relay logs in to a mail server. */
export type Login = { username: string } & ({ password: string } | { token: string })

/** What a session is opened with. */
export interface Logins {
  /**
   * Runs `open` with the login of the credentials, undefined if they contain none. A server that refuses a token, which may have been
   * revoked, is offered a new one once.
   * @param secrets are the strings that no message of this attempt may contain. Tokens are added to it.
   */
  withLogin<Result>(
    credentials: EmailCredentials,
    context: AttemptContext,
    secrets: string[],
    open: (login: Login | undefined) => Promise<Result>,
  ): Promise<Result>
  /** Forgets the token of the credentials, if they lead to one. */
  forget(credentials: EmailCredentials, context: Pick<AttemptContext, 'workspace'>): void
}

/** Where the tokens of a login come from. */
interface TokenSource {
  get(context: AttemptContext): Promise<string>
  forget(refused?: string): void
}

/** The service that the tokens of Microsoft Entra are for: Exchange Online. */
const exchangeScope = 'https://outlook.office365.com/.default'

/**
 * Creates the logins of mail servers.
 * @param entraAuthority the sign-in address of Microsoft Entra; only tests replace it
 */
export const createLogins = (cache: TokenCache, entra: EntraTokens, entraAuthority = 'https://login.microsoftonline.com'): Logins => {
  const clients = createClientTokens(cache)

  const sourceOf = (credentials: EmailCredentials, inWorkspace: Pick<AttemptContext, 'workspace'>): TokenSource | undefined => {
    const from = <Principal>(tokens: AccessTokens<Principal>, principal: Principal): TokenSource => ({
      get: async (context) => (await tokens.get(principal, { ...context, caCertificate: credentials.token_ca_certificate })).token,
      forget: (refused) => tokens.invalidate(principal, refused),
    })
    const application = entraPrincipalOf(credentials, { authorityHost: entraAuthority, scope: exchangeScope }, inWorkspace)
    if (application) return from(entra, application)
    const client = clientPrincipalOf(credentials)
    return client && from(clients, client)
  }

  return {
    forget: (credentials, context) => sourceOf(credentials, context)?.forget(),
    withLogin: async (credentials, context, secrets, open) => {
      const { username, password } = credentials
      if (username === undefined) return open(undefined)
      if (password !== undefined) return open({ username, password })

      const source = sourceOf(credentials, context)
      if (!source) throw new DeliveryError('config_invalid', 'the credentials contain neither a password nor a way to get a token')
      const loginWithToken = async () => {
        const login = { username, token: await source.get(context) }
        for (const text of [login.token, xoauth2Response(login)]) if (!secrets.includes(text)) secrets.push(text)
        return login
      }
      const login = await loginWithToken()
      try {
        return await open(login)
      } catch (thrown) {
        if (!(thrown instanceof DeliveryError) || thrown.code !== 'credentials_refused') throw thrown
        source.forget(login.token)
      }
      return open(await loginWithToken())
    },
  }
}

/** Returns every secret in plain text and in the encodings that are sent, since a server may quote them. */
export const secretsOf = (credentials: EmailCredentials): string[] => {
  const { username = '', password } = credentials
  const passwords = password === undefined ? [] : [password, base64(password), plainResponse({ username, password })]
  return [...passwords, ...clientSecretsOf(credentials), ...entraSecretsOf(credentials)]
}

export const base64 = (text: string) => Buffer.from(text).toString('base64')

/** The response of the mechanism PLAIN (RFC 4616). */
export const plainResponse = ({ username, password }: { username: string; password: string }) => base64(`\0${username}\0${password}`)

/** The response of the mechanism XOAUTH2, which Google and Microsoft have defined. */
export const xoauth2Response = ({ username, token }: { username: string; token: string }) =>
  base64(`user=${username}\u0001auth=Bearer ${token}\u0001\u0001`)
