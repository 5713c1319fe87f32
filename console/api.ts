import { signal } from '@preact/signals'
import type { components } from '../clients/typescript/src/schema.ts'
import type * as ErrorTexts from './texts/api-errors.ts'
import { chosenWorkspace } from './workspace-choice.ts'

/** The types of the API, generated from its description. */
export type Schemas = components['schemas']
export type Level = 'viewer' | 'member' | 'admin'

interface WorkspaceAccess {
  user_slug: string
  workspace_slug: string
  level: Level
}

/** How a workspace is at present. Its times are null if there is none. */
export interface WorkspaceState {
  user_slug: string
  workspace_slug: string
  /** The number of documents that need attention. */
  attention: number
  /** The number of destinations that fail again and again. */
  failing: number
  /** The number of repositories that have refused all of their latest requests. */
  refusing: number
  /** The number of deliveries that an inactive connection holds. */
  held: number
  oldest_open_at: string | null
  last_request_at: string | null
  stored_bytes: number
  max_bytes: number | null
}

export interface Session {
  user_slug: string
  workspace_slug: string
  level: Level
  /** Id of the API key that is signed in, or null if a person is. */
  key_id: string | null
  /** The person who is signed in, or null if an API key is. */
  person: { id: string; name: string } | null
  /** All that the session gives access to. */
  workspaces: WorkspaceAccess[]
  expires_at: string
  temporal_workflows_url: string | null
}

/** Undefined until it is known whether this browser is signed in. */
export const session = signal<Session | null | undefined>(undefined)
/** Why that is not known: the relay does not answer, or cannot. */
export const sessionError = signal<ApiError | undefined>()
/** The name of the provider through which people can sign in, if there is one. */
export const provider = signal<string | undefined>()
/** True if the session has ended without the user's doing. */
export const sessionEnded = signal(false)

export interface ErrorDetail {
  path: string
  message: string
}

interface ErrorParts {
  requestId?: string | undefined
  details?: readonly ErrorDetail[] | undefined
  texts?: typeof ErrorTexts | undefined
  nothingChanged?: boolean | undefined
}

/** A refusal by the relay, or 0 `unreachable` if it did not answer. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | undefined
  /** What is wrong with which field of the request, if the relay has said it. */
  readonly details: readonly ErrorDetail[]
  /** Say what the code means. Undefined if they could not be loaded. */
  readonly texts: typeof ErrorTexts | undefined
  /** Whether a change that failed without a refusal left everything unchanged; false if that is not known. */
  readonly nothingChanged: boolean | undefined
  constructor(status: number, code: string, message: string, { requestId, details = [], texts, nothingChanged }: ErrorParts = {}) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.code = code
    this.requestId = requestId
    this.details = details
    this.texts = texts
    this.nothingChanged = nothingChanged
  }
}

/** Returns what was thrown by a call. Anything but a refusal is a defect of the console, or an answer that is not JSON. */
export const toApiError = (thrown: unknown): ApiError =>
  thrown instanceof ApiError ? thrown : new ApiError(-1, 'unexpected', String(thrown))

interface Call {
  query?: Record<string, string | number | boolean | undefined>
  body?: unknown
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
  /** True for a request that only asks, although its method could change something. */
  changesNothing?: boolean
}

// The texts of errors are loaded with the first refusal.
const loadErrorTexts = () => import('./texts/api-errors.ts').catch(() => undefined)

const gatewayErrors = new Set([502, 503, 504])

const send = async (method: string, url: URL, { body, signal: abort, headers = {}, changesNothing = false }: Call): Promise<Response> => {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const isReading = method === 'GET' || changesNothing
  let response: Response
  try {
    response = await fetch(url, {
      method,
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      credentials: 'same-origin',
      ...sent,
      ...(abort && { signal: abort }),
    })
  } catch (thrown) {
    if (abort?.aborted) throw thrown
    throw new ApiError(0, 'unreachable', String(thrown), { nothingChanged: isReading ? undefined : false })
  }
  if (response.ok) return response
  const answer = (await response.json().catch(() => undefined)) as Schemas['Error'] | undefined
  const { code = 'unknown', message = response.statusText, request_id: requestId, details, nothing_changed: nothing } = answer?.error ?? {}
  const nothingChanged = isReading || response.status < 500 ? undefined : (nothing ?? false)
  // A proxy answers for a relay that does not.
  if (!answer?.error && gatewayErrors.has(response.status)) throw new ApiError(0, 'unreachable', message, { nothingChanged })
  throw new ApiError(response.status, code, message, { requestId, details, texts: await loadErrorTexts(), nothingChanged })
}

const sessionUrl = () => new URL('session', document.baseURI)

const readSession = async (response: Response): Promise<Session | null> => {
  const { data, meta } = (await response.json()) as { data: { attributes: Session } | null; meta?: { provider: string } }
  provider.value = meta?.provider
  return data?.attributes ?? null
}

/** Asks whether this browser is signed in. @throws ApiError */
export const loadSession = async (): Promise<void> => {
  const url = sessionUrl()
  url.searchParams.set('workspace', chosenWorkspace())
  session.value = await readSession(await send('GET', url, {}))
}

/** @throws ApiError */
export const signIn = async (key: string): Promise<void> => {
  session.value = await readSession(await send('POST', sessionUrl(), { body: { key } }))
  sessionEnded.value = false
}

/** Signs in with the token of a link. @returns false if the link does not exist, was used or has expired */
export const signInWithLink = async (token: string): Promise<boolean> => {
  try {
    session.value = await readSession(await send('POST', sessionUrl(), { body: { token } }))
    return true
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 401) return false
    throw thrown
  }
}

/** Why the sign-in through the provider has failed, if it has led back to this page. */
export const signInFailure = signal<string | undefined>()

/** True if the page was opened by a link to sign in that does not work. */
export const hasLinkFailed = signal(false)

export const signOut = async (): Promise<void> => {
  await send('DELETE', sessionUrl(), {})
  sessionEnded.value = false
  session.value = null
}

/** Returns the address of a resource of the workspace. */
export const apiUrl = (path: string, query: Call['query'] = {}): URL => {
  const { user_slug: user, workspace_slug: workspace } = session.value!
  const url = new URL(`../api/${encodeURIComponent(user)}/${encodeURIComponent(workspace)}${path}`, document.baseURI)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value))
  }
  return url
}

/** True while a deletion is under way. */
export const isDeleting = signal(false)

/** Sends a request of a session. One that has ended leads to the sign-in. @throws ApiError */
const sendSigned = async (method: string, url: URL, call: Call): Promise<Response> => {
  try {
    return await send(method, url, call)
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 401) {
      sessionEnded.value = true
      session.value = null
    }
    throw thrown
  }
}

/** Calls the API. A session that has ended leads to the sign-in. @throws ApiError */
export const callRaw = async (method: string, path: string, call: Call = {}): Promise<Response> => {
  const isDeletion = method === 'DELETE' && call.changesNothing !== true
  if (isDeletion) isDeleting.value = true
  try {
    return await sendSigned(method, apiUrl(path, call.query), call)
  } finally {
    if (isDeletion) isDeleting.value = false
  }
}

/** Lists how all workspaces of the session are, those with trouble first. @throws ApiError */
export const loadWorkspaceStates = async (abort: AbortSignal): Promise<WorkspaceState[]> => {
  const response = await sendSigned('GET', new URL('workspace-states', document.baseURI), { signal: abort })
  const { data } = (await response.json()) as { data: { attributes: WorkspaceState }[] }
  return data.map(({ attributes }) => attributes)
}

export const call = async <Answer>(method: string, path: string, options?: Call): Promise<Answer> =>
  (await (await callRaw(method, path, options)).json()) as Answer

/** Reads a resource, and its ETag for the request that changes it. @throws ApiError */
export const callVersioned = async <Answer>(path: string, abort: AbortSignal): Promise<Answer & { etag: string }> => {
  const response = await callRaw('GET', path, { signal: abort })
  return { ...((await response.json()) as Answer), etag: response.headers.get('etag') ?? '' }
}

const levels: Level[] = ['viewer', 'member', 'admin']

/** Returns true if the key of the session has at least this level. */
export const may = (level: Level): boolean => levels.indexOf(session.value?.level ?? 'viewer') >= levels.indexOf(level)
