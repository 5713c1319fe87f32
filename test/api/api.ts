import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import Koa, { type Middleware } from 'koa'
import { z } from 'zod'
import { apiEndpoints, createApi, type EndpointDeps } from '../../src/api/app.ts'
import { createReadVersions } from '../../src/api/console/changes.ts'
import { createConsole } from '../../src/api/console/console.ts'
import { createEventStreams } from '../../src/api/console/event-streams.ts'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { createReference } from '../../src/api/open-api/reference.ts'
import { apiUseCases } from '../../src/app/use-cases.ts'
import { createReplay, type Replay } from '../../src/capture/replay.ts'
import { readConfig } from '../../src/config/config.ts'
import { DeliveryError, type Connector } from '../../src/connectors/connector.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import type { Stores } from '../../src/content/store.ts'
import type { Database } from '../../src/db/database.ts'
import { dispatch } from '../../src/http/server.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import { openAuthenticator } from '../../src/workspace/authenticator.ts'
import { createPinConfig } from '../../src/workspace/pin-config.ts'
import { callJson, createWorkspaceClient, type Answer, type WorkspaceClient } from '../support/client.ts'
import { createTestDatabase } from '../support/database.ts'
import { logsTo } from '../support/logs.ts'
import { createContract, readOpenApi } from './contract.ts'

const { find: findConnector } = createConnectors()

/** An object storage connector without a network. The name of the bucket decides the result of the probe. */
const objectStorage: Connector<{ bucket: string }, { secret_access_key: string }> = {
  kind: 'objstore',
  boundKeys: ['endpoint'],
  config: z.strictObject({ bucket: z.string(), region: z.string(), prefix: z.string().optional() }),
  example: findConnector('objstore')!.example,
  credentials: z.strictObject({ access_key_id: z.string(), secret_access_key: z.string().meta({ secret: true }) }),
  deliver: () => Promise.reject(new Error('not available in this test')),
  probe: async ({ config, credentials }) => {
    if (config.bucket === 'missing') {
      throw new DeliveryError('bucket_missing', `there is no such bucket (asked with ${credentials.secret_access_key})`)
    }
    // Ignores its abort signal.
    if (config.bucket === 'silent') await new Promise(() => {})
    return 'The bucket exists.'
  },
}

/** The real connectors, except that objstore needs no network and drive is not available. */
const registry = (kind: string): Connector | undefined => {
  if (kind === 'drive') return undefined
  return kind === 'objstore' ? objectStorage : findConnector(kind)
}

export interface Api {
  url: string
  log: string[]
  endpoints: Endpoint[]
  call(method: string, path: string, options?: Parameters<typeof callJson>[3]): Promise<Answer>
  tenant(name: string): Promise<WorkspaceClient>
  stop(): Promise<void>
}

/** Starts the management API on its own port. Every response is checked against openapi.json. */
export const startApi = async (
  db: Database,
  {
    variables = {},
    contents = {},
    temporal = {},
    overrides = {},
    streamLimits,
    replay,
    findConnector: find = registry,
    keyRing = createKeyRing([`first:${randomBytes(32).toString('base64')}`]),
  }: {
    variables?: Record<string, string>
    contents?: Stores
    temporal?: Partial<Pick<EndpointDeps, 'launch' | 'wakeNext' | 'isDeliveryRunning'>>
    /** Limits of endpoints. */
    overrides?: Pick<EndpointDeps, 'batchSize' | 'exportLimits' | 'maxCertificates' | 'probeTimeoutMs'>
    streamLimits?: Parameters<typeof createEventStreams>[2]
    replay?: Replay
    findConnector?: EndpointDeps['findConnector']
    keyRing?: EndpointDeps['keyRing']
  } = {},
): Promise<Api> => {
  const lines: string[] = []
  const config = readConfig(variables)
  const useCases = apiUseCases(db, config)
  const logs = logsTo(lines)
  const deps = {
    ...useCases,
    config,
    authenticator: openAuthenticator(useCases.apiKeys, config),
    ...logs,
    eventStreams: createEventStreams(createReadVersions(db), logs.log, streamLimits),
    keyRing,
    findConnector: find,
    pinConfig: createPinConfig(db, { keyRing, findConnector: find }),
    outbound: createOutboundGuard({ allowedCidrs: ['127.0.0.0/8'] }),
    contents,
    // Without Temporal: messages stay in the outbox.
    launch: () => {},
    wakeNext: async () => {},
    isDeliveryRunning: () => Promise.reject(new Error('not available in this test')),
    ...temporal,
    ...overrides,
    // Replays are processed in the tests that have a receiver.
    replay:
      replay ?? createReplay({ db, find: useCases.capturedRequests.findForReplay, openQuery: () => '', execute: () => Promise.resolve() }),
  }
  const app = new Koa()
  // When it is first asked for: to describe the API takes 0.2 seconds of processor time.
  let reference: Middleware | undefined
  const describe: Middleware = (context, next) => (reference ??= createReference(config))(context, next)
  app.use(dispatch({ api: createApi(deps), console: createConsole(deps), 'openapi.json': describe, docs: describe }))
  app.use((context) => {
    context.body = 'not the API'
  })
  app.on('error', () => {})
  const server = app.listen(0, '127.0.0.1')
  // The default of 5 s ends when a busy machine lets a test wait as long between two calls: the second would meet a connection that closes.
  server.keepAliveTimeout = 120_000
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const endpoints = apiEndpoints(deps)
  const contract = createContract(await readOpenApi())

  return {
    url,
    log: lines,
    endpoints,
    call: (method, path, options) => callJson(url, method, path, options, contract),
    tenant: (name) => createWorkspaceClient(db, url, name, contract),
    stop: async () => {
      await deps.eventStreams.close()
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
      await deps.outbound.close()
    },
  }
}

/** Starts a database and the API with two workspaces. Call `stop` after the last test of the file. */
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

/** Creates a repository, a bucket and a connection between them. */
export const wire = (tenant: WorkspaceClient, repoId: string, isActive = true) =>
  tenant.wire([objstore(`Bucket of ${repoId}`)], { repoId, isActive })
