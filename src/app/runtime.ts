import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '../base/errors.ts'
import { logFailure } from '../base/failure-log.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { createSegmentedStores } from '../content/segments.ts'
import { openDatabase } from '../db/database.ts'
import { isOutage } from '../db/errors.ts'
import { requireSchema } from '../db/migrations.ts'
import { createOnItsOwn } from '../db/on-its-own.ts'
import { createOutbox } from '../db/outbox.ts'
import { requirePrimary, requireServer } from '../db/require-server.ts'
import type { Dependency } from '../observe/probes.ts'
import { createDownloadLinks } from '../security/download-link.ts'
import { openOutboundGuard } from '../security/outbound.ts'
import { openTemporal } from '../temporal/client.ts'
import { isUnavailable } from '../temporal/errors.ts'
import { createLauncher } from '../temporal/launcher.ts'
import { openStores } from './stores.ts'
import { traceConnections } from './tracing/connections.ts'
import { traceSends } from './tracing/documents.ts'
import type { Tracing } from './tracing/tracing.ts'

/** A part of the relay that runs until it is stopped. */
export interface Running {
  stop(): Promise<void>
}

/** Stops all parts, the last one first, even if some of them fail. @throws the first failure */
export const stopAll = async (parts: Running[]): Promise<void> => {
  const failures: unknown[] = []
  for (const part of parts.splice(0).toReversed()) await part.stop().catch((thrown: unknown) => failures.push(thrown))
  if (failures.length > 0) throw failures[0]
}

type ProcessName = 'api' | 'worker'

interface Opening {
  log: Log
  tracing: Tracing | undefined
  /** Adds what closes a part. The part that was opened last is closed first. */
  onClose(close: () => Promise<unknown>): void
}

// A part that waits for a server which does not answer must not keep the reason of a failing start from the operator.
const failedCloseMaxMs = 5_000

/**
 * Opens a runtime and starts a part of the relay with it.
 * @throws why the start has failed, after everything that was opened has been closed
 */
export const startWith = async <Part extends object>(
  config: Config,
  name: ProcessName,
  { log, tracing }: Pick<Opening, 'log' | 'tracing'>,
  start: (runtime: Runtime) => Promise<Part>,
): Promise<Part & Running> => {
  const running: Running[] = []
  const closeAll = () => stopAll(running)
  try {
    const onClose: Opening['onClose'] = (close) => void running.push({ stop: async () => void (await close()) })
    const runtime = await openRuntime(config, name, { log, tracing, onClose })
    await checkDatabase(runtime)
    return { ...(await start(runtime)), stop: closeAll }
  } catch (thrown) {
    const closed = new AbortController()
    const closing = closeAll()
      .catch((failure: unknown) => log.debug({ reason: messageOf(failure) }, 'a part could not be closed'))
      .finally(() => closed.abort())
    await Promise.race([closing, pause(failedCloseMaxMs, undefined, { signal: closed.signal })]).catch(() => {})
    throw thrown
  }
}

/** Opens everything that the API and the worker have in common. Each part that was opened is passed to `onClose`, even if the next one fails. */
const openRuntime = async (config: Config, name: ProcessName, { log, tracing, onClose }: Opening) => {
  const db = openDatabase({ ...config, answersRequests: name === 'api' }, name, log)
  onClose(() => db.destroy())
  const temporal = openTemporal(config)
  onClose(temporal.close)
  const guard = openOutboundGuard(config)
  const outbound = tracing ? traceConnections(tracing, guard) : guard
  onClose(outbound.close)
  const outbox = createOutbox(db)
  const passedOver = createOnItsOwn({ log, concernsAll: (thrown) => isOutage(thrown) || isUnavailable(thrown) })
  const send = tracing ? traceSends(tracing, temporal.send) : temporal.send
  const launcher = createLauncher({ send }, outbox, log, passedOver)
  onClose(launcher.close)

  const { stores, home, writeTo, findConnector, keyRing } = await openStores(db, config, { outbound, log })
  return {
    config,
    log,
    tracing,
    db,
    temporal: { ...temporal, send },
    outbound,
    outbox,
    launcher,
    passedOver,
    findConnector,
    stores: createSegmentedStores(db, stores),
    home,
    writeTo,
    keyRing,
    downloadLinks: createDownloadLinks(config.RELAY_SECRET_KEYS),
    onClose,
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
    logFailure(log, thrown, 'the database is unavailable, so its schema could not be checked')
  }
}

/** Returns what the API and the worker depend on. */
export const dependenciesOf = ({ db, temporal }: Runtime): Dependency[] => [
  { name: 'database', check: () => requirePrimary(db) },
  { name: 'schema', check: () => requireSchema(db) },
  { name: 'temporal', check: temporal.ping },
]
