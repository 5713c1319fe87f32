import type { components } from './schema.ts'

type Envelope = components['schemas']['Error']

interface ErrorFacts {
  status: number
  code: RelayError['code']
  message: string
  requestId?: string | undefined
  docUrl?: string | undefined
  details?: RelayError['details'] | undefined
  nothingChanged?: boolean | undefined
  retryAfterSeconds?: number | undefined
}

/** An error response of the API, or no response. Decide by `code`, display `message`, and quote `requestId` to the operator. */
export class RelayError extends Error {
  /** The HTTP status, or 0 without a response. */
  readonly status: number
  /** The code of the API, `no_response`, or `unknown` if a proxy has answered. */
  readonly code: Envelope['error']['code'] | 'unknown' | 'no_response'
  readonly requestId: string | undefined
  /** The address of the page that explains the code, if the API has answered. */
  readonly docUrl: string | undefined
  /** The invalid values, if the error concerns single values. */
  readonly details: { path: string; message: string }[]
  /**
   * True if the API states that nothing was changed. Otherwise, a status of 500 or more, or no response, leaves open whether a change took
   * effect.
   */
  readonly nothingChanged: boolean
  /** The number of seconds to wait before the next request, if the API states it. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    { status, code, message, requestId, docUrl, details = [], nothingChanged = false, retryAfterSeconds }: ErrorFacts,
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.name = 'RelayError'
    this.status = status
    this.code = code
    this.requestId = requestId
    this.docUrl = docUrl
    this.details = details
    this.nothingChanged = nothingChanged
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** Returns the seconds of `Retry-After`. The API sends seconds. A proxy may send a date, which is ignored. */
export const retryAfterOf = ({ headers }: Response): number | undefined => {
  const text = headers.get('retry-after') ?? ''
  return /^\d+$/.test(text) ? Number(text) : undefined
}

const errorOf = (response: Response, envelope: Partial<Envelope>): RelayError => {
  const {
    code = 'unknown',
    message,
    request_id: requestId,
    doc_url: docUrl,
    nothing_changed: nothingChanged,
    details,
  } = envelope.error ?? {}
  return new RelayError({
    status: response.status,
    code,
    message: message ?? `The response was ${response.status} ${response.statusText}`.trimEnd(),
    requestId: requestId ?? response.headers.get('x-relay-request-id') ?? undefined,
    docUrl,
    details,
    nothingChanged,
    retryAfterSeconds: retryAfterOf(response),
  })
}

/** Returns the innermost reason that `fetch` gives: its own message is `fetch failed`. */
const reasonOf = (thrown: unknown): string => {
  if (!(thrown instanceof Error)) return String(thrown)
  if (thrown.cause !== undefined) return reasonOf(thrown.cause)
  // Several addresses of one host name were tried.
  if (thrown instanceof AggregateError && thrown.errors.length > 0) return reasonOf(thrown.errors[0])
  return thrown.message
}

/** Returns the error of a request without a response. The query is left out: it may be long. */
export const noResponse = ({ method, url }: Request, cause: unknown): RelayError =>
  new RelayError(
    { status: 0, code: 'no_response', message: `${method} ${url.split('?')[0]} got no response: ${reasonOf(cause)}` },
    { cause },
  )

/**
 * Returns the body of a successful response.
 * @throws RelayError for any other response, and without one. What aborts the signal of a request is thrown as it is
 */
export const unwrap = async <T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> => {
  const { data, error, response } = await call
  // An error response of a proxy has a different form.
  if (!response.ok) throw errorOf(response, isEnvelope(error) ? error : {})
  return data as T
}

const isEnvelope = (error: unknown): error is Envelope =>
  typeof error === 'object' && error !== null && 'error' in error && typeof error.error === 'object' && error.error !== null
