import { resolve } from 'node:path'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { environment, readConfig, type Config } from '../config/config.ts'
import { createDataDirMetric } from '../observe/metrics.ts'
import { createProbes } from '../observe/probes.ts'
import { explainWrite } from '../programs/data-dir-lock.ts'
import { removeReady, writeReady } from '../programs/data-dir.ts'
import { startApi } from './api.ts'
import { migrateAll } from './migrate.ts'
import { stopAll, type Running } from './runtime.ts'
import type { Tracing } from './tracing/tracing.ts'
import { startWorkerProcess, type WorkerProcess } from './worker-process.ts'

export interface ServerOptions {
  log: Log
  tracing?: Tracing | undefined
  /** Prints progress, one sentence at a time. The first start can take minutes. */
  say(line: string): void
  /** Aborts the start. */
  signal: AbortSignal
}

export interface StackOptions extends ServerOptions {
  dataDir: string
  config: Config
}

/** The servers that the relay needs, and that were started for it. */
export interface Stack {
  databaseUrl: string
  temporalAddress: string
  /** `null` if the UI of Temporal is unknown. */
  temporalUiUrl: string | null
  /** Is rejected when the servers can run no longer. */
  ended?: Promise<never>
  /** Stops the servers that were started. Call it after stopping everything that uses them. Safe to call again. */
  stop(): Promise<void>
}

/** What a form of the server is made of. */
export interface ServerForm {
  /** Format of the log, unless RELAY_LOG_FORMAT is set. */
  logFormat: 'json' | 'pretty'
  startStack(options: StackOptions): Promise<Stack>
  /** Returns variables by which this form differs from `relay api` and `relay worker`. The environment overrides them. */
  defaults(config: Config): Promise<Record<string, string>>
}

export interface Server extends Running {
  config: Config
  baseUrl: string
  /** Address of the probes and metrics of the API. */
  probesUrl: string
  temporalUiUrl: string | null
  ended?: Promise<never>
}

/**
 * Starts the servers of a form, the API and the receivers in this process, and a worker in a process of its own. RELAY_DATA_DIR tells other
 * commands where it runs.
 */
export const startServer = async (variables: NodeJS.ProcessEnv, form: ServerForm, options: ServerOptions): Promise<Server> => {
  const { log, tracing, say, signal } = options
  const initialConfig = readConfig(variables)
  const dataDir = initialConfig.RELAY_DATA_DIR
  const running: Running[] = []
  const stop = () => stopAll(running)

  try {
    const stack = await form.startStack({ ...options, dataDir, config: initialConfig })
    running.push(stack)
    const settings: Record<string, string> = {
      ...(await form.defaults(initialConfig)),
      ...(stack.temporalUiUrl !== null && { TEMPORAL_UI_URL: stack.temporalUiUrl }),
      ...withoutEmpty(variables),
      DATABASE_URL: stack.databaseUrl,
      TEMPORAL_ADDRESS: stack.temporalAddress,
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
        ...settings,
        // Download links in e-mails need the URL of the API. Its port may be unknown before the API has started.
        RELAY_BASE_URL: api.baseUrl,
        RELAY_LOG_LEVEL: log.level,
        RELAY_LOG_FORMAT: config.RELAY_LOG_FORMAT ?? form.logFormat,
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
    return {
      config,
      baseUrl: api.baseUrl,
      probesUrl: api.probesUrl,
      temporalUiUrl: stack.temporalUiUrl,
      ...(stack.ended && { ended: stack.ended }),
      stop,
    }
  } catch (thrown) {
    await stop().catch(() => {})
    throw explainWrite(dataDir, thrown) ?? thrown
  }
}

/** Returns the variables that configure the relay and its connection to Temporal. */
const withoutOthers = (variables: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => name in environment.shape || name.startsWith('TEMPORAL_')))

/** Returns the variables that are set. An empty one counts as not set. */
const withoutEmpty = (variables: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).filter((entry): entry is [string, string] => Boolean(entry[1])))
