import { z } from 'zod'
import { caCertificate } from './ca-certificate.ts'

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/i
const printable = /^[\x20-\x7e]*$/

// Ours to set, or the connection's own: a second value would change what is signed or how the message is framed.
const reserved =
  /^(host|connection|keep-alive|upgrade|te|trailer|transfer-encoding|expect|content-(length|type|encoding|digest)|proxy-.*|webhook-.*|x-relay-.*)$/i
// config is shown to whoever may read the destination, credentials never are
const secretLike = /authorization|cookie|token|secret|password|api-?key/i

const name = z.string().max(256).regex(headerName, 'is no header name')
const value = z.string().max(4_096).regex(printable, 'may hold printable ASCII characters only')
const freeName = name.refine((text) => !reserved.test(text), 'is a header the relay sets itself')

const url = z
  .url({ protocol: /^https?$/ })
  .max(4_096)
  .refine((text) => !URL.canParse(text) || !hasUserInfo(new URL(text)), 'may hold no user name or password: they belong into credentials')

const hasUserInfo = ({ username, password }: URL) => username !== '' || password !== ''

export const webhookConfig = z.strictObject({
  url: url.describe('Where documents are sent, http or https; without user name and password'),
  method: z.enum(['POST', 'PUT']).default('POST').describe('HTTP method'),
  format: z
    .enum(['raw', 'multipart', 'json'])
    .default('raw')
    .describe("What the body is: the document's own bytes, a form with metadata and file, or a JSON object with the content in base64"),
  headers: z
    .record(
      freeName.refine((text) => !secretLike.test(text), 'sounds like a secret: give it as header_name and header_value of credentials'),
      value,
    )
    .refine((headers) => Object.keys(headers).length <= 50, 'has more than 50 entries')
    .refine(
      (headers) => new Set(Object.keys(headers).map((key) => key.toLowerCase())).size === Object.keys(headers).length,
      'names a header twice',
    )
    .default({})
    .describe(
      'Up to 50 further headers, sent as they are. Those that the relay or the connection sets are refused, and so are names that sound like a secret: give it in the credentials, which are never shown',
    ),
  ca_certificate: caCertificate,
})

const secret = z
  .string()
  .min(1)
  .max(1_024)
  .refine((text) => !text.startsWith('whsec_') || /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(text), 'is not base64 after whsec_')
  .meta({ secret: true })

export const webhookCredentials = z
  .strictObject({
    secret: secret
      .optional()
      .describe('Signs every request (Standard Webhooks): whsec_ and base64, or any text, whose UTF-8 bytes are then the key'),
    previous_secret: secret.optional().describe('Signs beside the new secret while receivers change over'),
    bearer_token: value.min(1).meta({ secret: true }).optional().describe('Sent as Authorization: Bearer'),
    username: z
      .string()
      .min(1)
      .max(1_024)
      .regex(/^[^:]*$/, 'may hold no colon')
      .optional()
      .describe('With password: sent as Authorization: Basic'),
    password: z.string().max(1_024).meta({ secret: true }).optional().describe('Belongs to username'),
    header_name: freeName.optional().describe('With header_value: a header that carries a secret'),
    header_value: value.min(1).meta({ secret: true }).optional().describe('Belongs to header_name'),
  })
  .superRefine((credentials, context) => {
    const ways = [['bearer_token'], ['username', 'password'], ['header_name', 'header_value']] as const
    const used = ways.filter((keys) => keys.some((key) => credentials[key] !== undefined))
    for (const keys of used) {
      for (const key of keys.filter((each) => credentials[each] === undefined)) {
        context.addIssue({ code: 'custom', path: [key], message: `is missing: ${keys.join(' and ')} belong together` })
      }
    }
    if (used.length > 1) {
      context.addIssue({
        code: 'custom',
        message: 'hold more than one of bearer_token, username and password, header_name and header_value',
      })
    }
    if (credentials.previous_secret !== undefined && credentials.secret === undefined) {
      context.addIssue({ code: 'custom', path: ['secret'], message: 'is missing beside previous_secret' })
    }
  })

export type WebhookConfig = z.output<typeof webhookConfig>
export type WebhookCredentials = z.output<typeof webhookCredentials>

/** The header that proves who we are, if there is one. */
export const authorization = (credentials: WebhookCredentials): Record<string, string> => {
  const { bearer_token: token, username, password, header_name: ownName, header_value: ownValue } = credentials
  if (token !== undefined) return { authorization: `Bearer ${token}` }
  if (username !== undefined) return { authorization: `Basic ${basic(username, password)}` }
  if (ownName !== undefined && ownValue !== undefined) return { [ownName.toLowerCase()]: ownValue }
  return {}
}

/** Everything of the credentials that must not come back in a target's answer. */
export const secretsOf = ({
  secret: current,
  previous_secret: previous,
  bearer_token: token,
  username,
  password,
  header_value: own,
}: WebhookCredentials) =>
  [current, previous, token, password, own, username === undefined ? undefined : basic(username, password)].filter(
    (text) => text !== undefined,
  )

const basic = (username: string, password = '') => Buffer.from(`${username}:${password}`).toString('base64')
