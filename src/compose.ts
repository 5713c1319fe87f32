import { createBulkRetryActivities } from '../activities/bulk-retry.ts'
import { createActivities } from '../activities/delivery.ts'
import type { Config } from './config.ts'
import { findConnector } from './connectors/index.ts'
import { createPostgresStore } from './content/postgres.ts'
import { createS3Store } from './content/s3.ts'
import { sweepOrphans } from './content/sweep.ts'
import { createBulkRetries } from './db/bulk-retries.ts'
import { openDatabase, type Database } from './db/database.ts'
import { createDeliveries } from './db/deliveries.ts'
import { createOutbox } from './db/outbox.ts'
import { ensurePartitions } from './db/partitions.ts'
import { createReceipts } from './db/receipts.ts'
import { createSources } from './db/sources.ts'
import { createApi } from './http/app.ts'
import type { Log } from './log.ts'
import { createProbes } from './probes.ts'
import { createReceiver } from './receiver/app.ts'
import { createOutboundGuard } from './security/outbound.ts'
import { createKeyRing, credentialsOf } from './security/seal.ts'
import { serve, type Listening } from './serve.ts'
import { openTemporal } from './temporal/client.ts'
import { createLauncher } from './temporal/launcher.ts'
import { createWorker } from './temporal/worker.ts'

/** A part of the relay that runs until it is stopped. */
export interface Running {
  stop(): Promise<void>
}

type Stores = ReturnType<typeof storesOf>['stores']

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

  const listening = await serve(
    [
      createProbes(
        [
          { name: 'database', check: () => db.raw('select 1') },
          { name: 'temporal', check: temporal.ping },
        ],
        outbox.count,
      ),
      createReceiver({
        db,
        sources: createSources(db),
        receipts: createReceipts(db, config),
        contents: { stores, writeTo },
        launch: launcher.launch,
        config,
        log,
      }),
      createApi({
        db,
        config,
        log,
        keyRing,
        outbound,
        findConnector,
        contents: stores,
        launch: launcher.launch,
        isUnderWay: temporal.isUnderWay,
      }),
    ],
    config,
    log,
  )
  launcher.startSweeping()
  return {
    ...listening,
    stop: async () => {
      await listening.close()
      await launcher.close()
      await outbound.close()
      await temporal.close()
      await db.destroy()
    },
  }
}

/** Runs workflows and attempts. */
export const startWorker = async (config: Config, log: Log): Promise<Running & { ended: Promise<void> }> => {
  const db = openDatabase(config, 'worker', log)
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const { stores } = storesOf(db, config)
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const activities = createActivities({
    deliveries: createDeliveries(db),
    contents: stores,
    findConnector,
    openCredentials: ({ workspaceId, destination }) =>
      keyRing.open(destination.credentialsSealed, credentialsOf(workspaceId, destination.id)),
    outbound,
    config,
  })
  const { worker, close } = await createWorker(config, {
    ...activities,
    ...createBulkRetryActivities({ bulkRetries: createBulkRetries(db, config) }),
  })
  const upkeep = keepUp(db, stores, config, log)
  const ended = worker.run()
  return {
    ended,
    stop: async () => {
      clearInterval(upkeep)
      if (worker.getState() === 'RUNNING') worker.shutdown()
      await ended
      await outbound.close()
      await close()
      await db.destroy()
    },
  }
}

const upkeepIntervalMs = 3_600_000

/** Partitions are made well before they are needed (`relay migrate` has made the first ones), bytes without a document removed. */
const keepUp = (db: Database, stores: Stores, config: Config, log: Log) => {
  const run = async () => {
    await ensurePartitions(db, new Date())
    const removed = await sweepOrphans(db, stores, new Date(Date.now() - config.CONTENT_ORPHAN_AGE_MS))
    if (removed > 0) log.info({ removed }, 'removed contents that no document came to own')
  }
  const runOrTell = () =>
    void run().catch((thrown: unknown) => log.error({ err: thrown }, 'the upkeep failed, the next one will try again'))
  runOrTell()
  return setInterval(runOrTell, upkeepIntervalMs)
}
