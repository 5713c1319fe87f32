import { startApi, startWorker, type Running } from './compose.ts'
import { readConfig, type Config } from './config.ts'
import { openDatabase } from './db/database.ts'
import { migrate } from './db/migrations.ts'
import { keepSecretKey } from './embedded/secret-key.ts'
import { removeReady, writeReady } from './embedded/ready.ts'
import { startStack } from './embedded/stack.ts'
import type { Log } from './log.ts'
import { registerSearchAttributes } from './temporal/search-attributes.ts'
import { installRuntime } from './temporal/worker.ts'

export interface StartOptions {
  log: Log
  /** Told what is going on, in words: the first start may take minutes. */
  say(line: string): void
  /** Gives up starting. */
  signal: AbortSignal
}

export interface Server extends Running {
  config: Config
  baseUrl: string
  temporalUiUrl: string | null
  /** Resolves or rejects where the worker ends by itself. */
  ended: Promise<void>
}

/**
 * Everything in this process, and the database and Temporal beside it where no address of one is given. For development and the
 * demo: data lies in RELAY_DATA_DIR and survives a restart; targets on this machine are allowed.
 */
export const startServer = async (variables: NodeJS.ProcessEnv, options: StartOptions): Promise<Server> => {
  const { log, say, signal } = options
  const given = readConfig(variables)
  const dataDir = given.RELAY_DATA_DIR
  const running: Running[] = []
  const stop = async () => {
    for (const part of running.splice(0).toReversed()) await part.stop()
  }

  try {
    const stack = await startStack({ dataDir, config: given, log, say, signal })
    running.push(stack)
    const config = readConfig({
      RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8,::1/128',
      ...variables,
      DATABASE_URL: stack.databaseUrl,
      TEMPORAL_ADDRESS: stack.temporalAddress,
      RELAY_SECRET_KEYS: variables['RELAY_SECRET_KEYS'] ?? keepSecretKey(dataDir),
    })
    await migrateOnce(config)
    const refusal = await registerSearchAttributes(config)
    if (refusal !== undefined) log.warn({ reason: refusal }, 'search attributes are not registered, running without them')

    installRuntime(log)
    say('Starting the worker and the API ...')
    const api = await startApi(config, log)
    running.push(api)
    // links in mails lead to the API, whose port may only be known by now
    const worker = await startWorker({ ...config, RELAY_BASE_URL: api.baseUrl }, log)
    running.push(worker)

    await writeReady(dataDir, {
      base_url: api.baseUrl,
      temporal_address: stack.temporalAddress,
      temporal_ui_url: stack.temporalUiUrl,
      database_url: stack.databaseUrl,
      pid: process.pid,
    })
    running.push({ stop: () => removeReady(dataDir) })
    return { config, baseUrl: api.baseUrl, temporalUiUrl: stack.temporalUiUrl, ended: worker.ended, stop }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

const migrateOnce = async (config: Config) => {
  const db = openDatabase(config, 'migrate')
  try {
    await migrate(db)
  } finally {
    await db.destroy()
  }
}
