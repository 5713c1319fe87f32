import { z } from 'zod'
import { DeliveryError } from '../connector.ts'
import { checkClientCertificate, clientCertificate } from './client-certificate.ts'
import {
  clientCredentials,
  clientPrincipalOf,
  clientSecretsOf,
  optionalForToken,
  requiredForToken,
  type ClientTokens,
} from './client-credentials.ts'
import type { RequestContext } from './cloud-api.ts'
import { listOf } from './schema-fields.ts'

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i
const printable = /^[\x20-\x7e]*$/

// Set by the relay or by the HTTP client: a second value would change what is signed or how the message is framed.
const reserved =
  /^(host|connection|keep-alive|upgrade|te|trailer|transfer-encoding|expect|content-(length|type|encoding|digest)|proxy-.*|signature(-input)?|webhook-.*|x-relay-.*)$/i
// Members see the config. The API never returns the credentials.
const secretLike =
  /authorization|auth$|cookie|token|secret|password|passwd|pwd|passphrase|signature|(api|access|account|functions|private|shared|subscription)-?key/i

const name = z.string().max(256).regex(headerName, 'must be a header name')
const value = z.string().max(4_096).regex(printable, 'must contain printable ASCII characters only')
const freeName = name.refine((text) => !reserved.test(text), 'is a header that the relay sets itself')

/** Headers that are sent unchanged, for every kind of HTTP target that the user describes. */
export const ownHeaders = z
  .record(
    freeName.refine((text) => !secretLike.test(text), 'sounds like a secret; put it into header_name and header_value of credentials'),
    value,
  )
  .refine((headers) => Object.keys(headers).length <= 50, 'must not have more than 50 entries')
  .refine(
    (headers) => new Set(Object.keys(headers).map((key) => key.toLowerCase())).size === Object.keys(headers).length,
    'must not contain a header twice',
  )
  .default({})

/** The ways to sign in to an HTTP target. At most one of them is used, beside a client certificate. */
export const httpSignIn = {
  bearer_token: value.min(1).meta({ secret: true }).optional().describe('Sent as Authorization: Bearer'),
  username: z
    .string()
    .min(1)
    .max(1_024)
    .regex(/^[^:]*$/, 'must not contain a colon')
    .optional()
    .describe('Sent together with password as Authorization: Basic'),
  password: z.string().max(1_024).meta({ secret: true }).optional().describe('Password that goes with username'),
  header_name: freeName.optional().describe('Name of a header that contains a secret'),
  header_value: value.min(1).meta({ secret: true }).optional().describe('Value of the header header_name'),
  ...clientCredentials,
  ...clientCertificate,
}

export type HttpSignIn = { [Key in keyof typeof httpSignIn]?: z.output<(typeof httpSignIn)[Key]> }

/** The ways to sign in, beside a client certificate, each with the keys that belong together. */
export const httpSignIns = [
  { name: 'bearer_token', required: ['bearer_token'] },
  { name: 'basic', required: ['username', 'password'] },
  { name: 'header', required: ['header_name', 'header_value'] },
  { name: 'oauth2', required: requiredForToken, optional: optionalForToken },
] as const

/** Adds an issue for each value that is missing, and for a second way to sign in. */
export const checkSignIn = (credentials: HttpSignIn, context: z.core.$RefinementCtx): void => {
  const used = httpSignIns.filter((signIn) =>
    [...signIn.required, ...('optional' in signIn ? signIn.optional : [])].some((key) => credentials[key] !== undefined),
  )
  for (const { required: keys } of used) {
    for (const key of keys.filter((each) => credentials[each] === undefined)) {
      context.addIssue({ code: 'custom', path: [key], message: `is missing; ${listOf(keys)} must be set together` })
    }
  }
  if (used.length > 1) {
    context.addIssue({
      code: 'custom',
      message:
        'must not contain more than one of bearer_token, username and password, header_name and header_value, token_url with client_id and client_secret',
    })
  }
  if (credentials.client_certificate !== undefined || credentials.client_key !== undefined) checkClientCertificate(credentials, context)
}

/** Returns the client certificate of the credentials, if they contain one. */
export const clientCertificateOf = ({ client_certificate: cert, client_key: key }: HttpSignIn) =>
  cert === undefined || key === undefined ? undefined : { cert, key }

/** Returns the header that authenticates the relay, if the credentials contain one. */
const authorization = (credentials: HttpSignIn): Record<string, string> => {
  const { bearer_token: token, username, password, header_name: ownName, header_value: ownValue } = credentials
  if (token !== undefined) return { authorization: `Bearer ${token}` }
  if (username !== undefined) return { authorization: `Basic ${basic(username, password)}` }
  if (ownName !== undefined && ownValue !== undefined) return { [ownName.toLowerCase()]: ownValue }
  return {}
}

/** Returns true if the target gets something with which it could act with these credentials. */
export const signsIn = (credentials: HttpSignIn): boolean =>
  Object.keys(authorization(credentials)).length > 0 || credentials.token_url !== undefined || credentials.client_certificate !== undefined

/** Returns every string of the credentials that must not appear in a message. */
export const signInSecretsOf = (credentials: HttpSignIn): string[] => {
  const { bearer_token: token, username, password, header_value: own, client_key: key } = credentials
  const sent = [token, password, own, key, username === undefined ? undefined : basic(username, password)]
  return [...sent.filter((text) => text !== undefined), ...clientSecretsOf(credentials)]
}

const basic = (username: string, password = '') => Buffer.from(`${username}:${password}`).toString('base64')

/**
 * Sends a request with the credentials of a target. The server may have revoked a token that it has issued: a new one is tried once.
 * @param secrets the strings that must not appear in a message. A token is added
 * @param send throws a `DeliveryError` with the answer if the target answers 401
 */
export const withSignIn = async <Result>(
  tokens: ClientTokens,
  credentials: HttpSignIn,
  { context, secrets }: { context: Omit<RequestContext, 'caCertificate'>; secrets: string[] },
  send: (authorized: Record<string, string>) => Promise<Result>,
): Promise<Result> => {
  const principal = clientPrincipalOf(credentials)
  if (!principal) return send(authorization(credentials))
  const getToken = async () => {
    const { token } = await tokens.get(principal, { ...context, caCertificate: credentials.token_ca_certificate })
    if (!secrets.includes(token)) secrets.push(token)
    return token
  }
  const sendWith = (token: string) => send({ authorization: `Bearer ${token}` })

  const token = await getToken()
  try {
    return await sendWith(token)
  } catch (thrown) {
    if (!(thrown instanceof DeliveryError) || thrown.answer?.status !== 401) throw thrown
    tokens.invalidate(principal, token)
  }
  return sendWith(await getToken())
}
