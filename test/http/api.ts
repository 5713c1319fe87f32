import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { pino } from 'pino'
import { z } from 'zod'
import { createReplay, type Replay } from '../../src/capture/replay.ts'
import { createKey } from '../../src/commands/key.ts'
import { createWorkspace } from '../../src/commands/workspace.ts'
import { readConfig } from '../../src/config.ts'
import { DeliveryError, type Connector } from '../../src/connectors/connector.ts'
import { findConnector } from '../../src/connectors/index.ts'
import type { ContentStore } from '../../src/content/store.ts'
import { createCapturedRequests } from '../../src/db/captured-requests.ts'
import { newId } from '../../src/ids.ts'
import type { Database } from '../../src/db/database.ts'
import type { ConnectorType } from '../../src/domain/connector-type.ts'
import { apiEndpoints, createApi, type EndpointDeps } from '../../src/http/app.ts'
import { openAuthenticator } from '../../src/http/authenticator.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import type { KeyLevel } from '../../src/security/levels.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { createTestDatabase } from '../support/database.ts'
import { createContract, readOpenApi } from './contract.ts'

/** What an object-storage connector looks like to the API; its probe does what the bucket's name says. */
const objectStorage: Connector<{ bucket: string }, { secret_access_key: string }> = {
  kind: 'objstore',
  config: z.strictObject({ bucket: z.string(), region: z.string(), prefix: z.string().optional() }),
  credentials: z.strictObject({ access_key_id: z.string(), secret_access_key: z.string().meta({ secret: true }) }),
  deliver: () => Promise.reject(new Error('not in this test')),
  probe: async ({ config, credentials }) => {
    if (config.bucket === 'missing') {
      throw new DeliveryError('bucket_missing', `there is no such bucket (asked with ${credentials.secret_access_key})`, {
        permanent: true,
      })
    }
    // deaf to its signal
    if (config.bucket === 'silent') await new Promise(() => {})
  },
}

/** The real connectors, but for one whose tests need no network, and one that this installation lacks. */
const registry = (kind: ConnectorType): Connector | undefined => {
  if (kind === 'drive') return undefined
  return kind === 'objstore' ? objectStorage : findConnector(kind)
}

export interface Answer {
  status: number
  headers: Headers
  // an answer is whatever JSON came; the contract has held it against openapi.json
  json: ReturnType<typeof JSON.parse>
  text: string
}

interface CallOptions {
  key?: string | undefined
  body?: unknown
  headers?: Record<string, string>
}

export interface Tenant {
  id: string
  path: string
  keys: Record<KeyLevel, string>
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>
}

/** A workspace with a key of each level. `call` uses the admin's unless told otherwise. */
const createTenant = async (db: Database, api: Pick<Api, 'call'>, name: string): Promise<Tenant> => {
  const { id } = await createWorkspace(db, name)
  const keyOf = async (level: KeyLevel) => (await createKey(db, { workspace: name, level })).key
  const keys = { viewer: await keyOf('viewer'), member: await keyOf('member'), admin: await keyOf('admin') }
  const path = `/api/${name}`
  return { id, path, keys, call: (method, rest, body, options) => api.call(method, path + rest, { key: keys.admin, body, ...options }) }
}

export interface Api {
  url: string
  log: string[]
  endpoints: Endpoint[]
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  tenant(name: string): Promise<Tenant>
  stop(): Promise<void>
}

/** The management API on a socket of its own. Every answer is held against openapi.json, to the key. */
export const startApi = async (
  db: Database,
  {
    variables = {},
    contents = {},
    temporal = {},
    replay,
  }: {
    variables?: Record<string, string>
    contents?: { postgres?: ContentStore }
    temporal?: Partial<Pick<EndpointDeps, 'launch' | 'isUnderWay'>>
    replay?: Replay
  } = {},
): Promise<Api> => {
  const lines: string[] = []
  const config = readConfig(variables)
  const deps = {
    db,
    config,
    authenticator: openAuthenticator(db, config),
    log: pino({}, { write: (line: string) => void lines.push(line) }),
    keyRing: createKeyRing([`first:${randomBytes(32).toString('base64')}`]),
    findConnector: registry,
    outbound: createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }),
    contents: { postgres: contents.postgres, s3: undefined },
    // Temporal is asked nothing, unless a test has one: what it would be told stays in the outbox
    launch: () => {},
    isUnderWay: () => Promise.reject(new Error('not in this test')),
    ...temporal,
    // what processes it is for the tests that have a receiver
    replay: replay ?? createReplay({ find: createCapturedRequests(db).findRepeatable, process: () => Promise.resolve(newId()) }),
  }
  const app = new Koa()
  app.use(createApi(deps))
  app.use((context) => {
    context.body = 'not the API'
  })
  app.on('error', () => {})
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const endpoints = apiEndpoints(deps)
  const contract = createContract(await readOpenApi())
  const call = async (method: string, path: string, { key, body, headers }: CallOptions = {}): Promise<Answer> => {
    const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    const response = await fetch(url + path, {
      method,
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(sent !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(sent !== undefined && { body: sent }),
    })
    const text = await response.text()
    const json = response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined
    contract.check({ method, path, body: sent, status: response.status, headers: response.headers, text })
    return { status: response.status, headers: response.headers, json, text }
  }

  return {
    url,
    log: lines,
    endpoints,
    call,
    tenant: (name) => createTenant(db, { call }, name),
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
      await deps.outbound.close()
    },
  }
}

/** What the tests of a file begin with: a database, the API over it and two workspaces. `stop` is for their end. */
export const startScene = async (options?: Parameters<typeof startApi>[1]) => {
  const database = await createTestDatabase()
  const api = await startApi(database.db, options)
  const [acme, other] = [await api.tenant('acme/prod'), await api.tenant('other/prod')]
  const stop = async () => {
    await api.stop()
    await database.drop()
  }
  return { database, api, acme, other, stop }
}

export const objstore = (name: string, config: object = {}) => ({
  name,
  connector_type: 'objstore',
  config: { bucket: 'archive', region: 'eu-central-1', ...config },
  credentials: { access_key_id: 'AKIA', secret_access_key: 'canary-5f1c' },
})

/** A repository, a destination and a connection between them. @returns their ids */
export const wire = async (tenant: Tenant, repoId: string, isActive = true) => {
  const repository = await tenant.call('POST', '/repositories', { repo_id: repoId, name: `Repository ${repoId}` })
  const destination = await tenant.call('POST', '/destinations', objstore(`Bucket of ${repoId}`))
  const ids = { repositoryId: repository.json.data.id as string, destinationId: destination.json.data.id as string }
  const connection = await tenant.call('POST', '/connections', {
    name: `From ${repoId}`,
    is_active: isActive,
    repository_ids: [ids.repositoryId],
    destination_ids: [ids.destinationId],
  })
  return { ...ids, connectionId: connection.json.data.id as string }
}
