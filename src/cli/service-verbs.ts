import { Option, type Command } from 'commander'
import type { Running } from '../app/runtime.ts'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { version } from '../base/version.ts'
import type { Config } from '../config/config.ts'
import type { CommandContext } from './context.ts'
import { print, printProgress } from './output.ts'

/** Adds the verbs that run parts of the relay until they are stopped. */
export const addServiceVerbs = (program: Command, context: CommandContext) => {
  program
    .command('api')
    .description('serve the management API, the receivers and the bridge')
    .action(async () => {
      const settings = await context.config()
      const { log, tracing } = await openTelemetry(settings, 'json')
      const stopSignal = createStopSignal()
      const { startApi } = await import('../app/api.ts')
      const api = await startApi(settings, log, { tracing })
      log.info({ base_url: api.baseUrl, version }, 'the api is ready')
      await runUntilStopped(stopSignal, [tracing, api], log)
    })
  program
    .command('worker')
    .description('run workflows and deliver documents')
    .addOption(new Option('--supervised', 'run as a child of relay server').hideHelp())
    .action(async ({ supervised = false }: { supervised?: boolean }) => {
      if (supervised) endWithParent()
      const settings = await context.config()
      const { log, tracing } = await openTelemetry(settings, 'json')
      const { startWorker } = await import('../app/worker.ts')
      const stopSignal = createStopSignal()
      const worker = await startWorker(settings, log, { tracing })
      log.info({ probes_url: worker.probesUrl, version }, 'the worker is ready')
      if (supervised) process.send?.({ probes_url: worker.probesUrl })
      await runUntilStopped(stopSignal, [tracing, worker], log, worker.ended)
    })
}

/** Adds the verbs that start everything on one machine. */
export const addDevelopmentVerbs = (program: Command, { variables }: CommandContext) => {
  const readOwnConfig = async () => {
    const { readConfig } = await import('../config/config.ts')
    return readConfig(variables)
  }
  program
    .command('server')
    .description('start everything for development: PostgreSQL, Temporal with its UI, the API, the receivers and a worker')
    .action(async () => {
      const { startDevServer } = await import('../dev/dev-server.ts')
      const { log, tracing } = await openTelemetry(await readOwnConfig(), 'pretty')
      const stopSignal = createStopSignal()
      const server = await startDevServer(variables, { log, tracing, say: printProgress, signal: stopSignal })
      printProgress(`The relay is ready at ${server.baseUrl}`)
      printProgress(`The console is at ${server.baseUrl}/console`)
      if (server.temporalUiUrl) printProgress(`The Temporal UI is at ${server.temporalUiUrl}`)
      printProgress('Press Ctrl-C to stop.')
      await runUntilStopped(stopSignal, [tracing, server], log)
    })
  program
    .command('demo')
    .description('start everything and deliver a PDF from a demo source system to two local destinations')
    .option('--once', 'exit after the delivery, with status 0 if the document arrived')
    .action(async (options: { once?: boolean }) => {
      const { runDemo } = await import('../dev/demo/demo.ts')
      const { log, tracing } = await openTelemetry(await readOwnConfig(), 'pretty', variables['RELAY_LOG_LEVEL'] ?? 'warn')
      const stopSignal = createStopSignal()
      const demo = await runDemo(variables, { log, tracing, say: print, signal: stopSignal, hasSampleData: !options.once })
      if (!demo.delivered) process.exitCode = 1
      if (options.once) {
        await demo.stop()
        return tracing?.stop()
      }
      print('\nEverything keeps running. Press Ctrl-C to stop.')
      return runUntilStopped(stopSignal, [tracing, demo], log)
    })
}

/**
 * Ends this process when its parent is gone, even by SIGKILL. PostgreSQL and Temporal end then, too, so a clean shutdown would wait for
 * them in vain. An attempt that is cut off is repeated, as after any loss of a worker.
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

/**
 * Returns a signal that SIGTERM and Ctrl-C abort. The handlers are installed immediately, and only for the first
 * signal: a second one ends the process without a clean shutdown.
 */
const createStopSignal = (): AbortSignal => {
  const controller = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => controller.abort(new UserError(`Stopped by ${signal}.`)))
  }
  return controller.signal
}

/**
 * Waits until the signal is aborted or `ended` settles, then stops the parts in reverse order.
 * @param ended the end of a part that may end by itself
 */
const runUntilStopped = async (stopSignal: AbortSignal, parts: (Running | undefined)[], log: Log, ended?: Promise<void>): Promise<void> => {
  try {
    await Promise.race([aborted(stopSignal), ...(ended ? [ended] : [])])
    log.info('stopping')
  } finally {
    for (const part of parts.toReversed()) await part?.stop()
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
