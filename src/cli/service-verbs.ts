import { Option, type Command } from 'commander'
import type { Running } from '../app/runtime.ts'
import type { Tracing } from '../app/tracing/tracing.ts'
import type { Log } from '../base/log.ts'
import { version } from '../base/version.ts'
import type { Config } from '../config/config.ts'
import type { CommandContext } from './context.ts'
import { endLeftovers, print, printFailure, printProgress } from './output.ts'
import { createStopSignal } from './stop-signal.ts'

/** Adds the verbs that run parts of the relay until they are stopped. */
export const addServiceVerbs = (program: Command, context: CommandContext) => {
  program
    .command('api')
    .description('serve the management API, the receivers and the bridge')
    .action(async () => {
      const settings = await context.config()
      await runService({ settings, format: 'json', stopMaxMs: startMaxMs }, async ({ log, tracing }) => {
        const { startApi } = await import('../app/api.ts')
        const api = await startApi(settings, log, { tracing })
        log.info({ base_url: api.baseUrl, probes_url: api.probesUrl, version }, 'the api is ready')
        return api
      })
    })
  program
    .command('worker')
    .description('run workflows and deliver documents')
    .addOption(new Option('--supervised', 'run as a child of relay server').hideHelp())
    .action(async ({ supervised = false }: { supervised?: boolean }) => {
      if (supervised) endWithParent()
      const settings = await context.config()
      await runService({ settings, format: 'json', stopMaxMs: startMaxMs }, async ({ log, tracing }) => {
        const { startWorker } = await import('../app/worker.ts')
        const worker = await startWorker(settings, log, { tracing })
        log.info({ probes_url: worker.probesUrl, version }, 'the worker is ready')
        if (supervised) process.send?.({ probes_url: worker.probesUrl })
        return worker
      })
    })
  program
    .command('mcp')
    .description('serve tools for AI agents on standard input and output; RELAY_API_KEY is an API key of the workspace')
    .option('--url <url>', 'address of the relay (default: RELAY_URL)')
    .option('--workspace <user/workspace>', 'the workspace (default: RELAY_WORKSPACE)')
    .option('--allow-changes', 'also serve the tools that change something')
    .action(async ({ allowChanges = false, ...options }: { url?: string; workspace?: string; allowChanges?: boolean }) => {
      const [{ relayOf }, { serveMcp }] = await Promise.all([import('./mcp/relay.ts'), import('./mcp/serve.ts')])
      serveMcp(relayOf(options, context.variables), { allowChanges })
    })
}

/** Adds the verbs that start everything on one machine. */
export const addDevelopmentVerbs = (program: Command, { variables }: CommandContext) => {
  const readOwnConfig = async () => {
    const { readConfig } = await import('../config/config.ts')
    return readConfig(variables)
  }
  const runOneMachine = async (settings: Config) => {
    const [{ startServer }, { oneMachine }] = await Promise.all([import('../app/server.ts'), import('../app/one-machine.ts')])
    await runService({ settings, format: oneMachine.logFormat, stopMaxMs: startMaxMs }, async (options) => {
      const server = await startServer(variables, oneMachine, { ...options, say: (line) => options.log.info(line) })
      options.log.info({ base_url: server.baseUrl, probes_url: server.probesUrl, version }, 'the server is ready')
      return server
    })
  }
  program
    .command('server')
    .description(
      'start everything: for development PostgreSQL, Temporal with its UI, the API, the receivers and a worker; with RELAY_TEMPORAL=local, ' +
        'for production on one machine, on the PostgreSQL of DATABASE_URL',
    )
    .action(async () => {
      const settings = await readOwnConfig()
      if (settings.RELAY_TEMPORAL === 'local') return runOneMachine(settings)
      const [{ startDevServer }, { viewLines }] = await Promise.all([import('../dev/dev-server.ts'), import('../dev/temporal-views.ts')])
      await runService({ settings, format: 'pretty' }, async (options) => {
        const server = await startDevServer(variables, { ...options, say: printProgress })
        printProgress(`The relay is ready at ${server.baseUrl}`)
        printProgress(`The console is at ${server.baseUrl}/console`)
        if (server.temporalUiUrl) {
          printProgress(`The Temporal UI is at ${server.temporalUiUrl}. Lists to save there as views:`)
          for (const line of viewLines(server.temporalUiUrl)) printProgress(line)
        }
        printProgress('Press Ctrl-C to stop.')
        return server
      })
    })
  program
    .command('demo')
    .description('start everything and deliver a PDF from a demo source system to two local destinations')
    .option('--once', 'exit after the delivery, with status 0 if the document arrived')
    .action(async (options: { once?: boolean }) => {
      const { runDemo } = await import('../dev/demo/demo.ts')
      // The terminal is for the story.
      const level = variables['RELAY_LOG_LEVEL'] ?? 'error'
      const onStop = () => print('Stopping ...')
      await runService({ settings: await readOwnConfig(), format: 'pretty', level, onStop }, async (parts) => {
        const demo = await runDemo(variables, { ...parts, say: print, isOnce: options.once === true })
        if (!demo.delivered) process.exitCode = 1
        if (options.once) return { ...demo, ended: Promise.resolve() }
        print('\nEverything keeps running. Press Ctrl-C to stop.')
        return demo
      })
    })
}

/**
 * Ends this process when its parent is gone, even by SIGKILL. PostgreSQL and Temporal also end then, so a clean shutdown would wait for
 * servers that never answer. An attempt that is cut off is repeated, as after any loss of a worker.
 */
const endWithParent = () => {
  process.once('disconnect', () => process.exit(1))
  // Listening must not keep the process alive after its shutdown.
  process.channel?.unref()
}

/** Opens the log and, if they are configured, the traces, whose ids the log lines have. */
const openTelemetry = async (settings: Config, format: 'json' | 'pretty', level: string = settings.RELAY_LOG_LEVEL) => {
  const [{ openTracing }, { openLog }] = await Promise.all([import('../app/tracing/open-tracing.ts'), import('../base/log.ts')])
  const tracing = await openTracing(settings, (reason) => log.warn({ reason }, 'spans were lost'))
  const log = await openLog(level, settings.RELAY_LOG_FORMAT ?? format, tracing?.logFields)
  const { unknownVariables } = settings
  if (unknownVariables.length > 0) log.warn({ variables: unknownVariables }, 'variables that the relay does not know are ignored')
  return { log, tracing }
}

interface ServiceOptions {
  settings: Config
  format: 'json' | 'pretty'
  level?: string
  /** Ends the process this long after SIGTERM came during a start that does not look at the signal. */
  stopMaxMs?: number
  /** Is called when the service begins to stop because it was asked to. */
  onStop?: () => void
}

interface ServiceParts {
  log: Log
  tracing: Tracing | undefined
  /** Is aborted when the service is to stop. */
  signal: AbortSignal
}

const startMaxMs = 10_000

/**
 * Runs a service until SIGTERM, Ctrl-C or its own end, then stops it. What was opened is closed whether or not the start succeeds.
 * @param start returns the running service; `ended` settles when it ends by itself
 */
const runService = async (
  { settings, format, level, stopMaxMs, onStop }: ServiceOptions,
  start: (parts: ServiceParts) => Promise<Running & { ended?: Promise<void> }>,
): Promise<void> => {
  const signal = createStopSignal()
  const [{ log, tracing }, { collectStartGarbage }] = await Promise.all([
    openTelemetry(settings, format, level),
    import('./start-garbage.ts'),
  ])
  const endStart = () => {
    const end = () => {
      printFailure(signal.reason, 'relay')
      process.exit(1)
    }
    setTimeout(end, stopMaxMs).unref()
  }
  try {
    if (stopMaxMs !== undefined) signal.addEventListener('abort', endStart)
    const service = await start({ log, tracing, signal })
    signal.removeEventListener('abort', endStart)
    try {
      await Promise.race([collectStartGarbage().then(() => aborted(signal)), ...(service.ended ? [service.ended] : [])])
      log.info('stopping')
      if (signal.aborted) onStop?.()
    } finally {
      await service.stop()
    }
  } finally {
    await tracing?.stop()
  }
  endLeftovers()
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
