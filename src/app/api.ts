import { createApiKeys, openAuthenticator } from '../access/api-keys.ts'
import { createApi } from '../api/app.ts'
import { createReadVersions } from '../api/console/changes.ts'
import { createConsole, leadToConsole } from '../api/console/console.ts'
import { createEventStreams } from '../api/console/event-streams.ts'
import { createDownloads } from '../api/download.ts'
import { createReference } from '../api/open-api/reference.ts'
import { createFindInTurn, createPlaces } from '../api/places.ts'
import { createWaiting } from '../api/waiting.ts'
import { createDocuments } from '../archive/document-list.ts'
import type { Log } from '../base/log.ts'
import { createBridge } from '../bridge/app.ts'
import { createCheckRepository } from '../check-source/check-repository.ts'
import type { Config } from '../config/config.ts'
import { keepPartitions } from '../db/partitions.ts'
import { shareOf, shareSizeOf } from '../db/share.ts'
import { createWakeNext } from '../delivery/wake.ts'
import { createTry } from '../enrichment/try.ts'
import { refuseUnknown } from '../http/errors.ts'
import { createMalformedRequests } from '../http/malformed-requests.ts'
import { createRequestLog } from '../http/request-log.ts'
import { createConnectionLimit, dispatch, startHttpServer, type HttpServer } from '../http/server.ts'
import { createThreads } from '../http/threads.ts'
import { createAggregateMetrics } from '../observe/aggregates.ts'
import {
  createHeldBackMetric,
  createWaitingMetrics,
  createOverdueMetric,
  createPollersMetric,
  createRepositoryMetrics,
  createStorageMetrics,
} from '../observe/metrics.ts'
import { createProbes, type Probes } from '../observe/probes.ts'
import { createWorkspaceStates } from '../observe/workspace-states.ts'
import { createManifestMetrics } from '../proof/manifest-metrics.ts'
import { createSendTestDocument } from '../receiver/test-document.ts'
import { createPinConfig } from '../routing/pin-config.ts'
import { warnAboutOpenReceivers } from '../routing/repository-warnings.ts'
import { listPollers } from '../temporal/pollers.ts'
import { openEnrichmentTasks } from './enrichment-tasks.ts'
import { openStallNotices } from './operator-notices.ts'
import { startProbesServer } from './probes-server.ts'
import { openReceiver } from './receiving.ts'
import { openRelayWatch } from './relay-watch.ts'
import { dependenciesOf, startWith, type Running } from './runtime.ts'
import { openSignIn } from './sign-in.ts'
import { traceRequests } from './tracing/requests.ts'
import type { Tracing } from './tracing/tracing.ts'
import { apiUseCases, bridgeUseCases } from './use-cases.ts'

interface ApiOptions {
  /** Probes to which the API adds its own; `relay server` has some of the whole stack. */
  probes?: Probes
  tracing?: Tracing | undefined
}

interface StartedApi extends HttpServer {
  /** Address of `/healthz`, `/readyz` and `/metrics`. */
  probesUrl: string
}

/** Starts the management API, the receivers and the bridge on one port, and the probes on another. */
export const startApi = async (
  config: Config,
  log: Log,
  { probes = createProbes(log), tracing }: ApiOptions = {},
): Promise<Running & StartedApi> =>
  startWith(config, 'api', { log, tracing }, async (runtime) => {
    const { db, temporal, outbox, launcher, stores, downloadLinks, onClose } = runtime
    // The pool serves the source systems first: whatever is asked for in another way uses a share of it.
    const shareSize = shareSizeOf(config)
    const share = shareOf(db, shareSize)
    const places = createPlaces({ total: shareSize })
    const apiKeys = createApiKeys(share)
    const authenticator = openAuthenticator({ ...apiKeys, find: createFindInTurn(apiKeys.find) }, config)
    const signIn = await openSignIn(config, share, onClose)
    const { captures, receiver, replay } = openReceiver(runtime)
    onClose(keepPartitions(db, log))
    const { launch } = launcher
    const sendTestDocument = createSendTestDocument({ db, execute: receiver.createTest })
    let receiverOrigin = ''
    const checkRepository = createCheckRepository({ db, receiverOrigin: () => receiverOrigin })
    const { isDeliveryRunning } = temporal

    const connections = createConnectionLimit(config)
    const malformed = createMalformedRequests({ config, log, refuse: receiver.refuseMalformed })
    const requestLog = createRequestLog(log)
    const relayWatch = openRelayWatch({ ...runtime, db: share })
    await openStallNotices({ ...runtime, db: share }, relayWatch)
    const eventStreams = createEventStreams(createReadVersions(share, relayWatch), log)
    const waiting = createWaiting(log)
    probes.watchPool(db)
    probes.add(dependenciesOf(runtime), [
      ...createWaitingMetrics(db, outbox),
      ...captures.metrics,
      ...runtime.passedOver.metrics,
      ...connections.metrics,
      ...malformed.metrics,
      ...receiver.metrics,
      ...runtime.home.metrics,
      ...requestLog.metrics,
      ...eventStreams.metrics,
      ...waiting.metrics,
      ...places.metrics,
      ...createStorageMetrics(share, config),
      ...createRepositoryMetrics(share),
      createHeldBackMetric(share),
      ...createManifestMetrics(share, config),
      ...createAggregateMetrics(share),
      createOverdueMetric(share, config),
      createPollersMetric(config.TEMPORAL_TASK_QUEUE, () => listPollers(temporal.connection, temporal.client.options.namespace, config)),
    ])
    const bridgeThreads = createThreads()
    onClose(bridgeThreads.close)
    const common = { ...runtime, db: share, contents: stores, requestLog, authenticator }
    const bridge = createBridge({ ...common, ...bridgeUseCases(share, runtime), captures, runOnThread: bridgeThreads.run })
    const downloads = createDownloads({ ...common, documents: createDocuments(share), links: downloadLinks })
    const useCases = apiUseCases(share, { ...runtime, relayWatch })
    const api = createApi({
      ...common,
      ...useCases,
      relayWatch,
      documentEnds: waiting.topic(useCases.documents.findEnded),
      newEvents: waiting.topic(useCases.events.findWaiting),
      places,
      pinConfig: createPinConfig(share, runtime),
      launch,
      wakeNext: createWakeNext(share, config, launch, log),
      isDeliveryRunning,
      replay,
      sendTestDocument,
      checkRepository,
      tryEnrichment: createTry({ ...common, ...bridgeUseCases(share, runtime), ...openEnrichmentTasks(onClose) }),
      people: signIn.people,
    })
    const reference = createReference(config)
    const middlewares = [
      // Load balancers check the port that they send to. These requests come every few seconds and are not traced.
      dispatch({ healthz: probes.middleware }),
      ...(tracing ? [traceRequests(tracing)] : []),
      dispatch({
        '': leadToConsole(common),
        receiver: receiver.middleware,
        bridge,
        'openapi.json': reference,
        docs: reference,
        console: createConsole({ ...common, eventStreams, workspaceStates: createWorkspaceStates(share, config), ...signIn }),
        download: downloads,
        api,
      }),
      refuseUnknown(common),
    ]
    const probing = await startProbesServer(probes, 'RELAY_PROBES_PORT', config, log)
    onClose(probing.close)
    const listening = await startHttpServer(middlewares, 'RELAY_PORT', config, log, connections, malformed)
    receiverOrigin = listening.localUrl
    onClose(listening.close)
    onClose(eventStreams.close)
    onClose(waiting.close)
    const warned = warnAboutOpenReceivers(db, log)
    onClose(() => warned)
    onClose(() => {
      probes.stop()
      return listening.drain()
    })
    return { ...listening, probesUrl: probing.baseUrl }
  })
