import { createBatchActivities } from '../../activities/batches.ts'
import { createBulkRetryActivities } from '../../activities/bulk-retry.ts'
import { createDeliveryActivities, repeatAttempts, runningWorkflowId } from '../../activities/delivery.ts'
import { createDocumentMigrationActivities } from '../../activities/document-migration.ts'
import { createMaintenanceActivities } from '../../activities/maintenance.ts'
import { createNoticeActivities } from '../../activities/notices.ts'
import { createSideWorkActivities } from '../../activities/side-work.ts'
import { UserError } from '../base/errors.ts'
import { logFailure, reasonOf } from '../base/failure-log.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { createOpenCredentials } from '../connectors/target.ts'
import { takeOverLate } from '../db/duties.ts'
import { createAcknowledge, createAcknowledgeReplayed } from '../delivery/acknowledge.ts'
import { createAttemptNow } from '../delivery/attempt-now.ts'
import { createBulkPage } from '../delivery/bulk-page.ts'
import { createBulkRetries } from '../delivery/bulk-retry.ts'
import { createLoadJob } from '../delivery/delivery-job.ts'
import { createLateData } from '../delivery/late-data.ts'
import { createReconcile, reconcileDuty } from '../delivery/reconcile.ts'
import { createRecordAttempt } from '../delivery/record-attempt.ts'
import { createRedeliverNewer } from '../delivery/redeliver.ts'
import { createRelease } from '../delivery/release.ts'
import { createAttemptReports } from '../delivery/report-attempts.ts'
import { createSetMetadata } from '../delivery/set-metadata.ts'
import { createSlots } from '../delivery/slots.ts'
import { createCallLines, createWakeNext } from '../delivery/wake.ts'
import { createEnrich } from '../enrichment/enrich.ts'
import { createSendEvents } from '../events/send-events.ts'
import { createBringBack } from '../home/bring-back.ts'
import { createMoveHome } from '../home/move.ts'
import { createSaveReplaced, createSaveUpdated } from '../home/replaced.ts'
import { maintenanceJobs, runJobsLocally, type MaintenanceDeps } from '../maintenance/jobs.ts'
import { createCheckUpstreams } from '../migration/failures.ts'
import { createMigrationPage } from '../migration/page.ts'
import { createStartMigrations } from '../migration/start-due.ts'
import { createUpstreams } from '../migration/upstreams.ts'
import { createCheckIncidents } from '../notifications/check-incidents.ts'
import { createSendNotice } from '../notifications/send-notice.ts'
import { createProbes } from '../observe/probes.ts'
import { createPinConfig } from '../routing/pin-config.ts'
import { createDownloadUrl } from '../security/download-link.ts'
import { temporalOver } from '../temporal/client.ts'
import { createDispatcher } from '../temporal/dispatcher.ts'
import { isTemporalError, isUnavailable } from '../temporal/errors.ts'
import { installRuntime } from '../temporal/runtime.ts'
import { createSchedules, keepSchedules } from '../temporal/schedules.ts'
import { describeWorker } from '../temporal/worker-description.ts'
import { connectWorker, startTemporalWorker, type TemporalWorker } from '../temporal/worker.ts'
import { createWorkspaces } from '../workspace/workspaces.ts'
import { openEnrichmentTasks } from './enrichment-tasks.ts'
import { startProbesServer } from './probes-server.ts'
import { openReceiver } from './receiving.ts'
import { dependenciesOf, startWith, type Running, type Runtime } from './runtime.ts'
import { createSideWork } from './side-work.ts'
import { createAttemptSpans } from './tracing/attempts.ts'
import type { Tracing } from './tracing/tracing.ts'
import { receiverUseCases } from './use-cases.ts'

interface StartedWorker {
  /** Settles when the worker ends by itself. */
  ended: Promise<void>
  /** Address of `/healthz`, `/readyz` and `/metrics`. */
  probesUrl: string
}

/** Starts the only worker of this process, which runs workflows, delivery attempts and maintenance jobs. */
export const startWorker = async (
  config: Config,
  log: Log,
  { tracing }: { tracing?: Tracing | undefined } = {},
): Promise<Running & StartedWorker> =>
  startWith(config, 'worker', { log, tracing }, async (runtime) => {
    let worker: TemporalWorker | undefined
    const probes = createProbes(log)
    probes.add([...dependenciesOf(runtime), { name: 'worker', check: async () => requireRunning(worker) }], [])
    // First, because a port that is taken is the most frequent reason why a start fails. Until the worker has stopped, its probes answer:
    // alive, but not ready.
    const listening = await startProbesServer(probes, 'RELAY_WORKER_PORT', config, log)
    runtime.onClose(listening.close)
    const { db, temporal, outbound, launcher, findConnector, stores, writeTo, keyRing, downloadLinks, passedOver, onClose } = runtime
    const { onItsOwn, passOver } = passedOver
    const { sendAll } = launcher
    const bulkRetries = createBulkRetries(db)
    const { replay, readThrough } = openReceiver(runtime)
    const acknowledging = { acknowledge: createAcknowledge(db), acknowledgeReplayed: createAcknowledgeReplayed(db) }
    const bulkPage = createBulkPage({ db, replay, ...acknowledging, config })
    const release = createRelease(db, onItsOwn)
    const useCases = receiverUseCases(db, config)
    const { installation } = useCases
    const reconcile = createReconcile(db, temporal, bulkRetries, sendAll, config, { onItsOwn })
    const wakeNext = createWakeNext(db, config, launcher.launch, log)
    // What calls to other systems take.
    const calling = { ...runtime, contents: stores, installation, openCredentials: createOpenCredentials(keyRing), onItsOwn }
    const { moveHome, metrics: homeMetrics } = createMoveHome(calling)
    const maintenance: MaintenanceDeps = {
      db,
      stores,
      release,
      launcher,
      callLines: createCallLines(db, config, launcher.launch, onItsOwn),
      reconcile,
      checkIncidents: createCheckIncidents(db, config, { onItsOwn }),
      checkUpstreams: createCheckUpstreams(
        useCases.upstreamFailures,
        createUpstreams({ outbound, keyRing, installation }),
        useCases.upstreamDocuments,
        onItsOwn,
      ),
      moveHome,
      startMigrations: createStartMigrations(db, temporal.startDocumentMigration, onItsOwn),
      writeTo,
      keyRing,
      installation,
      outbound,
      onItsOwn,
      passOver,
      findConnector,
      config,
    }
    const reports = createAttemptReports(log, runningWorkflowId)
    const attemptSpans = tracing && createAttemptSpans(tracing)
    const recordAttempt = reports.reporting(createRecordAttempt(db, config, wakeNext))
    // The SDK's runtime keeps a process alive until a worker has used it.
    const sdkMetrics = await installRuntime(log)
    const connection = await connectWorker(config.temporal)
    const starts = temporalOver(connection, config)
    const sideWork = createSideWork(db, starts.startSideWork, onItsOwn)
    const dispatcher = createDispatcher({ db, temporal: starts, sideWork, config, log, passOver, worker: describeWorker(config) })
    const saving = { db, bringBack: createBringBack({ db, home: runtime.home, writeTo }) }
    const delivery = createDeliveryActivities({
      ...calling,
      loadJob: createLoadJob(db, config, dispatcher.noteBegun),
      recordAttempt: attemptSpans ? attemptSpans.reporting(recordAttempt) : recordAttempt,
      redeliverNewer: createRedeliverNewer(db),
      slots: createSlots(config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS),
      wakeNext,
      pinConfig: createPinConfig(db, runtime),
      saveReplaced: createSaveReplaced(saving),
      downloadUrl: createDownloadUrl(downloadLinks, { baseUrl: config.RELAY_BASE_URL, ttlMs: config.DOWNLOAD_LINK_TTL_MS }),
    })
    const { bringLateData, metrics: lateDataMetrics } = createLateData({ ...calling, saveUpdated: createSaveUpdated(saving) })
    const enrichDocuments = createEnrich({ ...calling, workspaces: createWorkspaces(db), ...openEnrichmentTasks(onClose) })
    const { attemptDelivery, ...deliveryRecords } = repeatAttempts(attemptSpans ? attemptSpans.around(delivery) : delivery)
    const { sendNotice, ...noticeRecords } = createNoticeActivities(createSendNotice(calling))
    const migrationPage = createMigrationPage({ ...useCases, db, setMetadata: createSetMetadata(db, runtime), readThrough, limits: config })
    const sendEvents = createSendEvents(calling)
    worker = await startTemporalWorker(config, connection, {
      targets: { attemptDelivery, sendNotice },
      control: {
        ...deliveryRecords,
        ...noticeRecords,
        ...createBatchActivities({ db, release, attemptNow: createAttemptNow(db, config), sendAll }),
        ...createBulkRetryActivities({ bulkRetries, bulkPage }),
        ...createMaintenanceActivities(maintenance),
      },
      migration: createDocumentMigrationActivities(migrationPage),
      side: createSideWorkActivities({ sendEvents, enrichDocuments, bringLateData }),
    })
    onClose(worker.stop)
    probes.add([], [...reports.metrics, ...lateDataMetrics, ...runtime.home.metrics, ...homeMetrics, ...passedOver.metrics])
    probes.watchPool(db)
    probes.addText(sdkMetrics.read)
    onClose(await startMaintenance(runtime, maintenance))
    dispatcher.start()
    onClose(dispatcher.close)
    return { ended: worker.ended, probesUrl: listening.baseUrl }
  })

/** @throws `UserError` unless the worker takes tasks */
const requireRunning = (worker: TemporalWorker | undefined): void => {
  const state = worker?.state() ?? 'STARTING'
  if (state !== 'RUNNING') throw new UserError(`The worker is ${state.toLowerCase()}.`)
}

// A reconciler that has missed this many runs does not run, for example because its own workflow is stuck.
const lateIntervals = 5

/**
 * Runs the maintenance jobs by schedules in Temporal, where operators see them, or on timers of this worker if Temporal does not accept
 * schedules. @returns a function that stops the timers
 */
const startMaintenance = async ({ db, temporal, config, log }: Runtime, deps: MaintenanceDeps): Promise<() => Promise<void>> => {
  const schedules = createSchedules(temporal.client, temporal.connection, config)
  const jobs = maintenanceJobs(config)
  const catchUp = async () => {
    if (await takeOverLate(db, reconcileDuty, lateIntervals * config.RECONCILE_INTERVAL_MS)) await deps.reconcile()
  }
  const keep = (areEnsured: boolean) => keepSchedules(schedules, jobs, { areEnsured, temporal, catchUp, config, log })
  try {
    await schedules.ensure(jobs)
    return keep(true)
  } catch (thrown) {
    // A server that has just been started accepts connections before it answers.
    if (isUnavailable(thrown) || !isTemporalError(thrown)) {
      log.info({ reason: reasonOf(thrown) }, 'Temporal does not answer yet; the schedules of the maintenance jobs are checked later')
      return keep(false)
    }
    logFailure(log, thrown, 'Temporal does not accept schedules; this worker runs maintenance jobs on its own timer')
    return runJobsLocally(deps, jobs, log)
  }
}
