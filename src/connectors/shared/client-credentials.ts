import { z } from 'zod'
import type { DeliveryError } from '../connector.ts'
import {
  createAccessTokens,
  isFinalRefusal,
  noToken,
  reasonOf,
  requestAccessToken,
  type AccessTokens,
  type TokenCache,
} from './access-tokens.ts'
import { parseObject, type CloudResponse, type RequestContext } from './cloud-api.ts'
import { caCertificate, urlWithout } from './schema-fields.ts'

// RFC 6749, appendix A: ids and secrets consist of printable ASCII and blanks.
const printable = z
  .string()
  .min(1)
  .max(1_024)
  .regex(/^[\x20-\x7e]+$/, 'must contain printable ASCII characters only')

/** The client credentials of an OAuth2 server, for every kind that gets tokens there. They are saved together, so that no key leads elsewhere. */
export const clientCredentials = {
  token_url: z
    .url({ protocol: /^https$/ })
    .max(1_024)
    .refine(urlWithout('username', 'password', 'hash'), 'must not contain a user name or password')
    .optional()
    .describe('Address at which an OAuth2 server issues tokens to clients (client credentials grant), https only'),
  client_id: printable.optional().describe('Client id that the OAuth2 server knows'),
  client_secret: printable.meta({ secret: true }).optional().describe('Secret of the client'),
  token_auth_method: z
    .enum(['client_secret_basic', 'client_secret_post'])
    .optional()
    .describe('How client_id and client_secret are sent to token_url: in the header or in the form. Default: client_secret_basic'),
  scope: z
    .string()
    .max(1_024)
    .regex(/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/, 'must be names separated by single blanks')
    .optional()
    .describe('Scope of the token, if the OAuth2 server needs one'),
  audience: printable.optional().describe('Audience of the token, if the OAuth2 server needs one'),
  token_ca_certificate: caCertificate.describe(
    'PEM certificate of the authority that signed the certificate of token_url. Trusted instead of the public authorities',
  ),
}

type ClientCredentials = { [Key in keyof typeof clientCredentials]?: z.output<(typeof clientCredentials)[Key]> }

/** The keys without which there is no token, and those that go with them. */
export const requiredForToken = ['token_url', 'client_id', 'client_secret'] as const
export const optionalForToken = ['token_auth_method', 'scope', 'audience', 'token_ca_certificate'] as const

export interface ClientPrincipal {
  tokenUrl: string
  clientId: string
  clientSecret: string
  authMethod: 'client_secret_basic' | 'client_secret_post'
  scope: string | undefined
  audience: string | undefined
}

export type ClientTokens = AccessTokens<ClientPrincipal>

/** Gives out tokens for clients of any OAuth2 server (RFC 6749, 4.4). */
export const createClientTokens = (cache: TokenCache): ClientTokens => createAccessTokens(cache, 'client', requestToken)

/** Returns the client of the credentials, if they contain one. */
export const clientPrincipalOf = (credentials: ClientCredentials): ClientPrincipal | undefined => {
  const { token_url: tokenUrl, client_id: clientId, client_secret: clientSecret, scope, audience } = credentials
  if (tokenUrl === undefined || clientId === undefined || clientSecret === undefined) return undefined
  return { tokenUrl, clientId, clientSecret, authMethod: credentials.token_auth_method ?? 'client_secret_basic', scope, audience }
}

/** Returns the secret, and what is sent with it, since a server may quote both. */
export const clientSecretsOf = ({ client_id: id = '', client_secret: secret }: ClientCredentials): string[] =>
  secret === undefined ? [] : [secret, basicOf(id, secret)]

const requestToken = (principal: ClientPrincipal, context: RequestContext) => {
  const { tokenUrl, clientId, clientSecret, authMethod, scope, audience } = principal
  const isBasic = authMethod === 'client_secret_basic'
  const form = {
    grant_type: 'client_credentials',
    ...(scope !== undefined && { scope }),
    ...(audience !== undefined && { audience }),
    ...(!isBasic && { client_id: clientId, client_secret: clientSecret }),
  }
  const headers: Record<string, string> = isBasic ? { authorization: `Basic ${basicOf(clientId, clientSecret)}` } : {}
  return requestAccessToken(
    tokenUrl,
    form,
    { toError: (response) => tokenError(response, principal), headers, mayOmitLifetime: true },
    context,
  )
}

/** RFC 6749, 2.3.1: both are encoded as in a form before they are joined. */
const basicOf = (id: string, secret: string) => Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')

const formEncoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

// Servers that are no token endpoint, or say no more than their status: token_url or the secret is wrong.
const ofAddress = [400, 401, 404, 405, 410]

/** Remedies by error code of RFC 6749 and RFC 8707. */
const corrections = new Map<unknown, string>([
  ['invalid_client', 'correct client_id, client_secret and token_auth_method'],
  ['unauthorized_client', 'let the client use the client credentials grant'],
  ['invalid_scope', 'correct scope'],
  ['invalid_target', 'correct audience'],
  ['access_denied', 'let the client have tokens for this scope and audience'],
])

const tokenError = (response: CloudResponse, { tokenUrl }: ClientPrincipal): DeliveryError => {
  const { host } = new URL(tokenUrl)
  const reason = reasonOf(response)
  const quoted = reason && ` (${reason})`
  const correction = corrections.get(parseObject(response.text).error) ?? 'correct token_url, client_id and client_secret'
  const refused = isFinalRefusal(response, ofAddress) ? `${host} issued no token: ${correction}${quoted}` : undefined
  return noToken(response, `${host} answered ${response.status} to the request for a token${quoted}`, refused)
}
