import type { Config } from '../config.ts'
import { createConnectors } from '../connectors/index.ts'
import { createPostgresStore } from '../content/postgres.ts'
import { createS3Store } from '../content/s3.ts'
import { createSegmentedStores } from '../content/segments.ts'
import { isOutage, openDatabase } from '../db/database.ts'
import { requireSchema } from '../db/migrations.ts'
import { createOutbox } from '../db/outbox.ts'
import { messageOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Dependency, Probes } from '../monitoring/probes.ts'
import { createDownloadLinks } from '../security/download-link.ts'
import { createOutboundGuard } from '../security/outbound.ts'
import { createKeyRing } from '../security/seal.ts'
import { openTemporal } from '../temporal/client.ts'
import { createLauncher } from '../temporal/launcher.ts'
import { traceConnections } from '../tracing/connections.ts'
import { traceCommits, traceSends } from '../tracing/documents.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { createUseCases } from '../use-cases.ts'

/** A part of the relay that runs until it is stopped. */
export interface Running {
  stop(): Promise<void>
}

/** Parts that the API and the worker of the one-process server share, and the traces of the process if it records any. */
export interface Shared {
  probes?: Probes
  tracing?: Tracing | undefined
}

/** Opens everything that the API and the worker have in common. `close` closes it in the reverse order, after what `onClose` has added. */
export const openRuntime = (config: Config, name: 'api' | 'worker', log: Log, tracing: Tracing | undefined) => {
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
  const launcher = createLauncher(tracing ? { send: traceSends(tracing, temporal.send) } : temporal, outbox, config, log)
  onClose(launcher.close)

  const postgres = createPostgresStore(db)
  const useCases = createUseCases(db, config)
  const s3 = config.CONTENT_S3_BUCKET ? createS3Store(db, { ...config, CONTENT_S3_BUCKET: config.CONTENT_S3_BUCKET }) : undefined
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
    stores: createSegmentedStores(db, { postgres, s3 }),
    writeTo: s3 ?? postgres,
    keyRing: createKeyRing(config.RELAY_SECRET_KEYS),
    downloadLinks: createDownloadLinks(config.RELAY_SECRET_KEYS),
    useCases: tracing ? traceCommits(tracing, useCases) : useCases,
    onClose,
    close: async () => {
      for (const close of closers.splice(0)) await close()
    },
  }
}

export type Runtime = ReturnType<typeof openRuntime>

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
export const startWith = async <Part extends object>(
  runtime: Runtime,
  start: (runtime: Runtime) => Promise<Part>,
): Promise<Part & Running> => {
  try {
    await checkSchema(runtime)
    return { ...(await start(runtime)), stop: runtime.close }
  } catch (thrown) {
    await runtime.close()
    throw thrown
  }
}

/** Returns what the API and the worker depend on. */
export const dependenciesOf = ({ db, temporal }: Runtime): Dependency[] => [
  { name: 'database', check: () => db.raw('select 1') },
  { name: 'schema', check: () => requireSchema(db) },
  { name: 'temporal', check: temporal.ping },
]
