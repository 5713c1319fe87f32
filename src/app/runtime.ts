import { messageOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { createConnectors } from '../connectors/index.ts'
import { createStores } from '../content/configured-stores.ts'
import { createSegmentedStores } from '../content/segments.ts'
import { isOutage, openDatabase } from '../db/database.ts'
import { requireSchema } from '../db/migrations.ts'
import { createOutbox } from '../db/outbox.ts'
import { requirePrimary, requireServer } from '../db/require-server.ts'
import type { Dependency } from '../observe/probes.ts'
import { createDownloadLinks } from '../security/download-link.ts'
import { createOutboundGuard } from '../security/outbound.ts'
import { createKeyRing } from '../security/seal.ts'
import { openTemporal } from '../temporal/client.ts'
import { createLauncher } from '../temporal/launcher.ts'
import { traceConnections } from './tracing/connections.ts'
import { traceSends } from './tracing/documents.ts'
import type { Tracing } from './tracing/tracing.ts'

/** A part of the relay that runs until it is stopped. */
export interface Running {
  stop(): Promise<void>
}

/** Opens everything that the API and the worker have in common. `close` closes it in the reverse order, after what `onClose` has added. */
export const openRuntime = async (config: Config, name: 'api' | 'worker', log: Log, tracing: Tracing | undefined) => {
  const closers: (() => Promise<unknown>)[] = []
  const onClose = (close: () => Promise<unknown>) => void closers.unshift(close)

  const db = openDatabase(config, name, log)
  onClose(() => db.destroy())
  const temporal = openTemporal(config)
  onClose(temporal.close)
  const guard = createOutboundGuard({ allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS })
  const outbound = tracing ? traceConnections(tracing, guard) : guard
  onClose(outbound.close)
  const outbox = createOutbox(db)
  const launcher = createLauncher(tracing ? { ...temporal, send: traceSends(tracing, temporal.send) } : temporal, outbox, config, log)
  onClose(launcher.close)

  const stores = await createStores(db, config)
  return {
    config,
    log,
    tracing,
    db,
    temporal,
    outbound,
    outbox,
    launcher,
    findConnector: createConnectors({ directoryRoots: config.RELAY_DIRECTORY_ROOTS }).find,
    stores: createSegmentedStores(db, stores),
    writeTo: stores.s3 ?? stores.files ?? stores.postgres,
    keyRing: createKeyRing(config.RELAY_SECRET_KEYS),
    downloadLinks: createDownloadLinks(config.RELAY_SECRET_KEYS),
    onClose,
    close: async () => {
      for (const close of closers.splice(0)) await close()
    },
  }
}

export type Runtime = Awaited<ReturnType<typeof openRuntime>>

/**
 * Refuses to start with a server or a schema with which every request would fail. Without a database the relay starts, and `/readyz`
 * repeats the checks.
 */
const checkDatabase = async ({ db, config, log }: Runtime): Promise<void> => {
  try {
    for (const warning of await requireServer(db, config)) log.warn(warning)
    await requireSchema(db)
  } catch (thrown) {
    if (!isOutage(thrown)) throw thrown
    log.warn({ reason: messageOf(thrown) }, 'the database is unavailable, so its schema could not be checked')
  }
}

/** Opens a runtime and starts a part of the relay with it. The runtime is closed if the start fails. */
export const startWith = async <Part extends object>(
  runtime: Runtime,
  start: (runtime: Runtime) => Promise<Part>,
): Promise<Part & Running> => {
  try {
    await checkDatabase(runtime)
    return { ...(await start(runtime)), stop: runtime.close }
  } catch (thrown) {
    await runtime.close()
    throw thrown
  }
}

/** Returns what the API and the worker depend on. */
export const dependenciesOf = ({ db, temporal }: Runtime): Dependency[] => [
  { name: 'database', check: () => requirePrimary(db) },
  { name: 'schema', check: () => requireSchema(db) },
  { name: 'temporal', check: temporal.ping },
]
