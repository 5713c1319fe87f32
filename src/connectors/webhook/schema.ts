import { z } from 'zod'
import { checkClientCertificate, clientCertificate } from '../shared/client-certificate.ts'
import { clientCredentials, clientSecretsOf, optionalForToken, requiredForToken } from '../shared/client-credentials.ts'
import { caCertificate, listOf } from '../shared/schema-fields.ts'
import { noSignIn, withSignIns } from '../shared/sign-in.ts'

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

const url = z
  .url({ protocol: /^https?$/ })
  .max(4_096)
  .refine(
    (text) => !URL.canParse(text) || !hasUserInfo(new URL(text)),
    'must not contain a user name or password; put them into credentials',
  )

const hasUserInfo = ({ username, password }: URL) => username !== '' || password !== ''

export const webhookConfig = z.strictObject({
  url: url.meta({ masked: true }).describe('Address to send documents to, http or https, without user name and password'),
  method: z.enum(['POST', 'PUT']).default('POST').describe('HTTP method'),
  format: z
    .enum(['raw', 'multipart', 'json'])
    .default('raw')
    .describe(
      "Form of the request body: raw is the document's own bytes, multipart a form with metadata and file, json an object with the content in base64",
    ),
  headers: z
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
    .meta({ masked: true })
    .describe(
      'Up to 50 further headers, sent unchanged. Headers that the relay or the HTTP client sets are refused, and so are names that sound like a secret: put a secret into the credentials, which are never shown',
    ),
  signatures: z
    .enum(['both', 'standard_webhooks', 'http_message'])
    .default('both')
    .describe(
      'Signatures that the secret of credentials makes. standard_webhooks: over the bytes of the body; http_message: over the digest of the body and over headers (RFC 9421), so that a body of the format raw is read once instead of twice; both',
    ),
  send_traceparent: z
    .boolean()
    .default(false)
    .describe('If true, requests carry the header traceparent while the relay records traces, so that the target can continue the trace'),
  ca_certificate: caCertificate,
})

const secret = z
  .string()
  .min(1)
  .max(1_024)
  .refine((text) => !text.startsWith('whsec_') || /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(text), 'must be base64 after whsec_')
  .meta({ secret: true })

const signIns = [
  { name: 'bearer_token', required: ['bearer_token'] },
  { name: 'basic', required: ['username', 'password'] },
  { name: 'header', required: ['header_name', 'header_value'] },
  { name: 'oauth2', required: requiredForToken, optional: optionalForToken },
] as const

const requestCredentials = z
  .strictObject({
    secret: secret
      .meta({ secret: true, 'x-generated': true })
      .optional()
      .describe('Signs every request: whsec_ and base64, or any text, whose UTF-8 bytes are the key'),
    previous_secret: secret.optional().describe('Adds a second signature while receivers change to the new secret'),
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
  })
  .superRefine((credentials, context) => {
    const used = signIns.filter((signIn) =>
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
    if (credentials.previous_secret !== undefined && credentials.secret === undefined) {
      context.addIssue({ code: 'custom', path: ['secret'], message: 'is missing; previous_secret needs it' })
    }
    checkClientCertificate(credentials, context)
  })

export const webhookCredentials = withSignIns(requestCredentials, [noSignIn, ...signIns])

/** A plausible destination, for documentation. */
export const webhookExample = {
  config: { url: 'https://dms.example.com/documents', method: 'POST', format: 'multipart' },
  credentials: { secret: 'whsec_ZmljdGl0aW91cy1zZWNyZXQtb2YtYW4tZXhhbXBsZQ==' },
}

export type WebhookConfig = z.output<typeof webhookConfig>
export type WebhookCredentials = z.output<typeof webhookCredentials>

/** Returns the client certificate of the credentials, if they contain one. */
export const clientCertificateOf = ({ client_certificate: cert, client_key: key }: WebhookCredentials) =>
  cert === undefined || key === undefined ? undefined : { cert, key }

/** Returns the header that authenticates the relay, if the credentials contain one. */
export const authorization = (credentials: WebhookCredentials): Record<string, string> => {
  const { bearer_token: token, username, password, header_name: ownName, header_value: ownValue } = credentials
  if (token !== undefined) return { authorization: `Bearer ${token}` }
  if (username !== undefined) return { authorization: `Basic ${basic(username, password)}` }
  if (ownName !== undefined && ownValue !== undefined) return { [ownName.toLowerCase()]: ownValue }
  return {}
}

// Shorter parts of an address or a header are words of a target's message rather than keys.
const keyMinCharacters = 16
const queryKeyMinCharacters = 8

/** Returns every string of the destination that must not appear in a message: credentials, and keys in the address and in headers. */
export const secretsOf = ({ config, credentials }: { config: WebhookConfig; credentials: WebhookCredentials }): string[] => {
  const { secret: current, previous_secret: previous, bearer_token: token, username, password, header_value: own } = credentials
  const { client_key: key } = credentials
  const sent = [current, previous, token, password, own, key, username === undefined ? undefined : basic(username, password)]
  const { pathname, searchParams } = new URL(config.url)
  const long = [...pathname.split('/'), ...Object.values(config.headers)].filter((text) => text.length >= keyMinCharacters)
  const queried = [...searchParams.values()].filter((text) => text.length >= queryKeyMinCharacters)
  return [
    ...sent.filter((text) => text !== undefined),
    ...clientSecretsOf(credentials),
    ...long,
    ...queried,
    ...queried.map(encodeURIComponent),
  ]
}

const basic = (username: string, password = '') => Buffer.from(`${username}:${password}`).toString('base64')
