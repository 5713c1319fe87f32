import { createActivities, type ActivityDeps } from '../../activities/delivery.ts'
import type { Config } from '../../src/config.ts'
import { findConnector } from '../../src/connectors/index.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { Database } from '../../src/db/database.ts'
import { createDeliveries } from '../../src/db/deliveries.ts'
import { createKeyRing } from '../../src/security/seal.ts'

interface Given extends Partial<ActivityDeps> {
  db: Database
  outbound: ActivityDeps['outbound']
  config: Config
}

/** What attempts deliveries, with the real parts of a worker; targets need no credentials, unless a test says otherwise. */
export const deliveryActivities = ({ db, config, ...more }: Given) =>
  createActivities({
    deliveries: createDeliveries(db),
    contents: { postgres: createPostgresStore(db), s3: undefined },
    findConnector,
    openCredentials: () => ({}),
    downloadUrl: () => undefined,
    keyRing: createKeyRing(config.RELAY_SECRET_KEYS),
    config,
    ...more,
  })
