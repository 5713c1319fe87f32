import { createBatchActivities } from '../activities/batches.ts'
import { createBulkRetryActivities } from '../activities/bulk-retry.ts'
import { createChoreActivities } from '../activities/chores.ts'
import { createActivities } from '../activities/delivery.ts'
import { createBridge } from './bridge/app.ts'
import { createCaptureQueue } from './capture/queue.ts'
import { createReplay } from './capture/replay.ts'
import { allChores, runChoresHere, type ChoreDeps } from './chores.ts'
import type { Config } from './config.ts'
import { findConnector } from './connectors/index.ts'
import { createPostgresStore } from './content/postgres.ts'
import { createS3Store } from './content/s3.ts'
import { createBulkRetries } from './db/bulk-retries.ts'
import { createCapturedRequests } from './db/captured-requests.ts'
import { upsertCaptures } from './db/captures.ts'
import { openDatabase, type Database } from './db/database.ts'
import { createDeliveries } from './db/deliveries.ts'
import { createHeld } from './db/held.ts'
import { createOutbox } from './db/outbox.ts'
import { createReceipts } from './db/receipts.ts'
import { createSources } from './db/sources.ts'
import { messageOf } from './errors.ts'
import { createApi } from './http/app.ts'
import { openAuthenticator } from './http/authenticator.ts'
import { refuseUnknown } from './http/errors.ts'
import { createReference } from './http/reference.ts'
import { createDownloads } from './http/download.ts'
import type { Log } from './log.ts'
import { createProbes } from './probes.ts'
import { createReceiver } from './receiver/app.ts'
import { createDownloadLinks, createDownloadUrl } from './security/download-link.ts'
import { createOutboundGuard } from './security/outbound.ts'
import { createKeyRing, credentialsOf } from './security/seal.ts'
import { serve, type Listening } from './serve.ts'
import { openTemporal, type OpenTemporal } from './temporal/client.ts'
import { createLauncher } from './temporal/launcher.ts'
import { createSchedules } from './temporal/schedules.ts'
import { createWorker } from './temporal/worker.ts'

/** A part of the relay that runs until it is stopped. */
export interface Running {
  stop(): Promise<void>
}

const storesOf = (db: Database, config: Config) => {
  const postgres = createPostgresStore(db)
  const s3 = config.CONTENT_S3_BUCKET ? createS3Store(db, { ...config, CONTENT_S3_BUCKET: config.CONTENT_S3_BUCKET }) : undefined
  return { stores: { postgres, s3 }, writeTo: s3 ?? postgres }
}

/** API, receivers and probes on one port; starts the workflows of what it receives. */
export const startApi = async (config: Config, log: Log): Promise<Running & Listening> => {
  const db = openDatabase(config, 'api', log)
  const temporal = openTemporal(config)
  const outbox = createOutbox(db)
  const launcher = createLauncher(temporal, outbox, config, log)
  const { stores, writeTo } = storesOf(db, config)
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const authenticator = openAuthenticator(db, config)

  const captures = createCaptureQueue((batch) => upsertCaptures(db, batch), config, log)
  const receiver = createReceiver({
    db,
    sources: createSources(db),
    receipts: createReceipts(db, config),
    contents: { stores, writeTo },
    captures,
    launch: launcher.launch,
    config,
    log,
  })
  const replay = createReplay({ find: createCapturedRequests(db).findRepeatable, process: receiver.replay })

  const listening = await serve(
    [
      createProbes(
        [
          { name: 'database', check: () => db.raw('select 1') },
          { name: 'temporal', check: temporal.ping },
        ],
        outbox.count,
        captures.metrics,
      ),
      receiver.middleware,
      createBridge({ db, config, log, keyRing, outbound, authenticator, captures }),
      createReference(config),
      createDownloads({ db, contents: stores, links: createDownloadLinks(config.RELAY_SECRET_KEYS), log }),
      createApi({
        db,
        config,
        log,
        keyRing,
        outbound,
        authenticator,
        findConnector,
        contents: stores,
        launch: launcher.launch,
        isUnderWay: temporal.isUnderWay,
        replay,
      }),
      refuseUnknown(log),
    ],
    config,
    log,
  )
  return {
    ...listening,
    stop: async () => {
      await listening.close()
      await captures.close()
      await launcher.close()
      await outbound.close()
      await temporal.close()
      await db.destroy()
    },
  }
}

/** Runs workflows, attempts and chores. */
export const startWorker = async (config: Config, log: Log): Promise<Running & { ended: Promise<void> }> => {
  const db = openDatabase(config, 'worker', log)
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const { stores } = storesOf(db, config)
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const temporal = openTemporal(config)
  const launcher = createLauncher(temporal, createOutbox(db), config, log)
  const held = createHeld(db, config)
  const choreDeps = { db, stores, held, launcher, config }
  const activities = {
    ...createActivities({
      deliveries: createDeliveries(db),
      contents: stores,
      findConnector,
      openCredentials: ({ workspaceId, destination }) =>
        keyRing.open(destination.credentialsSealed, credentialsOf(workspaceId, destination.id)),
      downloadUrl: createDownloadUrl(createDownloadLinks(config.RELAY_SECRET_KEYS), {
        baseUrl: config.RELAY_BASE_URL,
        ttlMs: config.DOWNLOAD_LINK_TTL_MS,
      }),
      keyRing,
      outbound,
      config,
    }),
    ...createBatchActivities({ db, held, sendAll: launcher.sendAll, config }),
    ...createBulkRetryActivities({ bulkRetries: createBulkRetries(db, config) }),
    ...createChoreActivities(choreDeps),
  }
  const { worker, close } = await createWorker(config, activities)
  const stopChores = await startChores(temporal, choreDeps, config, log)
  const ended = worker.run()
  return {
    ended,
    stop: async () => {
      if (worker.getState() === 'RUNNING') worker.shutdown()
      await ended
      await stopChores()
      await launcher.close()
      await temporal.close()
      await outbound.close()
      await close()
      await db.destroy()
    },
  }
}

/** By schedules in Temporal, where operators see them. A server that takes none has them run by each worker, unseen. @returns what ends that */
const startChores = async (temporal: OpenTemporal, deps: ChoreDeps, config: Config, log: Log): Promise<() => Promise<void>> => {
  try {
    await createSchedules(temporal.client, temporal.connection, config).ensure(allChores())
    return async () => {}
  } catch (thrown) {
    log.warn({ reason: messageOf(thrown) }, 'Temporal takes no schedules of ours: this worker runs the chores by itself')
    return runChoresHere(deps, config, log)
  }
}
