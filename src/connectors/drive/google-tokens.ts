import { createPrivateKey } from 'node:crypto'
import { SignJWT } from 'jose'
import { DeliveryError } from '../connector.ts'
import {
  createAccessTokens,
  isFinalRefusal,
  noToken,
  reasonOf,
  requestAccessToken,
  type AccessToken,
  type AccessTokens,
  type TokenCache,
} from '../shared/access-tokens.ts'
import type { CloudResponse, RequestContext } from '../shared/cloud-api.ts'
import type { ReadTokenFile } from '../shared/token-files.ts'
import { requestFederatedToken, type ExternalAccount, type GoogleHosts } from './external-account.ts'
import type { ServiceAccount } from './schema.ts'

export interface GooglePrincipal {
  account: ServiceAccount | ExternalAccount
  /** The user to act for, by domain-wide delegation. */
  subject?: string | undefined
  scope: string
  /** Decides which files with tokens the account may use. */
  workspace: string
}

// The longest lifetime that Google accepts.
const assertionLifetime = '1h'

const requestServiceToken = async (
  account: ServiceAccount,
  { subject, scope }: Omit<GooglePrincipal, 'account' | 'workspace'>,
  context: RequestContext,
): Promise<AccessToken> => {
  const assertion = await new SignJWT({ scope, ...(subject !== undefined && { sub: subject }) })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(account.private_key_id !== undefined && { kid: account.private_key_id }) })
    .setIssuer(account.client_email)
    .setAudience(account.token_uri)
    .setIssuedAt()
    .setExpirationTime(assertionLifetime)
    .sign(createPrivateKey(account.private_key))
  return requestAccessToken(
    account.token_uri,
    { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion },
    { toError: (response) => tokenError(response, subject) },
    context,
  )
}

/** Gives out tokens for service accounts, and for accounts of other systems that Google trusts. */
export const createGoogleTokens = (
  cache: TokenCache,
  federation: { readTokenFile: ReadTokenFile; hosts: GoogleHosts },
): AccessTokens<GooglePrincipal> =>
  createAccessTokens(cache, 'google', async ({ account, ...rest }: GooglePrincipal, context) => {
    if (account.type === 'service_account') return requestServiceToken(account, rest, context)
    if (rest.subject === undefined) return requestFederatedToken(account, rest, context, federation)
    throw new DeliveryError(
      'config_invalid',
      'an external_account cannot act for a user; remove subject, and choose a folder of a shared drive',
    )
  })

const tokenError = (response: CloudResponse, subject: string | undefined): DeliveryError => {
  const reason = reasonOf(response)
  const refused = `Google issued no token: ${correctionFor(reason, subject)}${reason && ` (${reason})`}`
  const answered = `Google answered ${response.status} to the token request${reason && `: ${reason}`}`
  // Clocks are usually corrected without a change to the destination.
  return noToken(response, answered, isFinalRefusal(response) ? refused : undefined, !isClockSkew(reason))
}

const isClockSkew = (reason: string) => /\biat\b|\bexp\b|short-lived/i.test(reason)

const correctionFor = (reason: string, subject: string | undefined) => {
  if (isClockSkew(reason)) return "the relay's clock differs from Google's; set the clock"
  if (reason.startsWith('unauthorized_client')) {
    return `the service account is not permitted to act for ${subject ?? 'others'}; grant it domain-wide delegation, or remove subject`
  }
  if (/email|user id/i.test(reason)) return 'subject is no user of the domain; correct it'
  if (/not found|disabled/i.test(reason)) return 'the service account does not exist or is disabled; enable it, or use another one'
  return 'the key does not belong to the service account (any more); create a new key file'
}

// The narrower scope drive.file does not include folders that other users created. The account reaches only what is
// shared with it.
export const driveScope = 'https://www.googleapis.com/auth/drive'
