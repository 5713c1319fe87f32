import { migrateAll } from './commands/migrate.ts'
import { startApi } from './compose/api.ts'
import type { Running } from './compose/runtime.ts'
import { startWorker } from './compose/worker.ts'
import { readConfig, type Config } from './config.ts'
import { readOrCreateSecretKey, removeReady, writeReady } from './embedded/data-dir.ts'
import { startStack } from './embedded/stack.ts'
import type { Log } from './log.ts'
import { createDataDirMetric } from './monitoring/data-dir-metric.ts'
import { createProbes } from './monitoring/probes.ts'
import type { Tracing } from './tracing/tracing.ts'

export interface DevServerOptions {
  log: Log
  tracing?: Tracing | undefined
  /** Prints progress, one sentence at a time. The first start can take minutes. */
  say(line: string): void
  /** Aborts the start. */
  signal: AbortSignal
}

export interface DevServer extends Running {
  config: Config
  baseUrl: string
  temporalUiUrl: string | null
  /** Settles when the worker ends by itself. */
  ended: Promise<void>
}

/**
 * Starts the API, the receivers and a worker in this process, for development and the demo. Also starts PostgreSQL and
 * Temporal unless DATABASE_URL and TEMPORAL_ADDRESS are set. Data is kept in RELAY_DATA_DIR and survives a restart.
 * Destinations may be on this machine, so only this machine can reach the server unless RELAY_HOST says otherwise.
 */
export const startDevServer = async (variables: NodeJS.ProcessEnv, options: DevServerOptions): Promise<DevServer> => {
  const { log, tracing, say, signal } = options
  const initialConfig = readConfig(variables)
  const dataDir = initialConfig.RELAY_DATA_DIR
  const running: Running[] = []
  const stop = async () => {
    for (const part of running.splice(0).toReversed()) await part.stop()
  }

  try {
    const stack = await startStack({ dataDir, config: initialConfig, log, say, signal })
    running.push(stack)
    const config = readConfig({
      RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8,::1/128',
      RELAY_HOST: '127.0.0.1',
      ...(stack.temporalUiUrl !== null && { TEMPORAL_UI_URL: stack.temporalUiUrl }),
      ...variables,
      DATABASE_URL: stack.databaseUrl,
      TEMPORAL_ADDRESS: stack.temporalAddress,
      RELAY_SECRET_KEYS: variables['RELAY_SECRET_KEYS'] ?? readOrCreateSecretKey(dataDir),
    })
    const { searchAttributesError } = await migrateAll(config)
    if (searchAttributesError !== undefined) {
      log.warn({ reason: searchAttributesError }, 'search attributes could not be registered; running without them')
    }

    say('Starting the API and the worker ...')
    const probes = createProbes(log)
    probes.add([], [createDataDirMetric(dataDir)])
    const api = await startApi(config, log, { probes, tracing })
    running.push(api)
    // Download links in e-mails need the URL of the API. Its port may be unknown before the API has started.
    const worker = await startWorker({ ...config, RELAY_BASE_URL: api.baseUrl }, log, { probes, tracing })
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
