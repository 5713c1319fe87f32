/**
 * Every refusal of the content-server protocol, with its status: the code begins X-ErrorDescription. The protocol knows neither
 * 405 nor 413, hence the 400s. docs/source-system.md says what an operator does about each.
 */
export const refusalStatus = {
  invalid_parameter: 400,
  too_large: 400,
  too_many_certificates: 400,
  signature_missing: 401,
  signature_invalid: 401,
  url_expired: 401,
  access_mode_denied: 401,
  certificate_unknown: 401,
  certificate_inactive: 401,
  document_exists: 403,
  repository_inactive: 403,
  address_not_allowed: 403,
  repository_not_found: 404,
  document_not_found: 404,
  component_not_found: 404,
  component_offline: 409,
  document_locked: 409,
  certificate_unreadable: 406,
  internal_error: 500,
  unavailable: 503,
} as const

export type RefusalCode = keyof typeof refusalStatus

/** A refusal meant for the source system. */
export class Refusal extends Error {
  readonly code: RefusalCode

  constructor(code: RefusalCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'Refusal'
    this.code = code
  }
}
