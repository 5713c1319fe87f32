import createFetchClient, { type Client } from 'openapi-fetch'
import type { components, operations, paths } from './schema.ts'

export type { components, operations, paths }

type Envelope = components['schemas']['Error']

export interface ClientOptions {
  /** Of the installation, like `https://relay.example`. */
  baseUrl: string
  /** `{userSlug}/{workspaceSlug}`. */
  workspace: string
  /** Of that workspace: `relay_<id>_<secret>`. */
  apiKey: string
  /** In place of the global one: for a proxy, a time limit of your own, or a test. */
  fetch?: (request: Request) => Promise<Response>
}

export type RelayClient = Client<paths>

/**
 * A client of one workspace. `GET`, `POST`, `PUT`, `PATCH` and `DELETE` take an address of the API below the workspace, and resolve to
 * `{ data, error, response }`: exactly one of `data` and `error` is there, unless the answer has no body.
 */
export const createClient = ({ baseUrl, workspace, apiKey, fetch }: ClientOptions): RelayClient => {
  const address = `${baseUrl.replace(/\/+$/, '')}/api/${workspace.split('/').map(encodeURIComponent).join('/')}`
  return createFetchClient<paths>({
    baseUrl: address,
    headers: { authorization: `Bearer ${apiKey}`, accept: 'application/json' },
    ...(fetch && { fetch }),
  })
}

/** A refusal of the API: decide by `code`, show `message`, quote `requestId` to the operator. */
export class RelayError extends Error {
  readonly status: number
  readonly code: Envelope['error']['code'] | 'unknown'
  readonly requestId: string | undefined
  /** The values at fault, where single values are. */
  readonly details: { path: string; message: string }[]
  /** How long the API asks to wait, where it does. */
  readonly retryAfterSeconds: number | undefined

  constructor(response: Response, envelope: Partial<Envelope> | undefined) {
    const { code, message, request_id: requestId, details } = envelope?.error ?? {}
    super(message ?? `the answer was ${response.status} ${response.statusText}`.trimEnd())
    this.name = 'RelayError'
    this.status = response.status
    this.code = code ?? 'unknown'
    this.requestId = requestId ?? response.headers.get('x-relay-request-id') ?? undefined
    this.details = details ?? []
    const retryAfter = response.headers.get('retry-after') ?? ''
    // the API says seconds; a proxy in between may say a date
    this.retryAfterSeconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined
  }
}

/** The body of a success. @throws RelayError */
export const unwrap = async <T>(answer: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> => {
  const { data, error, response } = await answer
  // what a proxy in between answers has another form
  if (!response.ok) throw new RelayError(response, isEnvelope(error) ? error : undefined)
  return data as T
}

const isEnvelope = (error: unknown): error is Envelope =>
  typeof error === 'object' && error !== null && 'error' in error && typeof error.error === 'object' && error.error !== null
