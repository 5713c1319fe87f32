import { createReceive } from '../../src/archive/receive.ts'
import { createLog } from '../../src/base/log.ts'
import type { Config } from '../../src/config/config.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { Database } from '../../src/db/database.ts'
import { createOutbox } from '../../src/db/outbox.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createReconcile, type DeliveryWorkflows } from '../../src/delivery/reconcile.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { createCallLines, createWakeNext } from '../../src/delivery/wake.ts'
import type { MaintenanceDeps } from '../../src/maintenance/jobs.ts'
import { createCheckIncidents } from '../../src/observe/notices/check-incidents.ts'
import type { Temporal } from '../../src/temporal/client.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { createRoutes, receivedDocument } from './factories.ts'

/** Creates the dependencies of the maintenance jobs with the real parts of a worker. */
export const createMaintenanceDeps = (
  db: Database,
  temporal: Pick<Temporal, 'send' | 'hasBegun'> & DeliveryWorkflows,
  config: Config,
): MaintenanceDeps => {
  const launcher = createLauncher(temporal, createOutbox(db), config, createLog('silent'), { sweepAgeMs: 0 })
  return {
    db,
    stores: { postgres: createPostgresStore(db) },
    release: createRelease(db, config),
    launcher,
    callLines: createCallLines(db, createWakeNext(db, config, launcher.launch, createLog('silent'))),
    checkIncidents: createCheckIncidents(db, config),
    reconcile: createReconcile(db, temporal, createBulkRetries(db, config), launcher.sendAll, config),
    config,
  }
}

/** Receives a document whose start waits in the outbox. */
export const receiveDocument = async (db: Database, config: Config): Promise<void> => {
  await createReceive(db, config)(await receivedDocument(await createRoutes(db, [{ name: 'archive' }]), { data: 'hello' }))
}
