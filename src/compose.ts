import { createActivities } from '../activities/delivery.ts'
import type { Config } from './config.ts'
import { findConnector } from './connectors/index.ts'
import { createPostgresStore } from './content/postgres.ts'
import { createS3Store } from './content/s3.ts'
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

const storesOf = (db: Database, config: Config) => {
  const postgres = createPostgresStore(db)
  const s3 = config.CONTENT_S3_BUCKET ? createS3Store(db, { ...config, CONTENT_S3_BUCKET: config.CONTENT_S3_BUCKET }) : undefined
  return { stores: { postgres, s3 }, writeTo: s3 ?? postgres }
}

/** API, receivers and probes on one port; starts the workflows of what it receives. */
export const startApi = async (config: Config, log: Log): Promise<Running & Listening> => {
  const db = openDatabase(config, 'api')
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
      createApi({ db, config, log, keyRing, outbound, findConnector, contents: stores }),
    ],
    config,
    log,
  )
  launcher.startSweeping()
  const partitions = keepPartitions(db, log)
  return {
    ...listening,
    stop: async () => {
      clearInterval(partitions)
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
  const db = openDatabase(config, 'worker')
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const activities = createActivities({
    deliveries: createDeliveries(db),
    contents: storesOf(db, config).stores,
    findConnector,
    openCredentials: ({ workspaceId, destination }) =>
      keyRing.open(destination.credentialsSealed, credentialsOf(workspaceId, destination.id)),
    outbound,
    config,
  })
  const { worker, close } = await createWorker(config, activities)
  const partitions = keepPartitions(db, log)
  const ended = worker.run()
  return {
    ended,
    stop: async () => {
      clearInterval(partitions)
      if (worker.getState() === 'RUNNING') worker.shutdown()
      await ended
      await outbound.close()
      await close()
      await db.destroy()
    },
  }
}

const partitionCheckMs = 6 * 3_600_000

/** Makes partitions well before they are needed; `relay migrate` has made the first ones. */
const keepPartitions = (db: Database, log: Log) =>
  setInterval(() => {
    ensurePartitions(db, new Date()).catch((thrown: unknown) => log.error({ err: thrown }, 'partitions could not be made ahead'))
  }, partitionCheckMs)
