import { Argument, Command, Option } from 'commander'
import { createKey, listKeys, revokeKey, type KeyOptions } from './commands/key.ts'
import { rotateKeys } from './commands/keys.ts'
import { createWorkspace, listWorkspaces, setTier, tiers } from './commands/workspace.ts'
import type { Running } from './compose.ts'
import { readConfig, type Config } from './config.ts'
import { isSchemaMissing, openDatabase, type Database } from './db/database.ts'
import { migrate } from './db/migrations.ts'
import { readReady } from './embedded/ready.ts'
import { readSecretKey } from './embedded/secret-key.ts'
import { UserError } from './errors.ts'
import { createLog, type Log } from './log.ts'
import { keyLevels } from './security/levels.ts'
import { createKeyRing } from './security/seal.ts'

type Variables = NodeJS.ProcessEnv

/**
 * The command line. Answers go to standard output, everything else to standard error. What a verb alone needs is imported by it: the
 * whole relay takes over a second to load, and most verbs ask one question of the database.
 */
export const createCli = (variables: Variables): Command => {
  const program = new Command('relay')
    .description('Takes documents from an enterprise source system and delivers each of them to every wired destination.')
    .showHelpAfterError()
  const config = () => readConfig(withRunningServer(variables))
  const json = new Option('--json', 'answer in JSON')

  program
    .command('api')
    .description('serve the management API and the receivers')
    .action(async () => {
      const settings = config()
      const log = createLog(settings.RELAY_LOG_LEVEL)
      const stopped = stopSignal()
      const { startApi } = await import('./compose.ts')
      const api = await startApi(settings, log)
      log.info({ base_url: api.baseUrl }, 'the api is ready')
      await runUntil(stopped, [api], log)
    })

  program
    .command('worker')
    .description('run workflows and deliver documents')
    .action(async () => {
      const settings = config()
      const log = createLog(settings.RELAY_LOG_LEVEL)
      const { startWorker } = await import('./compose.ts')
      const { installRuntime } = await import('./temporal/worker.ts')
      installRuntime(log)
      const stopped = stopSignal()
      const worker = await startWorker(settings, log)
      log.info('the worker is ready')
      await runUntil(stopped, [worker], log, worker.ended)
    })

  program
    .command('migrate')
    .description('bring the database schema up to date and register the search attributes')
    .addOption(json)
    .action(async (options: { json?: boolean }) => {
      const settings = config()
      const applied = await withDatabase(settings, migrate)
      const { registerSearchAttributes } = await import('./temporal/search-attributes.ts')
      const refusal = await registerSearchAttributes(settings)
      if (options.json) {
        answer({ applied, search_attributes: refusal === undefined })
        return
      }
      say(applied.length > 0 ? `Applied: ${applied.join(', ')}` : 'The schema is up to date.')
      say(
        refusal === undefined
          ? 'The search attributes are registered.'
          : `Search attributes are not registered, the relay runs without them: ${refusal}`,
      )
    })

  program
    .command('doctor')
    .description('look for what is missing or away')
    .addOption(json)
    .action(async (options: { json?: boolean }) => {
      const { diagnose } = await import('./doctor.ts')
      const findings = await diagnose(config())
      if (options.json) answer(findings)
      else for (const { name, ok, message } of findings) say(`${ok ? 'ok  ' : 'FAIL'}  ${name}: ${message}`)
      if (findings.some(({ ok }) => !ok)) process.exitCode = 1
    })

  program
    .command('openapi')
    .description('print the description of the management API (OpenAPI 3.1, JSON)')
    .addOption(json)
    .action(async () => {
      const { describeApi } = await import('./http/description.ts')
      answer(describeApi())
    })

  addWorkspaceCommands(program, config, json)
  addKeyCommands(program, config, json)
  addSealingKeyCommands(program, config, json)
  addStackCommands(program, variables)
  return program
}

const addWorkspaceCommands = (program: Command, config: () => Config, json: Option) => {
  const workspace = program.command('workspace').description('workspaces')
  workspace
    .command('create <user/workspace>')
    .description('make a workspace')
    .addOption(json)
    .action(async (slugs: string, options: { json?: boolean }) => {
      const created = await withDatabase(config(), (db) => createWorkspace(db, slugs))
      if (options.json) answer(created)
      else say(`Workspace ${slugs} is made: ${created.id}`)
    })
  workspace
    .command('tier <user/workspace>')
    .description('put a workspace into a tier: compliance lets it keep its audit log indefinitely')
    .addArgument(new Argument('<tier>').choices(tiers))
    .addOption(json)
    .action(async (slugs: string, tier: (typeof tiers)[number], options: { json?: boolean }) => {
      const changed = await withDatabase(config(), (db) => setTier(db, slugs, tier))
      if (options.json) answer(changed)
      else say(`Workspace ${slugs} is in the ${tier} tier.`)
    })
  workspace
    .command('list')
    .description('every workspace')
    .addOption(json)
    .action(async (options: { json?: boolean }) => {
      const workspaces = await withDatabase(config(), listWorkspaces)
      if (options.json) answer(workspaces)
      else for (const { id, user_slug, workspace_slug } of workspaces) say(`${id}  ${user_slug}/${workspace_slug}`)
    })
}

const addKeyCommands = (program: Command, config: () => Config, json: Option) => {
  const key = program.command('key').description('API keys')
  key
    .command('create <user/workspace>')
    .description('make a key; it is shown this once')
    .addOption(new Option('--level <level>', 'what the key may do').choices([...keyLevels]).makeOptionMandatory())
    .option('--name <name>', 'what it is for', 'made on the command line')
    .option('--member <email>', 'whose it is, as the audit log shows it: a member of the workspace, made if there is none yet')
    .option('--expires-at <time>', 'when it ends, in ISO 8601; never, if not given')
    .addOption(json)
    .action(async (workspace: string, { json: asJson, ...options }: Omit<KeyOptions, 'workspace'> & { json?: boolean }) => {
      const created = await withDatabase(config(), (db) => createKey(db, { workspace, ...options }))
      if (asJson) answer(created)
      else say(created.key)
    })
  key
    .command('list [user/workspace]')
    .description('the keys of a workspace, or of all')
    .addOption(json)
    .action(async (workspace: string | undefined, options: { json?: boolean }) => {
      const keys = await withDatabase(config(), (db) => listKeys(db, workspace))
      if (options.json) answer(keys)
      else for (const { id, level } of keys) say(`${id}  ${level}`)
    })
  key
    .command('revoke <id>')
    .description('end a key')
    .addOption(json)
    .action(async (id: string, options: { json?: boolean }) => {
      const revoked = await withDatabase(config(), (db) => revokeKey(db, id))
      if (options.json) answer(revoked)
      else say(`Key ${id} is revoked.`)
    })
}

const addSealingKeyCommands = (program: Command, config: () => Config, json: Option) => {
  program
    .command('keys')
    .description('the keys that seal credentials, RELAY_SECRET_KEYS')
    .command('rotate')
    .description('seal under the first key what another one has sealed, while the relay runs')
    .addOption(json)
    .action(async (options: { json?: boolean }) => {
      const settings = config()
      const keyRing = createKeyRing(settings.RELAY_SECRET_KEYS)
      const { resealed, unreadable } = await withDatabase(settings, (db) => rotateKeys(db, keyRing))
      if (options.json) answer({ resealed, unreadable })
      else say(`Sealed anew under key ${keyRing.sealingId}: ${resealed}.`)
      if (unreadable.length === 0) return
      process.exitCode = 1
      tell(`No key of RELAY_SECRET_KEYS opens the credentials of these destinations, save them again: ${unreadable.join(', ')}`)
    })
}

const addStackCommands = (program: Command, variables: Variables) => {
  program
    .command('server')
    .description('everything in one: PostgreSQL, Temporal with its UI, API, receivers and worker, for development')
    .action(async () => {
      const { startServer } = await import('./server.ts')
      const log = createLog(readConfig(variables).RELAY_LOG_LEVEL)
      const stopped = stopSignal()
      const server = await startServer(variables, { log, say: tell, signal: stopped })
      tell(
        `The relay is ready at ${server.baseUrl}${server.temporalUiUrl ? `, the Temporal UI at ${server.temporalUiUrl}` : ''}. Stop it with Ctrl-C.`,
      )
      await runUntil(stopped, [server], log, server.ended)
    })
  program
    .command('demo')
    .description('the same with a demo workspace, two local targets and a document that goes all the way')
    .option('--once', 'end after the delivery, with 0 if it arrived')
    .action(async (options: { once?: boolean }) => {
      const { runDemo } = await import('./demo/demo.ts')
      const log = createLog(variables['RELAY_LOG_LEVEL'] ?? 'warn')
      const stopped = stopSignal()
      const demo = await runDemo(variables, { log, say, signal: stopped })
      if (!demo.delivered) process.exitCode = 1
      if (options.once) return demo.stop()
      say('\nEverything stays up until Ctrl-C.')
      return runUntil(stopped, [demo], log)
    })
}

/** Where DATABASE_URL is not set, what the script/server that runs on RELAY_DATA_DIR works with. */
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

const withDatabase = async <T>(config: Config, work: (db: Database) => Promise<T>): Promise<T> => {
  const db = openDatabase(config, 'cli')
  try {
    return await work(db)
  } catch (thrown) {
    if (isSchemaMissing(thrown)) throw new UserError('the database has no schema of ours yet: run relay migrate', { cause: thrown })
    throw thrown
  } finally {
    await db.destroy()
  }
}

/** Aborted by SIGTERM or Ctrl-C. Listens from now on; a second signal ends the process the hard way. */
const stopSignal = (): AbortSignal => {
  const controller = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => controller.abort(new UserError(`stopped by ${signal}`)))
  }
  return controller.signal
}

/** Runs until it is told to stop, or until a part ends by itself; then stops every part, the last started first. */
const runUntil = async (stopped: AbortSignal, parts: Running[], log: Log, ended?: Promise<void>): Promise<void> => {
  try {
    await Promise.race([new Promise<void>((resolve) => onAbort(stopped, resolve)), ...(ended ? [ended] : [])])
    log.info('stopping')
  } finally {
    for (const part of parts.toReversed()) await part.stop()
  }
}

const onAbort = (signal: AbortSignal, act: () => void) => {
  if (signal.aborted) act()
  else signal.addEventListener('abort', act, { once: true })
}

const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}
// what goes on while a command runs, apart from its answer
const tell = (line: string): void => {
  process.stderr.write(`${line}\n`)
}
const answer = (value: unknown) => say(JSON.stringify(value, null, 2))
