import { plainText } from './text.ts'

/** Error codes of the HTTP APIs with their status. docs/errors.md says how a client handles each code. */
export const errorStatus = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  nothing_to_retry: 409,
  gone: 410,
  precondition_failed: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  validation_failed: 422,
  abap_exception: 422,
  rate_limited: 429,
  rfc_failed: 502,
  unavailable: 503,
  rfc_timeout: 504,
  loop_detected: 508,
} as const

export type ErrorCode = keyof typeof errorStatus

export interface ErrorDetail {
  path: string
  message: string
}

/** Problem that the user of the command line can fix. The command prints its message instead of a stack trace. */
export class UserError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'UserError'
  }
}

// Some name everything that is in the way.
const messageMaxCharacters = 4_000

/**
 * Refusal of a use case. The API reports it with its code and message, and the command line prints the message. Any other error is a bug,
 * which the API reports as 500 without detail. What others have said, in the message and in the details, becomes plain text.
 */
export class AppError extends UserError {
  readonly code: ErrorCode
  readonly details: ErrorDetail[] | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, message: string, options: { details?: ErrorDetail[]; retryAfterSeconds?: number; cause?: unknown } = {}) {
    super(plainText(message, messageMaxCharacters), options)
    this.name = 'AppError'
    this.code = code
    this.details = options.details?.map((detail) => ({ path: plainText(detail.path), message: plainText(detail.message) }))
    this.retryAfterSeconds = options.retryAfterSeconds
  }

  get status(): number {
    return errorStatus[this.code]
  }
}

/** Returns the message of anything thrown. */
export const messageOf = (thrown: unknown): string => {
  if (thrown instanceof AggregateError && !thrown.message) return thrown.errors.map(messageOf).join('; ')
  return thrown instanceof Error ? thrown.message : String(thrown)
}

const certificateCodes =
  /^(CERT_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)/

/** Returns true if Node.js does not trust the TLS certificate of a server. @param code of the system error */
export const isUntrustedCertificate = (code: string): boolean => certificateCodes.test(code)

/** Returns true if the engine was refused memory outside of its heap, even if a library says so. A lack of memory in the heap ends the process. */
export const isOutOfMemory = (thrown: unknown): boolean => /array buffer allocation failed/i.test(messageOf(thrown))
