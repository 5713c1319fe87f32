import type { TestWorkflowEnvironment } from '@temporalio/testing'
import type { Database } from '../../src/db/database.ts'
import type { KeyLevel } from '../../src/security/levels.ts'
import { createKey, createWorkspace } from '../../src/workspace/administration.ts'
import { createContract, readOpenApi } from '../api/contract.ts'
import { createTestDatabase } from '../support/database.ts'
import { startHttpTarget, type Arrival, type HttpTarget } from '../support/http-target.ts'
import { relayVariables, startRelayProcess } from '../support/relay-process.ts'
import { startTemporalServer } from '../support/temporal-server.ts'

export interface Answer {
  status: number
  headers: Headers
  text: string
  // Untyped JSON. The contract check has already compared it with openapi.json.
  json: ReturnType<typeof JSON.parse>
}

export interface Sent {
  status: number
  /** The id of the captured request. */
  requestId: string
  headers: Headers
  text: string
}

interface CallOptions {
  /** The admin key by default; null sends no key. */
  key?: string | null
  headers?: Record<string, string>
}

export interface Workspace {
  id: string
  name: string
  keys: Record<KeyLevel, string>
  /** Calls the API. The path is relative to the workspace; a string body is sent unchanged. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  /** Sends a request to the receiver, as the source system does. */
  send(method: string, query: string, body?: string | Buffer, headers?: Record<string, string>): Promise<Sent>
  /** Calls a function through the bridge. */
  bridge(functionName: string, body: unknown, key?: string): Promise<Answer>
}

const read = async (response: Response) => {
  const text = await response.text()
  const json = response.headers.get('content-type')?.includes('json') && text !== '' ? JSON.parse(text) : undefined
  return { status: response.status, headers: response.headers, text, json }
}

type Contract = ReturnType<typeof createContract>

const openWorkspace = async (db: Database, baseUrl: string, contract: Contract, name: string): Promise<Workspace> => {
  const { id } = await createWorkspace(db, name)
  const keyOf = async (level: KeyLevel) => (await createKey(db, { workspace: name, level })).key
  const keys = { viewer: await keyOf('viewer'), member: await keyOf('member'), admin: await keyOf('admin') }
  const post = (key: string | null, sent: string | undefined, headers: Record<string, string> = {}) => ({
    headers: {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(sent !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent }),
  })
  const call: Workspace['call'] = async (method, path, body, { key = keys.admin, headers } = {}) => {
    const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const answer = await read(await fetch(`${baseUrl}/api/${name}${path}`, { method, redirect: 'manual', ...post(key, sent, headers) }))
    contract.check({ method, path: `/api/${name}${path}`, body: sent, ...answer })
    return answer
  }
  const send: Workspace['send'] = async (method, query, body, headers = {}) => {
    const response = await fetch(`${baseUrl}/receiver/${name}?${query}`, { method, headers, body: body ?? null })
    const text = await response.text()
    return { status: response.status, requestId: response.headers.get('x-relay-request-id')!, headers: response.headers, text }
  }
  const bridge: Workspace['bridge'] = async (functionName, body, key = keys.member) =>
    read(await fetch(`${baseUrl}/bridge/${name}/rfc/${functionName}`, { method: 'POST', ...post(key, JSON.stringify(body)) }))
  return { id, name, keys, call, send, bridge }
}

export interface Relay {
  db: Database
  baseUrl: string
  /** The delivery target: `/accepting` answers 200, `/down` 503, `/refusing` 400, `/switchable` as set by `switchTo`. */
  target: HttpTarget
  switchTo(status: number): void
  /** Returns the documents of a repository that have arrived at the target. */
  arrivalsOf(repoId: string): Arrival[]
  workspace(name: string): Promise<Workspace>
  stop(): Promise<void>
}

/** Starts `relay api` and `relay worker` as separate processes, with PostgreSQL, Temporal and a target. */
export const startRelay = async (): Promise<Relay> => {
  const database = await createTestDatabase()
  const [env, target]: [TestWorkflowEnvironment, HttpTarget] = await Promise.all([startTemporalServer(), startHttpTarget()])
  const variables = { ...relayVariables(database, env), RELAY_WRONG_KEYS_PER_MINUTE: '1000', CAPTURE_BODY_MAX_BYTES: '100000' }
  const [api, worker] = await Promise.all([startRelayProcess('api', variables), startRelayProcess('worker', variables)])
  const contract = createContract(await readOpenApi())
  let switchable = 400
  target.answerWith(({ url }, response) => {
    const statuses: Record<string, number> = { '/down': 503, '/refusing': 400, '/switchable': switchable }
    response.writeHead(statuses[url] ?? 200).end('test response')
  })
  return {
    db: database.db,
    baseUrl: api.baseUrl,
    target,
    switchTo: (status) => {
      switchable = status
    },
    arrivalsOf: (repoId) => target.arrivals.filter(({ headers }) => headers['x-relay-repo-id'] === repoId),
    workspace: (name) => openWorkspace(database.db, api.baseUrl, contract, name),
    stop: async () => {
      await Promise.all([api.stop(), worker.stop()])
      await target.stop()
      await env.teardown()
      await database.drop()
    },
  }
}
