import { z } from 'zod'
import { checkSignIn, httpSignIn, httpSignIns, ownHeaders, signInSecretsOf } from '../shared/http-sign-in.ts'
import { caCertificate, urlWithout } from '../shared/schema-fields.ts'
import { noSignIn, withSignIns } from '../shared/sign-in.ts'
import { noticeFormats } from './chat.ts'

const url = z
  .url({ protocol: /^https?$/ })
  .max(4_096)
  .refine(urlWithout('username', 'password'), 'must not contain a user name or password; put them into credentials')

export const webhookConfig = z.strictObject({
  url: url.meta({ masked: true }).describe('Address to send documents to, http or https, without user name and password'),
  method: z.enum(['POST', 'PUT']).default('POST').describe('HTTP method'),
  format: z
    .enum(['raw', 'multipart', 'json'])
    .default('raw')
    .describe(
      "Form of the request body: raw is the document's own bytes, multipart a form with metadata and file, json an object with the content in base64",
    ),
  notice_format: z
    .enum(noticeFormats)
    .default('standard_webhooks')
    .describe(
      'Form of notices, events and tests: standard_webhooks is a JSON object for programs; slack a message for an incoming webhook of Slack, teams a card for a workflow of Microsoft Teams, both sent with POST. Documents have the form that format says',
    ),
  headers: ownHeaders
    .meta({ masked: true })
    .describe(
      'Up to 50 further headers, sent unchanged. Headers that the relay or the HTTP client sets are refused, and so are names that sound like a secret: put a secret into the credentials, which are never shown',
    ),
  signatures: z
    .enum(['both', 'standard_webhooks', 'http_message'])
    .default('http_message')
    .describe(
      'Signatures of documents that the secret of credentials makes. http_message: over the digest of the body and over headers (RFC 9421), so that a body of the format raw is read once; standard_webhooks: over the bytes of the body, which are read twice; both. Pings, notices, events and late data have both',
    ),
  ca_certificate: caCertificate,
})

/** Bytes of the shortest key after `whsec_`. Standard Webhooks has 24 to 64. */
const keyMinBytes = 16

/** Libraries of receivers refuse what Node decodes nevertheless: without padding, or with other characters. */
const isCanonicalKey = (text: string): boolean => {
  const key = Buffer.from(text, 'base64')
  return key.length >= keyMinBytes && key.toString('base64') === text
}

const secret = z
  .string()
  .min(1)
  .max(1_024)
  .refine(
    (text) => !text.startsWith('whsec_') || isCanonicalKey(text.slice('whsec_'.length)),
    `must be base64 with padding of at least ${keyMinBytes} bytes after whsec_; other text is taken as it is`,
  )
  .meta({ secret: true })

const requestCredentials = z
  .strictObject({
    secret: secret
      .meta({ secret: true, 'x-generated': true })
      .optional()
      .describe('Signs every request: whsec_ and base64 of 16 bytes or more, or any text, whose UTF-8 bytes are the key'),
    previous_secret: secret.optional().describe('Adds a second signature while receivers change to the new secret'),
    previous_secret_expires_at: z.iso
      .datetime({ offset: true })
      .optional()
      .describe('When the second signature ends, such as 2026-12-01T00:00:00Z. Without it, remove previous_secret yourself'),
    ...httpSignIn,
  })
  .superRefine((credentials, context) => {
    checkSignIn(credentials, context)
    if (credentials.previous_secret !== undefined && credentials.secret === undefined) {
      context.addIssue({ code: 'custom', path: ['secret'], message: 'is missing; previous_secret needs it' })
    }
    if (credentials.previous_secret_expires_at !== undefined && credentials.previous_secret === undefined) {
      context.addIssue({ code: 'custom', path: ['previous_secret'], message: 'is missing; previous_secret_expires_at is its end' })
    }
  })

export const webhookCredentials = withSignIns(requestCredentials, [noSignIn, ...httpSignIns])

/** A plausible destination, for documentation. */
export const webhookExample = {
  config: { url: 'https://dms.example.com/documents', method: 'POST', format: 'multipart' },
  credentials: { secret: 'whsec_ZmljdGl0aW91cy1zZWNyZXQtb2YtYW4tZXhhbXBsZQ==' },
}

export type WebhookConfig = z.output<typeof webhookConfig>
export type WebhookCredentials = z.output<typeof webhookCredentials>

// Shorter parts of an address or a header are words of a target's message rather than keys.
const keyMinCharacters = 16
const queryKeyMinCharacters = 8

/** Returns the secrets that sign a request, the current one first. */
export const signingSecretsOf = (
  { secret: current, previous_secret: previous, previous_secret_expires_at: end }: WebhookCredentials,
  nowMs: number,
): string[] => {
  const hasEnded = end !== undefined && Date.parse(end) <= nowMs
  return [current, hasEnded ? undefined : previous].filter((each) => each !== undefined)
}

/** Returns every string of the destination that must not appear in a message: credentials, and keys in the address and in headers. */
export const secretsOf = ({ config, credentials }: { config: WebhookConfig; credentials: WebhookCredentials }): string[] => {
  const { secret: current, previous_secret: previous } = credentials
  const { pathname, searchParams } = new URL(config.url)
  const long = [...pathname.split('/'), ...Object.values(config.headers)].filter((text) => text.length >= keyMinCharacters)
  const queried = [...searchParams.values()].filter((text) => text.length >= queryKeyMinCharacters)
  return [...[current, previous].filter((text) => text !== undefined), ...signInSecretsOf(credentials), ...long, ...queried]
}
