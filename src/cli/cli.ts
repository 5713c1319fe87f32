import { Command, Option } from 'commander'
import { openTracing } from '../app/tracing/open-tracing.ts'
import { openLog } from '../base/log.ts'
import { version } from '../base/version.ts'
import { loadEnvFile, readConfig, type Config } from '../config/config.ts'
import { readReady, readSecretKey } from '../dev/data-dir.ts'
import { addKeyVerbs, addSealingKeyVerbs, addWorkspaceVerbs } from './administration-verbs.ts'
import { addApplyVerbs } from './apply-verbs.ts'
import type { Finding } from './doctor/doctor.ts'
import { addDocumentVerbs } from './document-verbs.ts'
import { dryRunNote, jsonOption, print, printJson, printProgress, printResult, type OutputOptions, type ReadConfig } from './output.ts'
import { createStopSignal, runUntilStopped } from './run-until-stopped.ts'

type Variables = NodeJS.ProcessEnv

/**
 * Creates the command line. Results go to standard output, logs and progress to standard error.
 *
 * A module that only one verb needs is imported in the verb's action: loading the whole relay takes over a second, and
 * most verbs send one query to the database.
 */
export const createCli = (variables: Variables): Command => {
  const program = new Command('relay')
    .description('Receives documents from an enterprise source system and delivers each to every connected destination.')
    .version(version, '--version', 'print the version')
    .option('--env-file <path>', 'read variables that are not set from a file of NAME=value lines')
    .hook('preAction', () => {
      const { envFile } = program.opts<{ envFile?: string }>()
      if (envFile !== undefined) loadEnvFile(envFile, variables)
    })
    .showHelpAfterError()
  const config = () => readConfig(withRunningServer(variables))

  addServiceVerbs(program, config)
  addSetupVerbs(program, config, variables)
  addDocumentVerbs(program, config)
  addWorkspaceVerbs(program, config)
  addKeyVerbs(program, config)
  addSealingKeyVerbs(program, config, variables)
  addApplyVerbs(program, config, variables)
  addDevelopmentVerbs(program, variables)
  return program
}

const addServiceVerbs = (program: Command, config: ReadConfig) => {
  program
    .command('api')
    .description('serve the management API, the receivers and the bridge')
    .action(async () => {
      const settings = config()
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
      const settings = config()
      const { log, tracing } = await openTelemetry(settings, 'json')
      const { startWorker } = await import('../app/worker.ts')
      const stopSignal = createStopSignal()
      const worker = await startWorker(settings, log, { tracing })
      log.info({ probes_url: worker.probesUrl, version }, 'the worker is ready')
      if (supervised) process.send?.({ probes_url: worker.probesUrl })
      await runUntilStopped(stopSignal, [tracing, worker], log, worker.ended)
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
  const tracing = await openTracing(settings, (reason) => log.warn({ reason }, 'spans were lost'))
  const log = await openLog(level, settings.RELAY_LOG_FORMAT ?? format, tracing?.logFields)
  const { unknownVariables } = settings
  if (unknownVariables.length > 0) log.warn({ variables: unknownVariables }, 'variables that the relay does not know are ignored')
  return { log, tracing }
}

const describeFinding = ({ name, status, message, warnings, remedy }: Finding): string[] => {
  const lines =
    status === 'warning'
      ? warnings.map((warning) => `warn  ${name}: ${warning}`)
      : [`${{ ok: 'ok  ', failed: 'FAIL', not_checked: '-   ' }[status]}  ${name}: ${message}`]
  // What could not be checked follows from a line above it, which says what to do.
  return remedy === null || status === 'not_checked' ? lines : [...lines, `      Do: ${remedy}`]
}

const addSetupVerbs = (program: Command, config: ReadConfig, variables: Variables) => {
  program
    .command('migrate')
    .description('update the database schema and register the search attributes in Temporal')
    .option('--without-search-attributes', 'succeed even if the search attributes cannot be registered')
    .addOption(jsonOption)
    .action(async (options: OutputOptions & { withoutSearchAttributes?: boolean }) => {
      const { migrateAll } = await import('../app/migrate.ts')
      const { applied, searchAttributesError } = await migrateAll(config())
      printResult(options, { applied, search_attributes: searchAttributesError === undefined }, [
        applied.length > 0 ? `Applied: ${applied.join(', ')}` : 'The database schema is up to date.',
        searchAttributesError === undefined
          ? 'The search attributes are registered.'
          : `The search attributes are not registered: ${searchAttributesError}`,
      ])
      if (searchAttributesError === undefined || options.withoutSearchAttributes) return
      process.exitCode = 1
      printProgress(
        'Run relay migrate again when Temporal is available. The relay also runs without the search attributes, but the list filters of the ' +
          'Temporal UI then find nothing: use --without-search-attributes if that is intended, or if somebody else registers them.',
      )
    })
  program
    .command('doctor')
    .description('check everything that the relay needs, and the hardening checklist, and report what is missing')
    .option('--strict', 'exit with 1 for warnings, too')
    .option('-f, --file <path>', 'also compare the workspaces with the file of relay apply')
    .addOption(jsonOption)
    .action(async (options: OutputOptions & { strict?: boolean; file?: string }) => {
      const { diagnose, exitStatusOf } = await import('./doctor/doctor.ts')
      const findings = await diagnose(config(), {
        source: variables['DATABASE_URL'] ? 'environment variables' : 'the running script/server',
        isEmbedded: !variables['DATABASE_URL'],
        workspacesFile: options.file === undefined ? undefined : { path: options.file, variables },
      })
      printResult(options, findings, findings.flatMap(describeFinding))
      process.exitCode = exitStatusOf(findings, options.strict === true)
    })
  program
    .command('reconcile')
    .description('start deliveries and bulk retries again that Temporal has lost, without waiting for the maintenance job')
    .option('--dry-run', 'only report what would be started')
    .addOption(jsonOption)
    .action(async ({ dryRun = false, ...options }: OutputOptions & { dryRun?: boolean }) => {
      const [{ reconcileNow }, { describeReconciled }] = await Promise.all([import('./reconcile.ts'), import('../delivery/reconcile.ts')])
      const settings = config()
      const result = await reconcileNow(settings, await openLog(settings.RELAY_LOG_LEVEL, settings.RELAY_LOG_FORMAT ?? 'json'), { dryRun })
      const { bulkRetriesStarted, bulkRetriesCancelled, ...deliveries } = result
      printResult(
        options,
        { dry_run: dryRun, ...deliveries, bulk_retries_started: bulkRetriesStarted, bulk_retries_cancelled: bulkRetriesCancelled },
        [`${dryRunNote(dryRun)}${describeReconciled(result)}.`],
      )
    })
  program
    .command('contents')
    .description('check the contents of documents')
    .command('verify')
    .description('check that the content of every document is stored, after a restore for example; exits with 1 if not')
    .option('--read', 'also read every byte, and compare its SHA-256')
    .addOption(jsonOption)
    .action(async ({ read = false, ...options }: OutputOptions & { read?: boolean }) => {
      const { describeVerified, verifyAllContents } = await import('./verify-contents.ts')
      const result = await verifyAllContents(config(), { isRead: read })
      printResult(options, result, describeVerified(result))
      if (result.damaged > 0) process.exitCode = 1
    })
  program
    .command('openapi')
    .description('print the OpenAPI 3.1 description of the management API as JSON')
    .addOption(jsonOption)
    .action(async () => {
      const { describeApi } = await import('../api/open-api/document.ts')
      printJson(describeApi())
    })
}

const addDevelopmentVerbs = (program: Command, variables: Variables) => {
  program
    .command('server')
    .description('start everything for development: PostgreSQL, Temporal with its UI, the API, the receivers and a worker')
    .action(async () => {
      const { startDevServer } = await import('../dev/dev-server.ts')
      const settings = readConfig(variables)
      const { log, tracing } = await openTelemetry(settings, 'pretty')
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
      const { log, tracing } = await openTelemetry(readConfig(variables), 'pretty', variables['RELAY_LOG_LEVEL'] ?? 'warn')
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

/** Adds addresses, directory of contents and sealing key of the server running on RELAY_DATA_DIR, unless DATABASE_URL is set. */
const withRunningServer = (variables: Variables): Variables => {
  if (variables['DATABASE_URL']) return variables
  const dataDir = readConfig(variables).RELAY_DATA_DIR
  const ready = readReady(dataDir)
  if (!ready) return variables
  return {
    RELAY_SECRET_KEYS: readSecretKey(dataDir),
    CONTENT_DIR: ready.content_dir,
    ...variables,
    DATABASE_URL: ready.database_url,
    TEMPORAL_ADDRESS: ready.temporal_address,
  }
}
