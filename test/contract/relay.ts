import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { createKey } from '../../src/commands/key.ts'
import { createWorkspace } from '../../src/commands/workspace.ts'
import type { Database } from '../../src/db/database.ts'
import type { KeyLevel } from '../../src/security/levels.ts'
import { createContract, readOpenApi } from '../http/contract.ts'
import { createTestDatabase } from '../support/database.ts'
import { startHttpTarget, type Arrival, type HttpTarget } from '../support/http-target.ts'
import { relayVariables, startRelayProcess } from '../support/relay-process.ts'
import { startTemporalDevServer } from '../support/temporal.ts'

export interface Answer {
  status: number
  headers: Headers
  text: string
  // an answer is whatever JSON came; it has been held against openapi.json
  json: ReturnType<typeof JSON.parse>
}

export interface Sent {
  status: number
  /** Of the captured request. */
  requestId: string
  headers: Headers
  text: string
}

interface CallOptions {
  /** The admin's, unless told otherwise; null sends none. */
  key?: string | null
  headers?: Record<string, string>
}

export interface Workspace {
  id: string
  name: string
  keys: Record<KeyLevel, string>
  /** The path is below `/api/{userSlug}/{workspaceSlug}`; a body that is a string is sent as it is. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  /** What the source system sends to the receiver. */
  send(method: string, query: string, body?: string | Buffer, headers?: Record<string, string>): Promise<Sent>
  /** A call of a function through the bridge. */
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
  /** Where documents are delivered: `/taken` takes them, `/down` answers 503, `/refused` 400, `/mended` what `mend` says. */
  target: HttpTarget
  mend(status: number): void
  /** What has arrived from this repository so far. */
  arrivalsOf(repoId: string): Arrival[]
  workspace(name: string): Promise<Workspace>
  stop(): Promise<void>
}

/** `relay api` and `relay worker`, each a process of its own, with PostgreSQL, Temporal and a target: what a client has before it. */
export const startRelay = async (): Promise<Relay> => {
  const database = await createTestDatabase()
  const [env, target]: [TestWorkflowEnvironment, HttpTarget] = await Promise.all([startTemporalDevServer(), startHttpTarget()])
  const variables = { ...relayVariables(database, env.address), RELAY_WRONG_KEYS_PER_MINUTE: '1000', CAPTURE_BODY_MAX_BYTES: '100000' }
  const [api, worker] = await Promise.all([startRelayProcess('api', variables), startRelayProcess('worker', variables)])
  const contract = createContract(await readOpenApi())
  let mended = 400
  target.answerWith(({ url }, response) => {
    const statuses: Record<string, number> = { '/down': 503, '/refused': 400, '/mended': mended }
    response.writeHead(statuses[url] ?? 200).end('said')
  })
  return {
    db: database.db,
    baseUrl: api.baseUrl,
    target,
    mend: (status) => {
      mended = status
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
