import { createDeliveryActivities, repeatAttempts } from '../../activities/delivery.ts'
import type { Config } from '../../src/config/config.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { createSegmentedStores } from '../../src/content/segments.ts'
import type { Database } from '../../src/db/database.ts'
import { createInstallation } from '../../src/db/installation.ts'
import type { DeliverDeps } from '../../src/delivery/deliver.ts'
import { createLoadJob } from '../../src/delivery/delivery-job.ts'
import { createRecordAttempt } from '../../src/delivery/record-attempt.ts'
import { createRedeliverNewer } from '../../src/delivery/redeliver.ts'
import { createSlots } from '../../src/delivery/slots.ts'
import { createPinConfig } from '../../src/routing/pin-config.ts'
import { createKeyRing } from '../../src/security/seal.ts'

const { find: findConnector } = createConnectors()

interface Options extends Partial<DeliverDeps> {
  db: Database
  outbound: DeliverDeps['outbound']
  config: Config
}

/** Creates the activities with the real parts of a worker, which return outcomes. Targets need no credentials, unless a test sets some. */
export const attemptActivities = ({ db, config, ...options }: Options) =>
  createDeliveryActivities({
    db,
    loadJob: createLoadJob(db, config),
    recordAttempt: createRecordAttempt(db, config),
    redeliverNewer: createRedeliverNewer(db),
    slots: createSlots(config.TEMPORAL_MAX_CONCURRENT_ATTEMPTS),
    wakeNext: async () => {},
    contents: createSegmentedStores(db, { postgres: createPostgresStore(db) }),
    findConnector,
    openCredentials: () => ({}),
    downloadUrl: () => undefined,
    saveReplaced: async () => undefined,
    pinConfig: createPinConfig(db, { keyRing: createKeyRing(config.RELAY_SECRET_KEYS), findConnector }),
    keyRing: createKeyRing(config.RELAY_SECRET_KEYS),
    installation: createInstallation(db),
    config,
    ...options,
  })

/** Creates the delivery activities of a worker: Temporal repeats attempts that fail. */
export const deliveryActivities = (options: Options) => repeatAttempts(attemptActivities(options))
