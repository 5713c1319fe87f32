import { createPrivateKey } from 'node:crypto'
import { SignJWT } from 'jose'
import { cloudCall, objectOf, targetAnswer, type CallContext, type CloudAnswer } from './cloud-call.ts'
import { DeliveryError } from './connector.ts'
import type { ServiceAccount } from './drive-target.ts'
import { isPermanentStatus, retryAfterMs } from './http-answer.ts'
import { createTokens, type AccessToken, type Tokens } from './tokens.ts'

export interface GooglePrincipal {
  account: ServiceAccount
  /** The user to act for, by domain-wide delegation. */
  subject?: string | undefined
  scope: string
}

// the longest Google allows
const assertionLife = '1h'

const request = async ({ account, subject, scope }: GooglePrincipal, context: CallContext): Promise<AccessToken> => {
  const assertion = await new SignJWT({ scope, ...(subject !== undefined && { sub: subject }) })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(account.private_key_id !== undefined && { kid: account.private_key_id }) })
    .setIssuer(account.client_email)
    .setAudience(account.token_uri)
    .setIssuedAt()
    .setExpirationTime(assertionLife)
    .sign(createPrivateKey(account.private_key))
  const answer = await cloudCall(
    account.token_uri,
    {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }).toString(),
    },
    context,
  )
  if (answer.status >= 300) throw refusal(answer, subject)
  const { access_token: token, expires_in: lifeSeconds } = objectOf(answer.text)
  if (typeof token !== 'string' || typeof lifeSeconds !== 'number') {
    throw new DeliveryError('token_unreadable', 'the token address of the key file answered, but not with a token')
  }
  return { token, expiresAt: new Date(Date.now() + lifeSeconds * 1_000) }
}

/** Tokens for service accounts. */
export const createGoogleTokens = (): Tokens<GooglePrincipal> => createTokens(request)

const refusal = (answer: CloudAnswer, subject: string | undefined): DeliveryError => {
  const { error, error_description: description } = objectOf(answer.text)
  const said = [error, description].filter((part) => typeof part === 'string').join(': ')
  const more = { retryAfterMs: retryAfterMs(answer.headers['retry-after'], new Date()), answer: targetAnswer(answer) }
  if (!isPermanentStatus(answer.status)) {
    return new DeliveryError(
      `http_${answer.status}`,
      `Google answered ${answer.status} to the request for a token${said && `: ${said}`}`,
      more,
    )
  }
  return new DeliveryError('credentials_refused', `Google gave no token: ${remedy(said, subject)}${said && ` (${said})`}`, {
    ...more,
    // clocks come to agree again by themselves
    permanent: !clockDiffers(said),
  })
}

const clockDiffers = (said: string) => /\biat\b|\bexp\b|short-lived/i.test(said)

const remedy = (said: string, subject: string | undefined) => {
  if (clockDiffers(said)) return "the relay's clock differs from Google's: set it"
  if (said.startsWith('unauthorized_client')) {
    return `the service account may not act for ${subject ?? 'others'}: grant it domain-wide delegation, or leave out subject`
  }
  if (/email|user id/i.test(said)) return 'subject is no user of the domain: correct it'
  if (/not found|disabled/i.test(said)) return 'the service account is gone or disabled: enable it, or use another one'
  return 'the key is not, or no longer, one of the service account: make a new key file'
}

// the narrower drive.file does not see a folder that somebody else made; what the account reaches is what is shared with it
export const driveScope = 'https://www.googleapis.com/auth/drive'
