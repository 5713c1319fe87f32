import { AppError, messageOf } from '../base/errors.ts'
import { isLockTimeout, isLostRace, isOutage, isWorkspaceGone } from '../db/database.ts'

/**
 * Codes of the refusals in the content-server protocol, with their HTTP statuses. X-ErrorDescription begins with the code. The protocol
 * defines neither 405 nor 413, hence the 400s. docs/source-system.md tells operators what to do about each code.
 */
export const refusalStatus = {
  invalid_parameter: 400,
  too_large: 400,
  signature_missing: 401,
  signature_invalid: 401,
  url_expired: 401,
  access_mode_denied: 401,
  certificate_unknown: 401,
  certificate_inactive: 401,
  document_exists: 403,
  command_not_allowed: 403,
  repository_inactive: 403,
  address_not_allowed: 403,
  repository_not_found: 404,
  document_not_found: 404,
  component_not_found: 404,
  component_offline: 409,
  document_locked: 409,
  certificate_unreadable: 406,
  certificate_too_weak: 406,
  internal_error: 500,
  too_many_certificates: 503,
  rate_limited: 503,
  unavailable: 503,
  quota_exceeded: 507,
  loop_detected: 508,
} as const

export type RefusalCode = keyof typeof refusalStatus

/**
 * Returns true if somebody mends the cause of a refusal, and then replays the request: the repository was missing, or the certificate was not
 * yet active.
 */
export const isWorthReplaying = (code: RefusalCode): boolean => /^(?:repository|certificate|signature|document)_/.test(code)

const defaultRetryAfterSeconds = 5

/** A refusal whose message the source system receives. */
export class Refusal extends Error {
  readonly code: RefusalCode
  readonly retryAfterSeconds: number | undefined

  constructor(code: RefusalCode, message: string, options: { retryAfterSeconds?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'Refusal'
    this.code = code
    this.retryAfterSeconds = options.retryAfterSeconds ?? (refusalStatus[code] === 503 ? defaultRetryAfterSeconds : undefined)
  }
}

/** Converts anything thrown by a command to a refusal. */
export const toRefusal = (thrown: unknown): Refusal => {
  if (thrown instanceof Refusal) return thrown
  if (isLockTimeout(thrown)) return new Refusal('document_locked', 'another request is changing this document, try again later')
  const isGone = isWorkspaceGone(thrown) || (thrown instanceof AppError && thrown.code === 'not_found')
  if (isGone)
    return new Refusal('repository_not_found', 'the repository or its workspace does not exist any more', { cause: messageOf(thrown) })
  const isUnavailable = isOutage(thrown) || isLostRace(thrown) || (thrown instanceof AppError && thrown.code === 'unavailable')
  return isUnavailable
    ? new Refusal('unavailable', 'the service is temporarily unavailable, try again later', { cause: messageOf(thrown) })
    : new Refusal('internal_error', 'an internal error occurred', { cause: thrown })
}

/** Replaces everything but printable ASCII by a question mark. */
export const printableAscii = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '?')
