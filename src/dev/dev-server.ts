import { join, resolve } from 'node:path'
import { startApi } from '../app/api.ts'
import { migrateAll } from '../app/migrate.ts'
import { stopAll, type Running } from '../app/runtime.ts'
import type { Tracing } from '../app/tracing/tracing.ts'
import { startWorkerProcess, type WorkerProcess } from '../app/worker-process.ts'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { environment, readConfig, type Config } from '../config/config.ts'
import { createDirectory } from '../content/files.ts'
import { createDataDirMetric } from '../observe/metrics.ts'
import { createProbes } from '../observe/probes.ts'
import { readOrCreateSecretKey, removeReady, writeReady } from '../programs/data-dir.ts'
import { stablePort } from '../programs/ports.ts'
import { startStack } from './stack.ts'

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
}

/**
 * Starts the API and the receivers in this process and a worker in a process of its own, for development and the demo. Also starts
 * PostgreSQL and Temporal unless DATABASE_URL and TEMPORAL_ADDRESS are set. Data is kept in RELAY_DATA_DIR and survives a restart.
 * Destinations may be on this machine, so only this machine can reach the server unless RELAY_HOST says otherwise.
 */
export const startDevServer = async (variables: NodeJS.ProcessEnv, options: DevServerOptions): Promise<DevServer> => {
  const { log, tracing, say, signal } = options
  const initialConfig = readConfig(variables)
  const dataDir = initialConfig.RELAY_DATA_DIR
  const running: Running[] = []
  const stop = () => stopAll(running)

  try {
    const stack = await startStack({ dataDir, config: initialConfig, log, say, signal })
    running.push(stack)
    const given = withoutEmpty(variables)
    const contentDir = join(dataDir, 'contents')
    if (initialConfig.DATABASE_URL === undefined) await createDirectory(contentDir)
    const settings = {
      // With a database of its own, the server also keeps contents where it keeps everything else.
      ...(initialConfig.DATABASE_URL === undefined && { CONTENT_DIR: contentDir }),
      RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8,::1/128',
      RELAY_HOST: '127.0.0.1',
      // A second server on this machine needs a port of its own, and operators expect the same one after a restart.
      RELAY_PROBES_PORT: String(await stablePort(join(dataDir, 'probes.port'))),
      ...(stack.temporalUiUrl !== null && { TEMPORAL_UI_URL: stack.temporalUiUrl }),
      ...given,
      DATABASE_URL: stack.databaseUrl,
      TEMPORAL_ADDRESS: stack.temporalAddress,
      RELAY_SECRET_KEYS: given['RELAY_SECRET_KEYS'] ?? readOrCreateSecretKey(dataDir),
    }
    const config = readConfig(settings)
    const { searchAttributesError } = await migrateAll(config)
    if (searchAttributesError !== undefined) {
      log.warn({ reason: searchAttributesError }, 'search attributes could not be registered; running without them')
    }

    say('Starting the API and the worker ...')
    const probes = createProbes(log)
    let worker: WorkerProcess | undefined
    const requireWorker = async () => {
      if (!worker) throw new UserError('The worker is starting.')
      await worker.requireReady()
    }
    probes.add([{ name: 'worker', check: requireWorker }], [createDataDirMetric(dataDir)])
    const api = await startApi(config, log, { probes, tracing })
    running.push(api)
    worker = await startWorkerProcess({
      variables: {
        RELAY_WORKER_PORT: String(await stablePort(join(dataDir, 'worker.port'))),
        ...settings,
        // Download links in e-mails need the URL of the API. Its port may be unknown before the API has started.
        RELAY_BASE_URL: api.baseUrl,
        RELAY_LOG_LEVEL: log.level,
        RELAY_LOG_FORMAT: config.RELAY_LOG_FORMAT ?? 'pretty',
      },
      config,
      log,
      signal,
    })
    running.push(worker)

    await writeReady(dataDir, {
      base_url: api.baseUrl,
      temporal_ui_url: stack.temporalUiUrl,
      variables: {
        ...withoutOthers(settings),
        // Other commands run in other directories.
        RELAY_DATA_DIR: dataDir,
        ...(config.CONTENT_DIR && { CONTENT_DIR: resolve(config.CONTENT_DIR) }),
      },
      probes_url: api.probesUrl,
      worker_url: worker.probesUrl,
      pid: process.pid,
    })
    running.push({ stop: () => removeReady(dataDir) })
    return { config, baseUrl: api.baseUrl, temporalUiUrl: stack.temporalUiUrl, stop }
  } catch (thrown) {
    await stop().catch(() => {})
    throw thrown
  }
}

/** Returns the variables that configure the relay and its connection to Temporal. */
const withoutOthers = (variables: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => name in environment.shape || name.startsWith('TEMPORAL_')))

/** Returns the variables that are set. An empty one counts as not set. */
const withoutEmpty = (variables: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).filter((entry): entry is [string, string] => Boolean(entry[1])))
