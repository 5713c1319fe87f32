import type { Config } from '../config.ts'
import { lockDataDir } from './lock.ts'
import { startPostgres, type PostgresOptions } from './postgres.ts'
import { startTemporalDevServer, type DevServerOptions } from './temporal-dev-server.ts'

export interface StackOptions {
  dataDir: string
  config: PostgresOptions['config'] & DevServerOptions['config'] & Pick<Config, 'DATABASE_URL' | 'temporal'>
  log: PostgresOptions['log']
  /** Takes progress, a sentence at a time. */
  say: (line: string) => void
  /** Gives up starting, and stops what has been started. */
  signal?: AbortSignal | undefined
  /** For tests: a crash of the machine may lose data. */
  fast?: boolean
}

export interface Stack {
  databaseUrl: string
  temporalAddress: string
  /** Null for a Temporal that is not ours. */
  temporalUiUrl: string | null
  /** Stops what was started, after everything that uses it. Safe to call again. */
  stop(): Promise<void>
}

type Stop = () => Promise<void>

/**
 * Everything the relay runs on: an address that is given (DATABASE_URL, TEMPORAL_ADDRESS or a Temporal profile) is taken as it is,
 * the rest is started. One stack for one data directory.
 * @throws UserError
 */
export const startStack = async (options: StackOptions): Promise<Stack> => {
  const { dataDir } = options
  const lock = await lockDataDir(dataDir)
  // where one fails, the other need not go on: it may be in the middle of a build
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
    orAbort(databaseOf({ ...options, signal })),
    orAbort(temporalOf({ ...options, signal })),
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
    // the first reason: what followed was only interrupted
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

const databaseOf = async (options: StackOptions): Promise<{ url: string; stop: Stop }> => {
  const given = options.config.DATABASE_URL
  if (given) return { url: given, stop: async () => {} }
  options.say('Starting PostgreSQL.')
  const postgres = await startPostgres(options)
  options.say('PostgreSQL is ready.')
  return postgres
}

const temporalOf = async (options: StackOptions): Promise<{ address: string; uiUrl: string | null; stop: Stop }> => {
  const given = options.config.temporal.connectionOptions.address
  if (given) return { address: given, uiUrl: null, stop: async () => {} }
  options.say('Starting Temporal.')
  const temporal = await startTemporalDevServer(options)
  options.say(`Temporal is ready, its UI at ${temporal.uiUrl}.`)
  return temporal
}
