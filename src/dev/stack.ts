import type { Stack } from '../app/server.ts'
import type { Config } from '../config/config.ts'
import { lockDataDir } from '../programs/data-dir-lock.ts'
import { startPostgres, type PostgresOptions } from './postgres-server.ts'
import { startTemporalDevServer, type TemporalDevServerOptions } from './temporal-dev-server.ts'

export interface StackOptions {
  dataDir: string
  config: PostgresOptions['config'] & TemporalDevServerOptions['config'] & Pick<Config, 'DATABASE_URL' | 'temporal'>
  log: PostgresOptions['log']
  /** Prints progress, one sentence at a time. */
  say: (line: string) => void
  /** Aborts the start and stops the servers started so far. */
  signal?: AbortSignal | undefined
  /** Turns off fsync, for tests. A crash of the machine may then lose data. */
  fast?: boolean
}

type Stop = () => Promise<void>

/**
 * Starts PostgreSQL and Temporal, except those whose address is configured (DATABASE_URL, TEMPORAL_ADDRESS or a
 * Temporal profile). Only one stack can run on a data directory.
 * @throws `UserError` if the data directory is in use or a server cannot be started
 */
export const startStack = async (options: StackOptions): Promise<Stack> => {
  const { dataDir } = options
  const lock = await lockDataDir(dataDir)
  // If one server fails to start, abort the other. Its start may include a build that takes minutes.
  const failed = new AbortController()
  const signal = AbortSignal.any([failed.signal, ...(options.signal ? [options.signal] : [])])
  const orAbort = async <T>(starting: Promise<T>): Promise<T> => {
    try {
      return await starting
    } catch (thrown) {
      failed.abort(thrown)
      throw thrown
    }
  }

  const [database, temporal] = await Promise.allSettled([
    orAbort(startDatabase({ ...options, signal })),
    orAbort(startTemporal({ ...options, signal })),
  ])
  const stops = [temporal, database].flatMap((part) => (part.status === 'fulfilled' ? [part.value.stop] : []))
  const stopAll = async () => {
    try {
      for (const stop of stops.splice(0)) await stop()
    } finally {
      await lock.release()
    }
  }
  if (database.status === 'rejected' || temporal.status === 'rejected' || signal.aborted) {
    await stopAll()
    // The reason of the signal is the first failure. The other start only reports that it was aborted.
    throw signal.reason
  }
  let stopping: Promise<void> | undefined
  return {
    databaseUrl: database.value.url,
    temporalAddress: temporal.value.address,
    temporalUiUrl: temporal.value.uiUrl,
    stop: () => (stopping ??= stopAll()),
  }
}

const startDatabase = async (options: StackOptions): Promise<{ url: string; stop: Stop }> => {
  const configured = options.config.DATABASE_URL
  if (configured) return { url: configured, stop: async () => {} }
  options.say('Starting PostgreSQL ...')
  const postgres = await startPostgres(options)
  options.say('PostgreSQL is ready.')
  return postgres
}

const startTemporal = async (options: StackOptions): Promise<{ address: string; uiUrl: string | null; stop: Stop }> => {
  const configured = options.config.temporal.connectionOptions.address
  if (configured) return { address: configured, uiUrl: null, stop: async () => {} }
  options.say('Starting Temporal ...')
  const temporal = await startTemporalDevServer(options)
  options.say(`Temporal is ready. Its UI is at ${temporal.uiUrl}`)
  return temporal
}
