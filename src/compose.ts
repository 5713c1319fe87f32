import { activityInfo } from '@temporalio/activity'
import type { Worker } from '@temporalio/worker'
import { createBatchActivities } from '../activities/batches.ts'
import { createBulkRetryActivities } from '../activities/bulk-retry.ts'
import { createDeliveryActivities } from '../activities/delivery.ts'
import { createMaintenanceActivities } from '../activities/maintenance.ts'
import { createBridge } from './bridge/app.ts'
import { createCaptureStore } from './capture/capture-store.ts'
import { createCaptureQueue } from './capture/queue.ts'
import { createReplay } from './capture/replay.ts'
import { createSealedQueries } from './capture/sealed-query.ts'
import type { Config } from './config.ts'
import { createConnectionLimit } from './connection-limit.ts'
import { credentialsOwner } from './connectors/bound-config.ts'
import { createConnectors } from './connectors/index.ts'
import { createPostgresStore } from './content/postgres.ts'
import { createS3Store } from './content/s3.ts'
import { createSegmentedStores } from './content/segments.ts'
import { isOutage, openDatabase } from './db/database.ts'
import { requireSchema } from './db/migrations.ts'
import { createOutbox } from './db/outbox.ts'
import { createLoadJob } from './delivery/delivery-job.ts'
import { countOverdue, createReconcile } from './delivery/reconcile.ts'
import { createRecordAttempt } from './delivery/record-attempt.ts'
import { createAttemptReports } from './delivery/report-attempts.ts'
import { createRedeliverNewer } from './delivery/redeliver.ts'
import { createSlots } from './delivery/slots.ts'
import { messageOf, UserError } from './errors.ts'
import { createApi } from './http/app.ts'
import { openAuthenticator } from './http/authenticator.ts'
import { createDownloads } from './http/download.ts'
import { refuseUnknown } from './http/errors.ts'
import { createRequestLog } from './http/request-log.ts'
import { createReference } from './http/open-api/reference.ts'
import { startHttpServer, type HttpServer } from './http-server.ts'
import type { Log } from './log.ts'
import { maintenanceJobs, runJobsLocally, type MaintenanceDeps } from './maintenance.ts'
import { warnAboutOpenReceivers } from './open-receivers.ts'
import { createPinConfig } from './routing/pin-config.ts'
import { createProbes, type Dependency, type Probes } from './monitoring/probes.ts'
import { createReceiver } from './receiver/app.ts'
import { createDownloadLinks, createDownloadUrl } from './security/download-link.ts'
import { createOutboundGuard } from './security/outbound.ts'
import { createKeyRing } from './security/seal.ts'
import { createRepositoryMetrics } from './monitoring/repository-metrics.ts'
import { createOutboxMetrics } from './monitoring/outbox-metrics.ts'
import { createOverdueMetric } from './monitoring/overdue-metric.ts'
import { createStorageMetrics } from './monitoring/storage-metrics.ts'
import { openTemporal } from './temporal/client.ts'
import { createLauncher } from './temporal/launcher.ts'
import { createSchedules, keepSchedules } from './temporal/schedules.ts'
import { createWorker, installRuntime } from './temporal/worker.ts'
import { createThreads } from './threads.ts'
import { createUseCases } from './use-cases.ts'

/** A part of the relay that runs until it is stopped. */
export interface Running {
  stop(): Promise<void>
}

interface StartedWorker {
  /** Settles when the worker ends by itself. */
  ended: Promise<void>
  /** Address of `/healthz`, `/readyz` and `/metrics`, if the worker listens itself. */
  probesUrl: string | undefined
}

/** Opens everything that the API and the worker have in common. `close` closes it in the reverse order, after what `onClose` has added. */
const openRuntime = (config: Config, name: 'api' | 'worker', log: Log) => {
  const closers: (() => Promise<unknown>)[] = []
  const onClose = (close: () => Promise<unknown>) => void closers.unshift(close)

  const db = openDatabase(config, name, log)
  onClose(() => db.destroy())
  const temporal = openTemporal(config)
  onClose(temporal.close)
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  onClose(outbound.close)
  const outbox = createOutbox(db)
  const launcher = createLauncher(temporal, outbox, config, log)
  onClose(launcher.close)

  const postgres = createPostgresStore(db)
  const s3 = config.CONTENT_S3_BUCKET ? createS3Store(db, { ...config, CONTENT_S3_BUCKET: config.CONTENT_S3_BUCKET }) : undefined
  return {
    config,
    log,
    db,
    temporal,
    outbound,
    outbox,
    launcher,
    findConnector: createConnectors({ directoryRoots: config.RELAY_DIRECTORY_ROOTS }).find,
    stores: createSegmentedStores(db, { postgres, s3 }),
    writeTo: s3 ?? postgres,
    keyRing: createKeyRing(config.RELAY_SECRET_KEYS),
    downloadLinks: createDownloadLinks(config.RELAY_SECRET_KEYS),
    useCases: createUseCases(db, config),
    onClose,
    close: async () => {
      for (const close of closers.splice(0)) await close()
    },
  }
}

type Runtime = ReturnType<typeof openRuntime>

/**
 * Refuses to start with an empty or older database: every request would fail. Without a database the relay starts, and `/readyz` repeats
 * the check.
 */
const checkSchema = async ({ db, log }: Runtime): Promise<void> => {
  try {
    await requireSchema(db)
  } catch (thrown) {
    if (!isOutage(thrown)) throw thrown
    log.warn({ reason: messageOf(thrown) }, 'the database is unavailable, so its schema could not be checked')
  }
}

/** Opens a runtime and starts a part of the relay with it. The runtime is closed if the start fails. */
const startWith = async <Part extends object>(runtime: Runtime, start: (runtime: Runtime) => Promise<Part>): Promise<Part & Running> => {
  try {
    await checkSchema(runtime)
    return { ...(await start(runtime)), stop: runtime.close }
  } catch (thrown) {
    await runtime.close()
    throw thrown
  }
}

/** Returns what the API and the worker depend on. */
const dependenciesOf = ({ db, temporal }: Runtime): Dependency[] => [
  { name: 'database', check: () => db.raw('select 1') },
  { name: 'schema', check: () => requireSchema(db) },
  { name: 'temporal', check: temporal.ping },
]

/** Starts the management API, the receivers, the bridge and the probes on one port. */
export const startApi = (config: Config, log: Log, probes: Probes = createProbes(log)): Promise<Running & HttpServer> =>
  startWith(openRuntime(config, 'api', log), async (runtime) => {
    const { db, temporal, outbound, outbox, launcher, findConnector, stores, writeTo, keyRing, downloadLinks, useCases, onClose } = runtime
    const authenticator = openAuthenticator(useCases.apiKeys, config)
    const captures = createCaptureQueue(createCaptureStore(db), config, log)
    onClose(captures.close)
    const threads = createThreads(config)
    onClose(threads.close)
    const { launch } = launcher
    const sealedQueries = createSealedQueries(keyRing)
    const contents = { stores, writeTo }
    const receiver = createReceiver({ ...useCases, contents, captures, sealedQueries, runOnThread: threads.run, launch, config, log })
    const replay = createReplay({
      db,
      find: useCases.capturedRequests.findForReplay,
      openQuery: sealedQueries.open,
      execute: receiver.replay,
    })
    const { isDeliveryRunning } = temporal

    const connections = createConnectionLimit(config)
    const requestLog = createRequestLog(log)
    probes.add(dependenciesOf(runtime), [
      ...createOutboxMetrics(outbox),
      ...captures.metrics,
      ...connections.metrics,
      ...receiver.metrics,
      ...requestLog.metrics,
      ...createStorageMetrics(db, config),
      ...createRepositoryMetrics(db),
      createOverdueMetric(db, config),
    ])
    const bridge = createBridge({
      ...useCases,
      db,
      config,
      log,
      requestLog,
      keyRing,
      outbound,
      authenticator,
      captures,
      runOnThread: threads.run,
    })
    const downloads = createDownloads({ ...useCases, contents: stores, links: downloadLinks, log, requestLog })
    const api = createApi({
      ...useCases,
      config,
      log,
      requestLog,
      keyRing,
      outbound,
      authenticator,
      findConnector,
      pinConfig: createPinConfig(db, { keyRing, findConnector }),
      contents: stores,
      launch,
      isDeliveryRunning,
      replay,
    })
    const middlewares = [
      probes.middleware,
      receiver.middleware,
      bridge,
      createReference(config),
      downloads,
      api,
      refuseUnknown({ log, requestLog }),
    ]
    const listening = await startHttpServer(middlewares, 'RELAY_PORT', config, log, connections)
    onClose(listening.close)
    const warned = warnAboutOpenReceivers(db, log)
    onClose(() => warned)
    return listening
  })

/**
 * Starts the only worker of this process, which runs workflows, delivery attempts and maintenance jobs.
 * @param sharedProbes probes of the API in the same process; without them, the worker listens on RELAY_WORKER_PORT
 */
export const startWorker = (config: Config, log: Log, sharedProbes?: Probes): Promise<Running & StartedWorker> =>
  startWith(openRuntime(config, 'worker', log), async (runtime) => {
    // Not before the check of the schema: the runtime keeps a process alive until a worker has used it.
    installRuntime(log)
    const { db, temporal, outbound, launcher, findConnector, stores, keyRing, downloadLinks, useCases, onClose } = runtime
    const { sendAll } = launcher
    const reconcile = createReconcile(db, temporal, useCases.bulkRetries, sendAll, config)
    const maintenance: MaintenanceDeps = { ...useCases, db, stores, launcher, reconcile, config }
    const slots = createSlots(
      {
        total: config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS,
        limits: {
          maxConcurrent: config.DELIVERY_MAX_CONCURRENT_PER_DESTINATION,
          maxPerMinute: config.DELIVERY_MAX_PER_MINUTE_PER_DESTINATION,
        },
        maxWaitMs: config.DELIVERY_BUSY_MAX_WAIT_MS,
      },
      () => performance.now(),
      Math.random,
    )
    const reports = createAttemptReports(log, () => activityInfo().workflowExecution?.workflowId)
    const { worker, close } = await createWorker(config, {
      ...createDeliveryActivities({
        db,
        loadJob: createLoadJob(db, config),
        recordAttempt: reports.reporting(createRecordAttempt(db, config)),
        redeliverNewer: createRedeliverNewer(db, config),
        slots,
        contents: stores,
        findConnector,
        openCredentials: ({ workspaceId, destination, credentialsSealed }, connector) =>
          keyRing.open(credentialsSealed, credentialsOwner(connector, { workspaceId, ...destination })),
        pinConfig: createPinConfig(db, { keyRing, findConnector }),
        downloadUrl: createDownloadUrl(downloadLinks, { baseUrl: config.RELAY_BASE_URL, ttlMs: config.DOWNLOAD_LINK_TTL_MS }),
        keyRing,
        installation: useCases.installation,
        outbound,
        config,
      }),
      ...createBatchActivities({ ...useCases, db, sendAll, config }),
      ...createBulkRetryActivities({ ...useCases, sendAll }),
      ...createMaintenanceActivities(maintenance),
    })
    onClose(close)
    const probes = sharedProbes ?? createProbes(log)
    probes.add([...dependenciesOf(runtime), { name: 'worker', check: async () => requireRunning(worker) }], reports.metrics)
    const listening = sharedProbes ? undefined : await startWorkerProbes(probes, config, log)
    // Until the worker has stopped, its probes answer: alive, but not ready.
    if (listening) onClose(listening.close)
    onClose(await startMaintenance(runtime, maintenance))
    const ended = worker.run()
    onClose(async () => {
      if (worker.getState() === 'RUNNING') worker.shutdown()
      await ended
    })
    return { ended, probesUrl: listening?.baseUrl }
  })

/** @throws `UserError` unless the worker takes tasks */
const requireRunning = (worker: Worker): void => {
  const state = worker.getState()
  if (state !== 'RUNNING') throw new UserError(`The worker is ${state.toLowerCase()}.`)
}

/** Serves the probes of a worker that has a process of its own. */
const startWorkerProbes = (probes: Probes, config: Config, log: Log): Promise<HttpServer> =>
  startHttpServer(
    [probes.middleware, refuseUnknown({ log, requestLog: createRequestLog(log) })],
    'RELAY_WORKER_PORT',
    { ...config, RELAY_BASE_URL: undefined },
    log,
    createConnectionLimit(config),
  )

/**
 * Runs the maintenance jobs by schedules in Temporal, where operators see them, or on timers of this worker if Temporal does not accept
 * schedules. @returns a function that stops the timers
 */
const startMaintenance = async ({ db, temporal, config, log }: Runtime, deps: MaintenanceDeps): Promise<() => Promise<void>> => {
  const schedules = createSchedules(temporal.client, temporal.connection, config)
  const jobs = maintenanceJobs(config)
  try {
    await schedules.ensure(jobs)
    const catchUp = async () => {
      if ((await countOverdue(db, config)) > 0) await deps.reconcile()
    }
    return keepSchedules(schedules, jobs, { temporal, catchUp, config, log })
  } catch (thrown) {
    log.warn({ reason: messageOf(thrown) }, 'Temporal does not accept schedules; this worker runs maintenance jobs on its own timer')
    return runJobsLocally(deps, config, log)
  }
}
