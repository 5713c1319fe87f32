import { receiverUseCases } from '../../src/app/use-cases.ts'
import { createReceive } from '../../src/archive/receive.ts'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import type { Config } from '../../src/config/config.ts'
import { createConnectors } from '../../src/connectors/index.ts'
import { createPostgresStore } from '../../src/content/postgres.ts'
import type { Database } from '../../src/db/database.ts'
import { createOnItsOwn } from '../../src/db/on-its-own.ts'
import { addMessages, createOutbox } from '../../src/db/outbox.ts'
import { createBulkRetries } from '../../src/delivery/bulk-retry.ts'
import { createReconcile, type DeliveryWorkflows } from '../../src/delivery/reconcile.ts'
import { createRelease } from '../../src/delivery/release.ts'
import { createCallLines } from '../../src/delivery/wake.ts'
import type { MaintenanceDeps } from '../../src/maintenance/jobs.ts'
import { createCheckUpstreams } from '../../src/migration/failures.ts'
import { createStartMigrations } from '../../src/migration/start-due.ts'
import { createUpstreams } from '../../src/migration/upstreams.ts'
import { createCheckIncidents } from '../../src/notifications/check-incidents.ts'
import { createOutboundGuard } from '../../src/security/outbound.ts'
import { createKeyRing } from '../../src/security/seal.ts'
import type { Temporal } from '../../src/temporal/client.ts'
import { createLauncher } from '../../src/temporal/launcher.ts'
import { createRoutes, receivedDocument } from './factories.ts'

/** Creates the dependencies of the maintenance jobs with the real parts of a worker. */
export const createMaintenanceDeps = (
  db: Database,
  temporal: Pick<Temporal, 'send'> & DeliveryWorkflows,
  config: Config,
): MaintenanceDeps => {
  const launcher = createLauncher(temporal, createOutbox(db), createLog('silent'), { sweepAgeMs: 0 })
  const { upstreamFailures, upstreamDocuments, installation } = receiverUseCases(db, config)
  const outbound = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const keyRing = createKeyRing(config.RELAY_SECRET_KEYS)
  const postgres = createPostgresStore(db)
  return {
    db,
    stores: { postgres },
    writeTo: postgres,
    keyRing,
    installation,
    outbound,
    release: createRelease(db),
    launcher,
    ...createOnItsOwn(),
    findConnector: createConnectors(config).find,
    callLines: createCallLines(db, config, launcher.launch),
    checkIncidents: createCheckIncidents(db, config),
    checkUpstreams: createCheckUpstreams(upstreamFailures, createUpstreams({ outbound, keyRing, installation }), upstreamDocuments),
    moveHome: async () => ({ moved: 0, waiting: 0, checked: 0 }),
    startMigrations: createStartMigrations(db, async () => {}),
    reconcile: createReconcile(db, temporal, createBulkRetries(db), launcher.sendAll, config),
    config,
  }
}

/** Receives a document, and commits a command that waits in the outbox. */
export const receiveDocument = async (db: Database, config: Config): Promise<void> => {
  const routes = await createRoutes(db, [{ name: 'archive' }])
  const { messages } = await createReceive(db, config)(await receivedDocument(routes, { data: 'hello' }))
  const { input } = messages[0]!
  const cancel = { kind: 'cancelDelivery', document: input, destinationId: routes.destinations['archive']!, requestId: newId() } as const
  await db.transaction((trx) => addMessages(trx, [cancel]))
}
