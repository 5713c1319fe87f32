/** Every refusal the HTTP surfaces know, with its status. docs/errors.md says what a caller does about each. */
export const errorStatus = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  gone: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  validation_failed: 422,
  abap_exception: 422,
  rate_limited: 429,
  rfc_failed: 502,
  unavailable: 503,
  rfc_timeout: 504,
} as const

export type ErrorCode = keyof typeof errorStatus

export interface ErrorDetail {
  path: string
  message: string
}

/** A refusal meant for the caller: its message is shown. Anything else thrown is a bug, and shown as 500 without detail. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetail[] | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(code: ErrorCode, message: string, options: { details?: ErrorDetail[]; retryAfterSeconds?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.details = options.details
    this.retryAfterSeconds = options.retryAfterSeconds
  }

  get status(): number {
    return errorStatus[this.code]
  }
}

/** What ends a command of ours with one plain sentence instead of a stack trace: something the person at the keyboard can mend. */
export class UserError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'UserError'
  }
}

/** The text of anything thrown. */
export const messageOf = (thrown: unknown): string => {
  if (thrown instanceof AggregateError && !thrown.message) return thrown.errors.map(messageOf).join('; ')
  return thrown instanceof Error ? thrown.message : String(thrown)
}
