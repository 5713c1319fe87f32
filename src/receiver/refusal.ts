import { OnLegalHold } from '../archive/legal-holds.ts'
import { AppError } from '../base/errors.ts'
import { reasonOf } from '../base/failure-log.ts'
import { plainText } from '../base/text.ts'
import { MultipartError } from '../content-server/multipart.ts'
import { isLockTimeout, isLostRace, isOutage, isWorkspaceGone } from '../db/errors.ts'
import { refusals, type RefusalCode } from '../domain/refusal-codes.ts'
import { HomeFailure } from '../home/failure.ts'
import { UpstreamFailure } from '../migration/failure.ts'

/**
 * Returns true if an operator can remove the cause of a refusal, and then replay the request: the repository was missing, or the certificate was not
 * yet active.
 */
export const isWorthReplaying = (code: RefusalCode): boolean => /^(?:repository|certificate|signature|document)_/.test(code)

const defaultRetryAfterSeconds = 5

/** A refusal whose message the source system receives. */
export class Refusal extends Error {
  readonly code: RefusalCode
  readonly retryAfterSeconds: number | undefined

  constructor(code: RefusalCode, message: string, options: { retryAfterSeconds?: number; cause?: unknown } = {}) {
    super(plainText(message), { cause: options.cause })
    this.name = 'Refusal'
    this.code = code
    this.retryAfterSeconds = options.retryAfterSeconds ?? (refusals[code].status === 503 ? defaultRetryAfterSeconds : undefined)
  }
}

/** Converts anything thrown by a command to a refusal. */
export const toRefusal = (thrown: unknown): Refusal => {
  if (thrown instanceof Refusal) return thrown
  if (thrown instanceof MultipartError) {
    return new Refusal(thrown.code === 'malformed' ? 'invalid_parameter' : 'too_large', thrown.message)
  }
  if (thrown instanceof UpstreamFailure) return new Refusal('upstream_failed', thrown.message, { cause: thrown.cause ?? thrown.message })
  if (thrown instanceof HomeFailure) return new Refusal('home_failed', thrown.sentence, { cause: reasonOf(thrown) })
  if (isLockTimeout(thrown)) return new Refusal('document_locked', 'another request is changing this document, try again later')
  if (thrown instanceof OnLegalHold) return new Refusal('document_on_hold', 'the document is on legal hold and must not be deleted')
  const isGone = isWorkspaceGone(thrown) || (thrown instanceof AppError && thrown.code === 'not_found')
  if (isGone)
    return new Refusal('repository_not_found', 'the repository or its workspace does not exist any more', { cause: reasonOf(thrown) })
  const isUnavailable = isOutage(thrown) || isLostRace(thrown) || (thrown instanceof AppError && thrown.code === 'unavailable')
  return isUnavailable
    ? new Refusal('unavailable', 'the service is temporarily unavailable, try again later', { cause: reasonOf(thrown) })
    : new Refusal('internal_error', 'an internal error occurred', { cause: thrown })
}
