import { Argument, Command, Option } from 'commander'
import { addDocumentVerbs } from './cli-documents.ts'
import { jsonOption, print, printJson, printProgress, printResult, type OutputOptions, type ReadConfig } from './cli-output.ts'
import { createKey, listKeys, revokeKey, type KeyOptions } from './commands/api-key.ts'
import { deleteWorkspace, describeContents } from './commands/delete-workspace.ts'
import { rotateKeys } from './commands/sealing-keys.ts'
import { withDatabase } from './commands/with-database.ts'
import { createWorkspace, listWorkspaces, setTier } from './commands/workspace.ts'
import { readConfig, type Config } from './config.ts'
import { tiers, type Tier } from './domain/settings.ts'
import type { Finding } from './doctor.ts'
import { UserError } from './errors.ts'
import { readReady, readSecretKey } from './embedded/data-dir.ts'
import { openLog } from './log.ts'
import { createStopSignal, runUntilStopped } from './run-until-stopped.ts'
import { keyLevels } from './security/levels.ts'
import { createKeyRing } from './security/seal.ts'
import { openTracing } from './tracing/open-tracing.ts'
import { version } from './version.ts'

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
    .showHelpAfterError()
  const config = () => readConfig(withRunningServer(variables))

  addServiceVerbs(program, config)
  addSetupVerbs(program, config, variables)
  addDocumentVerbs(program, config)
  addWorkspaceVerbs(program, config)
  addKeyVerbs(program, config)
  addSealingKeyVerbs(program, config, variables)
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
      const { startApi } = await import('./compose/api.ts')
      const api = await startApi(settings, log, { tracing })
      log.info({ base_url: api.baseUrl, version }, 'the api is ready')
      await runUntilStopped(stopSignal, [tracing, api], log)
    })
  program
    .command('worker')
    .description('run workflows and deliver documents')
    .action(async () => {
      const settings = config()
      const { log, tracing } = await openTelemetry(settings, 'json')
      const { startWorker } = await import('./compose/worker.ts')
      const stopSignal = createStopSignal()
      const worker = await startWorker(settings, log, { tracing })
      log.info({ probes_url: worker.probesUrl, version }, 'the worker is ready')
      await runUntilStopped(stopSignal, [tracing, worker], log, worker.ended)
    })
}

/** Opens the log and, if they are configured, the traces, whose ids the log lines have. */
const openTelemetry = async (settings: Config, format: 'json' | 'pretty', level: string = settings.RELAY_LOG_LEVEL) => {
  const tracing = await openTracing(settings, (reason) => log.warn({ reason }, 'spans were lost'))
  const log = await openLog(level, settings.RELAY_LOG_FORMAT ?? format, tracing?.logFields)
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
      const { migrateAll } = await import('./commands/migrate.ts')
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
    .addOption(jsonOption)
    .action(async (options: OutputOptions & { strict?: boolean }) => {
      const { diagnose, exitStatusOf } = await import('./doctor.ts')
      const findings = await diagnose(config(), {
        source: variables['DATABASE_URL'] ? 'environment variables' : 'the running script/server',
        isEmbedded: !variables['DATABASE_URL'],
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
      const [{ reconcileNow }, { describeReconciled }] = await Promise.all([
        import('./commands/reconcile.ts'),
        import('./delivery/reconcile.ts'),
      ])
      const settings = config()
      const result = await reconcileNow(settings, await openLog(settings.RELAY_LOG_LEVEL, settings.RELAY_LOG_FORMAT ?? 'json'), { dryRun })
      const { bulkRetriesStarted, bulkRetriesCancelled, ...deliveries } = result
      printResult(
        options,
        { dry_run: dryRun, ...deliveries, bulk_retries_started: bulkRetriesStarted, bulk_retries_cancelled: bulkRetriesCancelled },
        [`${dryRun ? 'Nothing was changed. A run would report: ' : ''}${describeReconciled(result)}.`],
      )
    })
  program
    .command('openapi')
    .description('print the OpenAPI 3.1 description of the management API as JSON')
    .addOption(jsonOption)
    .action(async () => {
      const { describeApi } = await import('./http/open-api/document.ts')
      printJson(describeApi())
    })
}

const addWorkspaceVerbs = (program: Command, config: ReadConfig) => {
  const workspace = program.command('workspace').description('manage workspaces')
  workspace
    .command('create <user/workspace>')
    .description('create a workspace')
    .addOption(jsonOption)
    .action(async (name: string, options: OutputOptions) => {
      const created = await withDatabase(config(), 'cli', (db) => createWorkspace(db, name))
      printResult(options, created, [`Created workspace ${name}: ${created.id}`])
    })
  workspace
    .command('tier <user/workspace>')
    .description('set the tier of a workspace; the compliance tier keeps its audit log indefinitely')
    .addArgument(new Argument('<tier>').choices(tiers))
    .addOption(jsonOption)
    .action(async (name: string, tier: Tier, options: OutputOptions) => {
      const changed = await withDatabase(config(), 'cli', (db) => setTier(db, name, tier))
      printResult(options, changed, [`Workspace ${name} is in the ${tier} tier.`])
    })
  workspace
    .command('delete <user/workspace>')
    .description('delete a workspace and everything in it, with its audit log; without --yes, print what would be deleted')
    .option('--yes', 'delete it; this cannot be undone')
    .addOption(jsonOption)
    .action(async (name: string, options: OutputOptions & { yes?: boolean }) => {
      const confirmed = options.yes === true
      const result = await withDatabase(config(), 'cli', (db) => deleteWorkspace(db, name, { confirmed }))
      const contents = describeContents(result.contents)
      printResult(options, result, [
        confirmed ? `Deleted workspace ${name}: ${contents}, and its audit log.` : `Workspace ${name} would be deleted: ${contents}.`,
      ])
      if (confirmed) return
      process.exitCode = 1
      printProgress('Nothing was deleted. Repeat the command with --yes to delete the workspace and everything in it, with its audit log.')
    })
  workspace
    .command('list')
    .description('list all workspaces')
    .addOption(jsonOption)
    .action(async (options: OutputOptions) => {
      const workspaces = await withDatabase(config(), 'cli', listWorkspaces)
      printResult(
        options,
        workspaces,
        workspaces.map(({ id, user_slug, workspace_slug }) => `${id}  ${user_slug}/${workspace_slug}`),
      )
    })
}

const addKeyVerbs = (program: Command, config: ReadConfig) => {
  const key = program.command('key').description('manage API keys')
  key
    .command('create <user/workspace>')
    .description('create an API key and print it; the key cannot be displayed again')
    .addOption(new Option('--level <level>', 'permissions of the key').choices([...keyLevels]).makeOptionMandatory())
    .option('--name <name>', 'purpose of the key', 'made on the command line')
    .option('--member <email>', 'owner of the key in the audit log: a member of the workspace, created if it does not exist')
    .option('--expires-at <time>', 'expiry time in ISO 8601; without it the key does not expire')
    .addOption(jsonOption)
    .action(async (workspace: string, { json, ...options }: Omit<KeyOptions, 'workspace'> & OutputOptions) => {
      const created = await withDatabase(config(), 'cli', (db) => createKey(db, { workspace, ...options }))
      printResult({ json }, created, [created.key])
    })
  key
    .command('list [user/workspace]')
    .description('list the API keys of a workspace, or of all workspaces')
    .addOption(jsonOption)
    .action(async (workspace: string | undefined, options: OutputOptions) => {
      const keys = await withDatabase(config(), 'cli', (db) => listKeys(db, workspace))
      printResult(
        options,
        keys,
        keys.map(({ id, level }) => `${id}  ${level}`),
      )
    })
  key
    .command('revoke <id>')
    .description('revoke an API key')
    .addOption(jsonOption)
    .action(async (id: string, options: OutputOptions) => {
      const revoked = await withDatabase(config(), 'cli', (db) => revokeKey(db, id))
      printResult(options, revoked, [`Revoked key ${id}.`])
    })
}

const addSealingKeyVerbs = (program: Command, config: ReadConfig, variables: Variables) => {
  program
    .command('keys')
    .description('manage the keys in RELAY_SECRET_KEYS, which seal credentials')
    .command('rotate')
    .description('seal all credentials with the first key of RELAY_SECRET_KEYS; safe while the relay runs')
    .addOption(jsonOption)
    .action(async (options: OutputOptions) => {
      // The key of a running script/server would do for other commands. Here it would report success without having changed anything.
      if (!variables['RELAY_SECRET_KEYS']) {
        throw new UserError('Set RELAY_SECRET_KEYS to the new key, followed by the keys that sealed the credentials until now.')
      }
      const settings = config()
      const keyRing = createKeyRing(settings.RELAY_SECRET_KEYS)
      const { resealed, unreadable } = await withDatabase(settings, 'cli', (db) => rotateKeys(db, keyRing))
      printResult(options, { resealed, unreadable }, [`Credentials re-sealed with key ${keyRing.sealingId}: ${resealed}`])
      if (unreadable.length === 0) return
      process.exitCode = 1
      const ids = unreadable.join(', ')
      printProgress(`No key in RELAY_SECRET_KEYS opens the credentials of these destinations or workspaces. Enter them again: ${ids}`)
    })
}

const addDevelopmentVerbs = (program: Command, variables: Variables) => {
  program
    .command('server')
    .description('start everything for development: PostgreSQL, Temporal with its UI, the API, the receivers and a worker')
    .action(async () => {
      const { startDevServer } = await import('./dev-server.ts')
      const settings = readConfig(variables)
      const { log, tracing } = await openTelemetry(settings, 'pretty')
      const stopSignal = createStopSignal()
      const server = await startDevServer(variables, { log, tracing, say: printProgress, signal: stopSignal })
      printProgress(`The relay is ready at ${server.baseUrl}`)
      printProgress(`The console is at ${server.baseUrl}/console`)
      if (server.temporalUiUrl) printProgress(`The Temporal UI is at ${server.temporalUiUrl}`)
      printProgress('Press Ctrl-C to stop.')
      await runUntilStopped(stopSignal, [tracing, server], log, server.ended)
    })
  program
    .command('demo')
    .description('start everything and deliver a PDF from a demo source system to two local destinations')
    .option('--once', 'exit after the delivery, with status 0 if the document arrived')
    .action(async (options: { once?: boolean }) => {
      const { runDemo } = await import('./demo/demo.ts')
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

/** Adds the addresses and the sealing key of the server running on RELAY_DATA_DIR, unless DATABASE_URL is set. */
const withRunningServer = (variables: Variables): Variables => {
  if (variables['DATABASE_URL']) return variables
  const dataDir = readConfig(variables).RELAY_DATA_DIR
  const ready = readReady(dataDir)
  if (!ready) return variables
  return {
    RELAY_SECRET_KEYS: readSecretKey(dataDir),
    ...variables,
    DATABASE_URL: ready.database_url,
    TEMPORAL_ADDRESS: ready.temporal_address,
  }
}
