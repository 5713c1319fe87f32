/**
 * Codes of the refusals in the content-server protocol, with their HTTP statuses and what to do about them. X-ErrorDescription begins with
 * the code. The protocol defines neither 405 nor 413, hence the 400s. docs/errors.md lists them, and docs/source-system.md
 * the causes of some.
 */
export const refusals = {
  invalid_parameter: { status: 400, remedy: 'Correct the parameter or the part of the body that the answer names.' },
  too_large: { status: 400, remedy: 'If the document is legitimate, the operator of the relay has to raise RELAY_DOCUMENT_MAX_BYTES.' },
  signature_missing: {
    status: 401,
    remedy: 'Untick "No signature" in transaction OAC0 of the source system, or let the repository accept unsigned requests.',
  },
  signature_invalid: {
    status: 401,
    remedy:
      'If the PSE of the source system was renewed, send its certificate again and activate it. Otherwise check if a proxy rewrites the URL.',
  },
  url_expired: {
    status: 401,
    remedy: 'Compare the times in the answer, and correct the clock or the time zone of the source system or of the relay.',
  },
  access_mode_denied: { status: 401, remedy: 'Have the source system sign the URL for this access: the answer names the accessMode.' },
  certificate_unknown: { status: 401, remedy: 'Send the certificate of the source system to this repository, and activate it.' },
  certificate_inactive: { status: 401, remedy: 'Compare the fingerprint of the certificate, and activate it.' },
  document_exists: { status: 403, remedy: 'Nothing: the first document is stored.' },
  command_not_allowed: { status: 403, remedy: 'If the source system needs mCreate, let the repository accept it.' },
  repository_inactive: { status: 403, remedy: 'Activate the repository.' },
  address_not_allowed: {
    status: 403,
    remedy:
      'Add the address to receiver_allowed_cidrs in the settings. Behind a proxy, the operator of the relay has to set RELAY_TRUST_PROXY.',
  },
  repository_not_found: {
    status: 404,
    remedy: 'Compare the HTTP script and the name of the repository with those of the source system, including upper and lower case.',
  },
  document_not_found: { status: 404, remedy: 'Look for the request that created the document.' },
  component_not_found: { status: 404, remedy: 'Look for the request that created the document.' },
  component_offline: { status: 409, remedy: 'Nothing: retention has removed the content.' },
  document_locked: { status: 409, remedy: 'Nothing as a rule: the source system repeats the request.' },
  document_on_hold: { status: 409, remedy: 'Nothing, as long as the hold applies. When it is lifted, the request can be replayed.' },
  certificate_unreadable: { status: 406, remedy: 'Export the certificate again, and examine it with openssl x509.' },
  certificate_too_weak: { status: 406, remedy: 'Generate a longer key in the source system.' },
  internal_error: { status: 500, remedy: 'Report the error as a defect of the relay, with the id of the request.' },
  too_many_certificates: { status: 503, remedy: 'Wait a minute. Behind a proxy, the operator of the relay has to set RELAY_TRUST_PROXY.' },
  rate_limited: { status: 503, remedy: 'If the requests are legitimate, raise receiver_max_requests_per_minute in the settings.' },
  unavailable: { status: 503, remedy: 'Restore the database or the content store. The source system can then repeat the request.' },
  upstream_failed: {
    status: 503,
    remedy: 'Restore the content server that the repository names as its upstream, or correct the upstream. The answer says what it did.',
  },
  home_failed: {
    status: 503,
    remedy: 'Restore the destination that is the home of the repository, or the document there. The log of the relay says what was found.',
  },
  quota_exceeded: { status: 507, remedy: 'Raise receiver_max_bytes in the settings, or let retention remove content that was delivered.' },
  loop_detected: { status: 508, remedy: 'Correct the url of the destination that leads back to the relay.' },
} as const satisfies Record<string, { status: number; remedy: string }>

export type RefusalCode = keyof typeof refusals

export const isRefusalCode = (code: string): code is RefusalCode => Object.hasOwn(refusals, code)
