import { types } from 'node:util'
import { DeliveryError } from '../connector.ts'
import { toDeliveryError } from '../shared/errors.ts'
import type { FinalAnswer } from '../shared/final-answers.ts'
import { waitOf } from '../shared/retry-after.ts'
import type { RolePrincipal } from './sessions.ts'

/** The error of the SDK for an answer of the Security Token Service, or for an identity that it does not find. */
interface ServiceError extends Error {
  $metadata?: { httpStatusCode?: number; requestId?: string }
  $response?: { headers?: Record<string, string> }
}

// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html and API_AssumeRoleWithWebIdentity.html
const refusals: Record<string, string> = {
  AccessDenied:
    'the role does not exist, or its trust policy does not allow it to this identity with this external_id; correct one of them',
  IDPRejectedClaim: 'the identity provider rejects the token in federated_token_file; correct its subject or its audience',
  InvalidIdentityToken:
    'the account has no identity provider for issuer and audience of the token in federated_token_file; add it, or correct the token',
  RegionDisabled: 'the account has switched AWS STS off in this region; activate it, or correct region',
  ValidationError: 'role_arn or external_id is not valid; correct it',
}

/** The answers of AWS to a role after which nothing is sent again. */
export const sessionFinalAnswers: readonly FinalAnswer[] = Object.entries(refusals).map(([code, meaning]) => ({
  answer: `\`${code}\` of AWS STS`,
  meaning: meaning.split(';')[0]!,
}))

// What the operator corrects, without a change of the destination.
const ofTheRelay =
  /^(?:InvalidClientTokenId|UnrecognizedClient|SignatureDoesNotMatch|MissingAuthenticationToken|IncompleteSignature|InvalidAccessKeyId|OptInRequired)$/
const saysClock = /signature (?:has )?(?:expired|not yet)|(?:earlier|later) than|skew|not yet valid|before its/i
// In answers whose code is final: the token, or the key of its issuer, is another one soon.
const passesByMessage = /expired|not yet valid|before its|retrieve (?:the )?verification key|could ?n[o']t retrieve|try again|throttl/i

/** Turns a failure to assume a role into a delivery error. Retries everything that is not certainly permanent. */
export const sessionError = (thrown: unknown, { tokenFile }: Pick<RolePrincipal, 'tokenFile'>): DeliveryError => {
  if (thrown instanceof DeliveryError) return thrown
  const { $metadata, $response, name, message } = thrown as ServiceError
  const status = $metadata?.httpStatusCode
  if (!types.isNativeError(thrown)) return toDeliveryError(thrown, 'request_failed')
  if (status === undefined) return identityError(thrown)
  // The SDK could not read what was answered.
  if (status < 300)
    return new DeliveryError('answer_unreadable', `something before AWS STS answered ${status}; check the proxies before it`)

  const code = name.replace(/(?:Exception|Fault)$/, '')
  const wait = waitOf($response?.headers ?? {}, new Date())
  const details = {
    answer: { status, body: `${code}: ${message}`, request_id: $metadata?.requestId },
    cause: thrown,
    retryAfterMs: wait,
  }
  const refused = (correction: string, permanent: boolean) =>
    new DeliveryError('credentials_refused', `AWS issued no session: ${correction} (${code}: ${message})`, { permanent, ...details })

  if (saysClock.test(message)) return refused("the relay's clock differs from that of AWS; set the clock", false)
  if (code.startsWith('ExpiredToken')) {
    return refused(
      tokenFile === undefined
        ? "the relay's own credentials have expired; let its system renew them"
        : 'the token in federated_token_file has expired; let its system renew it',
      false,
    )
  }
  if (ofTheRelay.test(code)) return refused("AWS does not accept the relay's own identity; the operator must correct it", false)
  const isFinal = Object.hasOwn(refusals, code) && status < 500 && wait === undefined
  if (isFinal) return refused(refusals[code]!, !passesByMessage.test(message))
  return new DeliveryError(`http_${status}`, `AWS STS answered ${status} ${code}: ${message}`, { permanent: false, ...details })
}

/** A failure before AWS has answered: of the network, or of the search for the identity of the relay. */
const identityError = (thrown: Error): DeliveryError => {
  const error = toDeliveryError(thrown, 'request_failed')
  if (error.code !== 'request_failed') return error
  if (/^(?:CredentialsProviderError|TokenProviderError|ProviderError)$/.test(thrown.name)) {
    return new DeliveryError(
      'credentials_refused',
      `the relay has no AWS identity of its own, with which it could ask for the role (${thrown.message}); the operator must give one to its processes`,
      { permanent: false, cause: thrown },
    )
  }
  return thrown.name === 'TimeoutError'
    ? new DeliveryError('timeout', `AWS STS did not answer in time (${thrown.message})`, { cause: thrown })
    : error
}
