import { isIP } from 'node:net'
import { z } from 'zod'
import { redactAndCut } from '../../base/secrets.ts'
import { DeliveryError } from '../connector.ts'
import {
  askIssuer,
  isFinalRefusal,
  noToken,
  reasonOf,
  refusalMaxBytes,
  requestAccessToken,
  type AccessToken,
} from '../shared/access-tokens.ts'
import { parseObject, type CloudResponse, type RequestContext } from '../shared/cloud-api.ts'
import { isPermanentStatus } from '../shared/final-statuses.ts'
import { waitOf } from '../shared/retry-after.ts'
import { tokenFilePath, type ReadTokenFile } from '../shared/token-files.ts'

// Workload identity federation of Google Cloud: https://cloud.google.com/iam/docs/workload-identity-federation

/** The hosts that get a token of the workload, and a token of Google. A workspace must not name others: they would get the token of the relay. */
export interface GoogleHosts {
  sts: string
  iamCredentials: string
}

export const googleHosts: GoogleHosts = { sts: 'https://sts.googleapis.com', iamCredentials: 'https://iamcredentials.googleapis.com' }

const isLocal = (host: string) => {
  const name = host.replace(/^\[|\]$/g, '')
  return name === 'localhost' || (isIP(name) > 0 && /^(?:127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|::1$|f[cd])/i.test(name))
}

const sourceUrl = z
  .url({ protocol: /^https?$/ })
  .max(1_024)
  .refine((text) => {
    if (!URL.canParse(text)) return true
    const { protocol, hostname } = new URL(text)
    return protocol === 'https:' || isLocal(hostname)
  }, 'must be https, unless it is a private or loopback address')

const format = z
  .strictObject({
    type: z.enum(['text', 'json']).default('text').describe('Form of the token: the text itself, or a JSON object that contains it'),
    subject_token_field_name: z.string().min(1).max(256).optional().describe('Field of that object that contains the token'),
  })
  .refine(({ type, subject_token_field_name: name }) => type === 'text' || name !== undefined, {
    path: ['subject_token_field_name'],
    message: 'is missing; a token in JSON needs it',
  })

const headerValue = z
  .string()
  .max(4_096)
  .regex(/^[\x20-\x7e]*$/, 'must contain printable ASCII characters only')

// Not strict, as that of the key file.
const credentialSource = z
  .object({
    file: tokenFilePath
      .optional()
      .describe('Path of a file on the workers that contains the token. The operator must allow its directory in RELAY_TOKEN_FILE_ROOTS'),
    url: sourceUrl.optional().describe('Address that answers GET with the token: https, or http at a private or loopback address'),
    headers: z
      .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9a-z-]{1,256}$/i, 'must be a header name'), headerValue)
      .refine((headers) => Object.keys(headers).length <= 20, 'must not have more than 20 entries')
      .meta({ secret: true })
      .optional()
      .describe('Headers of that request'),
    format: format.optional().describe('Form of the token. Default: text'),
  })
  .refine(
    ({ file, url }) => (file === undefined) !== (url === undefined),
    'must contain either file or url; the relay runs no programs and knows no other sources',
  )

// Where Google lets a federated account act for a service account.
const impersonationPath = /^https:\/\/[^/]+\/v1\/projects\/-\/serviceAccounts\/[^/@\s]+@[^/\s]+:generateAccessToken$/

export const externalAccount = z.object({
  type: z
    .literal('external_account', 'must be external_account; this is the configuration of another kind of account')
    .describe('Kind of account that the configuration is for'),
  audience: z
    .string()
    .max(512)
    .regex(
      /^\/\/iam\.googleapis\.com\/\S+$/,
      'must be the name of a provider of a workload identity pool: //iam.googleapis.com/projects/...',
    )
    .describe('Provider of the workload identity pool'),
  subject_token_type: z
    .string()
    .max(128)
    .regex(/^urn:ietf:params:oauth:token-type:(?:jwt|id_token|access_token|saml2)$/, 'must be the type of a token from a file or a URL')
    .describe('Type of the token that the source contains'),
  token_url: z
    .literal(`${googleHosts.sts}/v1/token`, `must be ${googleHosts.sts}/v1/token`)
    .default(`${googleHosts.sts}/v1/token`)
    .describe('Address of the Security Token Service of Google'),
  service_account_impersonation_url: z
    .string()
    .max(1_024)
    .regex(impersonationPath, 'must be the address of generateAccessToken of a service account')
    .refine((url) => url.startsWith(`${googleHosts.iamCredentials}/`), `must begin with ${googleHosts.iamCredentials}/`)
    .optional()
    .describe(
      'Address at which the federated account gets a token of a service account. Without it, the folder is shared with the federated account itself',
    ),
  credential_source: credentialSource.describe('Where the token of the workload comes from'),
})

export type ExternalAccount = z.output<typeof externalAccount>

const refused = (message: string, permanent: boolean) => new DeliveryError('credentials_refused', message, { permanent })

/** Fetches the token of the workload, which Google trusts. */
const subjectToken = async (
  { credential_source: { file, url, headers = {}, format: form } }: ExternalAccount,
  context: RequestContext,
  readTokenFile: (path: string) => Promise<string>,
): Promise<string> => {
  const text = file === undefined ? await fetchToken(url!, headers, context) : await readTokenFile(file)
  const token = form?.type === 'json' ? parseObject(text)[form.subject_token_field_name!] : text
  if (typeof token === 'string' && token.trim() !== '') return token.trim()
  throw refused(
    `the source of the token (${file ?? hostOf(url!)}) has no field ${form?.subject_token_field_name ?? ''} with a token`,
    false,
  )
}

const hostOf = (url: string) => new URL(url).host

const fetchToken = async (url: string, headers: Record<string, string>, context: RequestContext): Promise<string> => {
  const from = `the source of the token, ${hostOf(url)},`
  // What the source answers is a token, or may contain one: none of it is kept.
  const response = await askIssuer(url, { method: 'GET', headers }, context)
  if (response.status === 200) return response.text
  const waitMs = waitOf(response.headers, new Date())
  if (isPermanentStatus(response.status, waitMs)) throw refused(`${from} answered ${response.status}; correct credential_source`, true)
  throw new DeliveryError(`http_${response.status}`, `${from} answered ${response.status}`, { permanent: false, retryAfterMs: waitMs })
}

const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'
const platformScope = 'https://www.googleapis.com/auth/cloud-platform'
const lifetimeSeconds = 3_600

/**
 * Exchanges the token of the workload for one of Google (RFC 8693), and that for one of the service account, if there is one.
 * @throws DeliveryError `credentials_refused`, or the failure of a request
 */
export const requestFederatedToken = async (
  account: ExternalAccount,
  { scope, workspace }: { scope: string; workspace: string },
  context: RequestContext,
  { readTokenFile, hosts }: { readTokenFile: ReadTokenFile; hosts: GoogleHosts },
): Promise<AccessToken> => {
  const { audience, subject_token_type: type, token_url: tokenUrl, service_account_impersonation_url: impersonationUrl } = account
  const subject = await subjectToken(account, context, (path) => readTokenFile(path, workspace))
  const federated = await requestAccessToken(
    tokenUrl.replace(googleHosts.sts, hosts.sts),
    {
      grant_type: tokenExchange,
      audience,
      scope: impersonationUrl === undefined ? scope : platformScope,
      requested_token_type: accessTokenType,
      subject_token_type: type,
      subject_token: subject,
    },
    { toError: exchangeError },
    context,
  )
  if (impersonationUrl === undefined) return federated
  return impersonate(impersonationUrl.replace(googleHosts.iamCredentials, hosts.iamCredentials), federated.token, scope, context)
}

const impersonate = async (url: string, token: string, scope: string, context: RequestContext): Promise<AccessToken> => {
  const call = {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ scope: [scope], lifetime: `${lifetimeSeconds}s` }),
  } as const
  const response = await askIssuer(url, call, context)
  const clean = { ...response, text: redactAndCut(response.text, [token], refusalMaxBytes) }
  if (response.status >= 300) throw impersonationError(clean)
  const { accessToken, expireTime } = parseObject(response.text)
  const expiresAt = typeof expireTime === 'string' ? Date.parse(expireTime) : NaN
  if (typeof accessToken === 'string' && /^[\x21-\x7e]+$/.test(accessToken) && !Number.isNaN(expiresAt)) {
    return { token: accessToken, expiresAt: new Date(expiresAt) }
  }
  throw new DeliveryError('token_unreadable', `the response of ${hostOf(url)} contains no token that can be used`)
}

/** Returns what to correct, by the error codes of RFC 6749 and RFC 8693 and by what the service of Google says with them. */
const correctionFor = (reason: string): string => {
  if (/audience/i.test(reason))
    return 'the token in credential_source is for another audience, or audience names no provider; correct one of them'
  if (/expired|\biat\b|\bexp\b|lifetime|stale/i.test(reason)) return 'the token in credential_source has expired; let its system renew it'
  if (/issuer/i.test(reason)) return 'the provider in audience trusts another issuer; correct one of them'
  if (/attribute|condition/i.test(reason)) return 'a condition of the provider refuses the token; change the condition'
  return 'check the provider in audience, and the token in credential_source'
}

const isExpired = (reason: string) => /expired|\biat\b|\bexp\b|lifetime|stale/i.test(reason)

const exchangeError = (response: CloudResponse): DeliveryError => {
  const reason = reasonOf(response)
  const refusal = `Google does not accept the token of the workload: ${correctionFor(reason)}${reason && ` (${reason})`}`
  const answered = `Google answered ${response.status} to the exchange of the token${reason && `: ${reason}`}`
  // The next attempt reads the token again.
  return noToken(response, answered, isFinalRefusal(response) ? refusal : undefined, !isExpired(reason))
}

const impersonationError = (response: CloudResponse): DeliveryError => {
  const { error } = parseObject(response.text)
  const { status: name, message } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  const reason = [name, message].filter((part) => typeof part === 'string').join(': ')
  const isNamed = typeof name === 'string' && /^(?:PERMISSION_DENIED|NOT_FOUND|INVALID_ARGUMENT)$/.test(name)
  const isFinal = isNamed && isPermanentStatus(response.status, waitOf(response.headers, new Date()))
  const refusal = `Google issued no token: the federated account may not act for the service account; grant it the role Service Account Token Creator or Workload Identity User, and enable the IAM Service Account Credentials API (${reason})`
  const answered = `Google answered ${response.status} to the request for a token of the service account${reason && `: ${reason}`}`
  return noToken(response, answered, isFinal ? refusal : undefined)
}
