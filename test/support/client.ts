import { createKey } from '../../src/access/key-administration.ts'
import { newId } from '../../src/base/ids.ts'
import type { Database } from '../../src/db/database.ts'
import type { KeyLevel } from '../../src/security/levels.ts'
import { createWorkspace } from '../../src/workspace/administration.ts'
import { until } from './until.ts'

// Untyped JSON. Where a contract is given, it has compared the answer with openapi.json.
export type Json = ReturnType<typeof JSON.parse>

export interface Answer {
  status: number
  headers: Headers
  text: string
  json: Json
}

/** The answer of a receiver. */
export interface Sent {
  status: number
  /** The id of the captured request. */
  requestId: string
  headers: Headers
  text: string
}

interface CallOptions {
  /** Null or undefined sends no key. */
  key?: string | null | undefined
  /** A string is sent unchanged, anything else as JSON. */
  body?: unknown
  headers?: Record<string, string> | undefined
}

/** Checks an exchange against openapi.json. */
export interface Contract {
  check(exchange: { method: string; path: string; body?: string | undefined; status: number; headers: Headers; text: string }): void
}

/** Sends one request to a JSON surface of a relay. */
export const callJson = async (
  baseUrl: string,
  method: string,
  path: string,
  { key, body, headers }: CallOptions = {},
  contract?: Contract,
): Promise<Answer> => {
  const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(baseUrl + path, {
    method,
    redirect: 'manual',
    headers: {
      ...(key && { authorization: `Bearer ${key}` }),
      ...(sent !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent }),
  })
  const text = await response.text()
  contract?.check({ method, path, body: sent, status: response.status, headers: response.headers, text })
  const isJson = response.headers.get('content-type')?.includes('json') && text !== ''
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined }
}

interface ClientOptions {
  baseUrl: string
  /** `user/workspace`. */
  name: string
  /** Used by default. */
  key: string
  contract?: Contract | undefined
}

interface Wiring {
  /** A new one by default. */
  repoId?: string
  isActive?: boolean
  /** Further attributes of the connection. */
  connection?: object
}

const randomRepoId = () => `R${newId().slice(-8)}`
const isInProgress = ({ status }: Json) => status === 'pending' || status === 'retrying'

/** Creates a client of one workspace of a running relay: of its management API, its bridge, and its receiver. */
export const createClient = ({ baseUrl, name, key: usualKey, contract }: ClientOptions) => {
  /** Calls the API. The path is relative to the workspace. */
  const call = (method: string, path: string, body?: unknown, { key = usualKey, headers }: Omit<CallOptions, 'body'> = {}) =>
    callJson(baseUrl, method, `/api/${name}${path}`, { key, body, headers }, contract)

  /** Calls a function through the bridge. */
  const bridge = (functionName: string, body: unknown, key = usualKey) =>
    callJson(baseUrl, 'POST', `/bridge/${name}/rfc/${functionName}`, { key, body })

  /** Sends a request to the receiver, as the source system does. */
  const send = async (method: string, query: string, body?: string | Buffer, headers: Record<string, string> = {}): Promise<Sent> => {
    const response = await fetch(`${baseUrl}/receiver/${name}?${query}`, { method, headers, body: body ?? null })
    const text = await response.text()
    return { status: response.status, requestId: response.headers.get('x-relay-request-id')!, headers: response.headers, text }
  }

  /** Changes or creates a resource. @returns its data @throws Error if the answer is not 2xx */
  const change = async (method: 'POST' | 'PATCH', path: string, body: object): Promise<Json> => {
    const { status, text, json } = await call(method, path, body)
    if (status < 200 || status >= 300) throw new Error(`${method} ${path} was answered ${status}: ${text}`)
    return json.data
  }
  /** Creates a resource. @returns its id */
  const create = async (path: string, body: object): Promise<string> => (await change('POST', path, body)).id
  const webhook = (url: string, title = `To ${url}`) => ({ name: title, connector_type: 'webhook', config: { url }, credentials: {} })
  const connect = (repositoryIds: string[], destinationIds: string[], more: object = {}) =>
    create('/connections', { name: 'A', repository_ids: repositoryIds, destination_ids: destinationIds, ...more })

  /** Creates a repository and connects it to these destinations, or to webhooks at these addresses. */
  const wire = async (
    targets: readonly (string | object)[],
    { repoId = randomRepoId(), isActive = true, connection = {} }: Wiring = {},
  ) => {
    const repositoryId = await create('/repositories', { repo_id: repoId, name: `Repository ${repoId}` })
    const destinations: string[] = []
    for (const target of targets) destinations.push(await create('/destinations', typeof target === 'string' ? webhook(target) : target))
    const connectionId =
      destinations.length > 0
        ? await connect([repositoryId], destinations, { name: `From ${repoId}`, is_active: isActive, ...connection })
        : ''
    return { repoId, repositoryId, destinations, destinationId: destinations[0]!, connectionId }
  }

  /** Sends a document of one component. */
  const sendCreate = (repoId: string, docId: string, body: string | Buffer = 'hello', contentType = 'application/pdf'): Promise<Sent> =>
    send('PUT', `create&pVersion=0045&contRep=${repoId}&docId=${docId}&compId=data`, body, { 'content-type': contentType })

  const attributesOf = async (path: string): Promise<Json> => (await call('GET', path)).json.data.attributes

  /** Waits until a document has a status. @returns its attributes */
  const untilStatus = (id: string, status: string): Promise<Json> =>
    until(
      `document ${id} has the status ${status}`,
      () => attributesOf(`/documents/${id}`),
      // A document is failed as soon as one delivery has failed. Wait also for its other deliveries.
      ({ status: current, deliveries }: Json) => current === status && (status !== 'failed' || !deliveries.some(isInProgress)),
    )

  /** Sends a document and waits until it has a status. @returns its id */
  const sendDocument = async (repoId: string, status: string, docId: string = newId()): Promise<string> => {
    const sent = await sendCreate(repoId, docId)
    if (sent.status !== 201) throw new Error(`${sent.status} ${sent.headers.get('x-errordescription')}`)
    const { json } = await call('GET', `/documents/search?repo_id=${repoId}&doc_id=${docId}`)
    const id = json.data[0].id as string
    await untilStatus(id, status)
    return id
  }

  /** Waits until a request is captured. @returns its attributes */
  const untilCaptured = async (requestId: string): Promise<Json> =>
    (
      await until(
        `request ${requestId} is captured`,
        () => call('GET', `/requests/${requestId}`),
        ({ status }) => status === 200,
      )
    ).json.data.attributes

  return {
    name,
    path: `/api/${name}`,
    call,
    bridge,
    send,
    change,
    create,
    webhook,
    connect,
    wire,
    sendCreate,
    sendDocument,
    untilStatus,
    untilCaptured,
    attributesOf,
  }
}

/** Creates a key of each level for a workspace. @param name `user/workspace` */
export const createKeys = async (db: Database, name: string): Promise<Record<KeyLevel, string>> => {
  const keyOf = async (level: KeyLevel) => (await createKey(db, { workspace: name, level })).key
  return { viewer: await keyOf('viewer'), member: await keyOf('member'), admin: await keyOf('admin') }
}

/** Creates a key of each level for a workspace that exists, and a client that uses the admin key. @param workspace.name `user/workspace` */
export const openClient = async (db: Database, baseUrl: string, { id, name }: { id: string; name: string }, contract?: Contract) => {
  const keys = await createKeys(db, name)
  const client = createClient({ baseUrl, name, key: keys.admin, contract })
  return {
    ...client,
    id,
    keys,
    // The lowest level that may call functions.
    bridge: (functionName: string, body: unknown, key = keys.member) => client.bridge(functionName, body, key),
  }
}

/** Creates a workspace with a key of each level, and a client that uses the admin key. @param name `user/workspace` */
export const createWorkspaceClient = async (db: Database, baseUrl: string, name: string, contract?: Contract) => {
  const { id } = await createWorkspace(db, name)
  return openClient(db, baseUrl, { id, name }, contract)
}

export type WorkspaceClient = Awaited<ReturnType<typeof createWorkspaceClient>>
