import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa, { type Middleware } from 'koa'
import type { Metric } from 'prom-client'
import { openAuthenticator } from '../../src/access/api-keys.ts'
import { apiEndpoints, createApi, type EndpointDeps } from '../../src/api/app.ts'
import { createReadVersions } from '../../src/api/console/changes.ts'
import { createConsole } from '../../src/api/console/console.ts'
import { createEventStreams } from '../../src/api/console/event-streams.ts'
import type { Endpoint } from '../../src/api/endpoint.ts'
import { createReference } from '../../src/api/open-api/reference.ts'
import { createFindInTurn, createPlaces } from '../../src/api/places.ts'
import { createWaiting } from '../../src/api/waiting.ts'
import { openSignIn } from '../../src/app/sign-in.ts'
import { apiUseCases, bridgeUseCases, receiverUseCases } from '../../src/app/use-cases.ts'
import { createBridge, type BridgeDeps } from '../../src/bridge/app.ts'
import { createCaptureStore } from '../../src/capture/capture.ts'
import { createCaptureQueue, type CaptureQueue } from '../../src/capture/queue.ts'
import { createSealedQueries } from '../../src/capture/redact.ts'
import { createReplay, type Replay } from '../../src/capture/replay.ts'
import { createCheckRepository } from '../../src/check-source/check-repository.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createOpenCredentials } from '../../src/connectors/target.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import type { ContentStore, Stores } from '../../src/content/store.ts'
import type { Database } from '../../src/db/database.ts'
import { shareOf, shareSizeOf } from '../../src/db/share.ts'
import { createAcknowledgeReplayed } from '../../src/delivery/acknowledge.ts'
import type { BulkPage } from '../../src/delivery/bulk-page.ts'
import { createEndCheck } from '../../src/delivery/end-check.ts'
import type { RelayState } from '../../src/domain/relay-state.ts'
import { createTry } from '../../src/enrichment/try.ts'
import { createHomeStore, type HomeStoreDeps } from '../../src/home/store.ts'
import { refuseUnknown } from '../../src/http/errors.ts'
import { maxHeaderBytes } from '../../src/http/limits.ts'
import { createMalformedRequests } from '../../src/http/malformed-requests.ts'
import { createReaderProcess } from '../../src/http/reader-process.ts'
import { dispatch } from '../../src/http/server.ts'
import type { RunTask } from '../../src/http/task-limits.ts'
import { createThreads } from '../../src/http/threads.ts'
import { createReadThrough, type ReadThroughDeps } from '../../src/migration/read-through.ts'
import type { upstreamLimits } from '../../src/migration/upstreams.ts'
import { createWorkspaceStates } from '../../src/observe/workspace-states.ts'
import { createReceiver } from '../../src/receiver/app.ts'
import type { ReceiverLimits } from '../../src/receiver/limits.ts'
import { createSendTestDocument } from '../../src/receiver/test-document.ts'
import { createPinConfig } from '../../src/routing/pin-config.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing, type KeyRing } from '../../src/security/seal.ts'
import { bulkPageOf } from './bulk-page.ts'
import { callJson, createWorkspaceClient, openClient, type Answer, type WorkspaceClient } from './client.ts'
import { openContract } from './contract.ts'
import { testConfig } from './factories.ts'
import { logsTo } from './logs.ts'

const connectors = createConnectors()

export interface ApiOptions {
  variables?: Record<string, string>
  /** Key ring; by default with a key that no other API has. */
  keyRing?: KeyRing
  /** Finds a connector; by default among all of them. */
  findConnector?: EndpointDeps['findConnector']
  /** Opens the content store that the receiver writes to; by default PostgreSQL. */
  openStore?: (db: Database) => ContentStore
  /** The stores that the management API reads from; by default the one that the receiver writes to. */
  contents?: Stores
  /** What the process knows of workers and Temporal; by default that they work. */
  relayWatch?: { read(): RelayState }
  /** Functions of Temporal; by default there is none, and messages stay in the outbox. */
  temporal?: Partial<Pick<EndpointDeps, 'launch' | 'wakeNext' | 'isDeliveryRunning'>>
  replay?: Replay
  maxIdempotencyKeys?: number
  limits?: {
    endpoints?: Pick<EndpointDeps, 'batchSize' | 'exportLimits' | 'maxCertificates' | 'probeTimeoutMs'>
    streams?: Parameters<typeof createEventStreams>[2]
    waiting?: Parameters<typeof createWaiting>[1]
    places?: Partial<Parameters<typeof createPlaces>[0]>
    receiver?: Partial<ReceiverLimits>
    bridge?: BridgeDeps['limits']
    upstream?: Partial<typeof upstreamLimits>
    home?: Pick<HomeStoreDeps, 'readLimits' | 'turns'>
    upstreamWaits?: NonNullable<ReadThroughDeps['waits']>
  }
}

export interface Api extends AsyncDisposable {
  baseUrl: string
  port: number
  db: Database
  /** The lines that were logged. */
  log: string[]
  endpoints: Endpoint[]
  /** The content store of the receiver. */
  stores: Stores
  /** Its `close` writes the captures that are still in the queue. */
  captures: CaptureQueue
  /** What the workflow of a bulk retry calls. */
  bulkPage: BulkPage
  openQuery: ReturnType<typeof createSealedQueries>['open']
  keyRing: KeyRing
  receiverMetrics: Metric[]
  malformedMetrics: Metric[]
  /** The threads of the process, for a test that holds one. */
  runOnThread: RunTask
  /** Counts the requests that wait for something to happen. */
  countWaiting(): number
  call(method: string, path: string, options?: Parameters<typeof callJson>[3]): Promise<Answer>
  /** Creates a workspace, and a client with a key of each level. @param name `user/workspace` */
  tenant(name: string): Promise<WorkspaceClient>
  /** Returns a client of a workspace that exists, with a key of each level. */
  openTenant(workspace: { id: string; name: string }): Promise<WorkspaceClient>
  stop(): Promise<void>
}

/**
 * Starts what `relay api` serves in this process: the management API, the console, the receivers and the bridge on one port. Every answer of
 * the management API is checked against openapi.json.
 */
export const startApi = async (
  db: Database,
  {
    variables = {},
    keyRing = createKeyRing([`test:${randomBytes(32).toString('base64')}`]),
    findConnector = connectors.find,
    openStore = createPostgresStore,
    contents,
    temporal = {},
    relayWatch = { read: () => ({ status: 'working', since: new Date(), workers: [] }) },
    replay,
    maxIdempotencyKeys,
    limits = {},
  }: ApiOptions = {},
): Promise<Api> => {
  const config = testConfig(variables)
  const lines: string[] = []
  const logs = logsTo(lines)
  const { log } = logs
  const shareSize = shareSizeOf(config)
  const share = shareOf(db, shareSize)
  const outbound = createOutboundGuard({
    allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS,
    proxyUrl: config.RELAY_OUTBOUND_PROXY,
    noProxy: config.RELAY_OUTBOUND_NO_PROXY,
  })
  const useCases = apiUseCases(share, { config, findConnector, keyRing, outbound, relayWatch })
  const authenticator = openAuthenticator({ ...useCases.apiKeys, find: createFindInTurn(useCases.apiKeys.find) }, config)
  const writeTo = openStore(db)
  const calling = { config, findConnector, openCredentials: createOpenCredentials(keyRing), outbound, installation: useCases.installation }
  const home = createHomeStore({ ...calling, db, log, ...limits.home })
  const stores = createSegmentedStores(db, { [writeTo.kind]: writeTo, home })
  const captures = createCaptureQueue(createCaptureStore(db), config, log, { writeIntervalMs: 20 })
  const sealedQueries = createSealedQueries(keyRing)
  const threads = createThreads()
  const reader = createReaderProcess()
  const common = { config, ...logs, keyRing, outbound, authenticator, captures, runOnThread: threads.run, launch: () => {}, ...temporal }

  const receiving = receiverUseCases(db, { ...config, ...limits.receiver })
  const readThrough = createReadThrough({
    ...common,
    ...receiving,
    writeTo,
    limits: limits.upstream ?? {},
    waits: limits.upstreamWaits ?? {},
  })
  const receiver = createReceiver({
    ...common,
    ...receiving,
    readThrough,
    contents: { stores, writeTo },
    sealedQueries,
    limits: limits.receiver ?? {},
  })
  const bridge = createBridge({ ...common, ...bridgeUseCases(share, { findConnector }), db: share, limits: limits.bridge ?? {} })
  const replaying =
    replay ??
    createReplay({
      db,
      find: useCases.capturedRequests.findForReplay,
      openQuery: sealedQueries.open,
      execute: receiver.replay,
      acknowledge: createAcknowledgeReplayed(db),
    })
  const waiting = createWaiting(log, { intervalMs: 20, ...limits.waiting })
  const closers: (() => Promise<unknown>)[] = [waiting.close]
  const deps = {
    wakeNext: async () => {},
    isDeliveryRunning: () => Promise.reject(new Error('not available in this test')),
    ...common,
    ...useCases,
    relayWatch,
    places: createPlaces({ total: shareSize, ...limits.places }),
    documentEnds: waiting.topic(useCases.documents.findEnded),
    eventStreams: createEventStreams(createReadVersions(share, relayWatch), log, limits.streams),
    newEvents: waiting.topic(useCases.events.findWaiting),
    findConnector,
    pinConfig: createPinConfig(share, { keyRing, findConnector }),
    contents: contents ?? stores,
    replay: replaying,
    ...(maxIdempotencyKeys !== undefined && { maxIdempotencyKeys }),
    sendTestDocument: createSendTestDocument({ db, execute: receiver.createTest }),
    checkRepository: createCheckRepository({ db, receiverOrigin: () => baseUrl, endCheck: createEndCheck(db, 300) }),
    tryEnrichment: createTry({
      ...common,
      runInProcess: reader.run,
      db,
      contents: contents ?? stores,
      workspaces: useCases.workspaces,
      installation: useCases.installation,
    }),
    ...limits.endpoints,
    ...(await openSignIn(config, share, (close) => closers.push(close))),
  }

  const app = new Koa()
  app.silent = true
  // The HTTP server sets a policy for every surface, which an answer of the receiver must replace or remove.
  app.use((context, next) => {
    context.set('content-security-policy', "default-src 'none'")
    return next()
  })
  // When it is first asked for: to describe the API takes 0.2 seconds of processor time.
  let reference: Middleware | undefined
  const describe: Middleware = (context, next) => (reference ??= createReference(config))(context, next)
  app.use(
    dispatch({
      receiver: receiver.middleware,
      bridge,
      'openapi.json': describe,
      docs: describe,
      console: createConsole({ ...deps, workspaceStates: createWorkspaceStates(share, config) }),
      api: createApi(deps),
    }),
  )
  app.use(refuseUnknown(logs))
  const answer = app.callback()
  const malformed = createMalformedRequests({ config, log, refuse: receiver.refuseMalformed })
  const server = createServer({ maxHeaderSize: maxHeaderBytes, requireHostHeader: false }, (request, response) => {
    if (malformed.admit(request, response)) void answer(request, response)
  })
  malformed.attach(server)
  server.listen(0, '127.0.0.1')
  // The default of 5 s ends when a busy machine lets a test wait as long between two calls: the second would meet a connection that closes.
  server.keepAliveTimeout = 120_000
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const baseUrl = `http://127.0.0.1:${port}`
  const contract = await openContract()

  const stop = async () => {
    await deps.eventStreams.close()
    server.closeAllConnections()
    await new Promise((resolve) => {
      server.close(resolve)
    })
    await readThrough.close()
    await captures.close()
    await threads.close()
    await reader.close()
    await outbound.close()
    for (const close of closers) await close()
  }
  return {
    baseUrl,
    port,
    db,
    log: lines,
    endpoints: apiEndpoints(deps),
    stores,
    captures,
    runOnThread: threads.run,
    bulkPage: bulkPageOf(db, { config, replay: replaying }),
    openQuery: sealedQueries.open,
    keyRing,
    receiverMetrics: receiver.metrics,
    malformedMetrics: malformed.metrics,
    countWaiting: waiting.count,
    call: (method, path, options) => callJson(baseUrl, method, path, options, contract),
    tenant: (name) => createWorkspaceClient(db, baseUrl, name, contract),
    openTenant: (workspace) => openClient(db, baseUrl, workspace, contract),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
