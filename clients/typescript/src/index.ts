import createFetchClient, { type Client } from 'openapi-fetch'
import type { components, operations, paths } from './schema.ts'

export type { components, operations, paths }

type Envelope = components['schemas']['Error']

export interface ClientOptions {
  /** The URL of the installation, for example `https://relay.example`. */
  baseUrl: string
  /** The workspace: `{userSlug}/{workspaceSlug}`. */
  workspace: string
  /** An API key of the workspace: `relay_<id>_<secret>`. */
  apiKey: string
  /** Replaces the global `fetch`, for example to use a proxy or a time limit, or in a test. */
  fetch?: (request: Request) => Promise<Response>
}

export type RelayClient = Client<paths>

/**
 * Creates a client of one workspace. `GET`, `POST`, `PUT`, `PATCH` and `DELETE` accept a path relative to the workspace
 * and resolve to `{ data, error, response }`. Unless the response has no body, either `data` or `error` is set.
 */
export const createClient = ({ baseUrl, workspace, apiKey, fetch }: ClientOptions): RelayClient => {
  const address = `${baseUrl.replace(/\/+$/, '')}/api/${workspace.split('/').map(encodeURIComponent).join('/')}`
  return createFetchClient<paths>({
    baseUrl: address,
    headers: { authorization: `Bearer ${apiKey}`, accept: 'application/json' },
    ...(fetch && { fetch }),
  })
}

/** An error response of the API. Decide by `code`, display `message`, and quote `requestId` to the operator. */
export class RelayError extends Error {
  readonly status: number
  readonly code: Envelope['error']['code'] | 'unknown'
  readonly requestId: string | undefined
  /** The invalid values, if the error concerns single values. */
  readonly details: { path: string; message: string }[]
  /** True if the API states that nothing was changed. Otherwise, a status of 500 or more leaves open whether a change took effect. */
  readonly nothingChanged: boolean
  /** The number of seconds to wait before the next request, if the API states it. */
  readonly retryAfterSeconds: number | undefined

  constructor(response: Response, envelope: Partial<Envelope> | undefined) {
    const { code, message, request_id: requestId, nothing_changed: nothingChanged, details } = envelope?.error ?? {}
    super(message ?? `The response was ${response.status} ${response.statusText}`.trimEnd())
    this.name = 'RelayError'
    this.status = response.status
    this.code = code ?? 'unknown'
    this.requestId = requestId ?? response.headers.get('x-relay-request-id') ?? undefined
    this.details = details ?? []
    this.nothingChanged = nothingChanged ?? false
    const retryAfter = response.headers.get('retry-after') ?? ''
    // The API sends seconds. A proxy may send a date, which is ignored.
    this.retryAfterSeconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined
  }
}

/** Returns the body of a successful response. @throws RelayError for any other response */
export const unwrap = async <T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> => {
  const { data, error, response } = await call
  // An error response of a proxy has a different form.
  if (!response.ok) throw new RelayError(response, isEnvelope(error) ? error : undefined)
  return data as T
}

const isEnvelope = (error: unknown): error is Envelope =>
  typeof error === 'object' && error !== null && 'error' in error && typeof error.error === 'object' && error.error !== null
