// What both forms of faults/production-main.ts stand on: the packages, PostgreSQL, the destinations, and the commands that run on them.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { readConfig, type Config } from '../src/config/config.ts'
import { findFreePort } from '../src/programs/ports.ts'
import { createBackupCommands, type BackupCommands } from '../test/docs/backup-commands.ts'
import { runSteps } from '../test/docs/walk.ts'
import { createSigner, type Signer } from '../test/support/signer.ts'
import { findPostgresPrograms } from '../test/support/tools.ts'
import { installRelay, packRelay, type NextVersion, type Tarball } from './build.ts'
import { createQuery, type Query } from './postgres.ts'
import { startTargets, type Kind, type Targets } from './targets.ts'
import type { Transcript } from './transcript.ts'

const run = promisify(execFile)
const secretKeys = `production:${randomBytes(32).toString('base64')}`
const MiB = 1024 * 1024
const commandMaxMs = 120_000

// An open delivery is started again after at most two intervals. On a busy machine, shorter ones ask Temporal about every delivery again and
// again.
const reconcileMs = '20000'

/** The kinds of destinations. Both keep every message, so that what is delivered twice is seen. */
export const kinds: Kind[] = ['webhook', 'email']

export const roundedSeconds = (fromMs: number) => `${Math.max(1, Math.round((performance.now() - fromMs) / 1_000))} s`

/** A version of the relay in a folder of its own. */
export interface Installed {
  version: string
  /** Folder of the command `relay`. */
  bin: string
  main: string
}

/** Steps that end and remove what a run has started and created. */
export interface CleanUp {
  add(...steps: (() => Promise<unknown>)[]): void
  /** Runs the steps, those added last first. May be called again, and waits for the same run then. */
  run(): Promise<void>
}

export const createCleanUp = (say: (line: string) => void): CleanUp => {
  const steps: (() => Promise<unknown>)[] = []
  // Includes steps that are added while others run: a signal comes at any time.
  const runAll = async () => {
    for (let step = steps.pop(); step; step = steps.pop()) await step().catch((thrown: unknown) => say(String(thrown)))
  }
  let running: Promise<void> | undefined
  return { add: (...added) => void steps.push(...added), run: () => (running ??= runAll()) }
}

/** A run of the program. */
export interface Run {
  /** Everything that the run creates is in it. */
  folder: string
  transcript: Transcript
  /** The caller runs it, even if the run fails. */
  cleanUp: CleanUp
  say: (line: string) => void
}

export interface Ground {
  transcript: Transcript
  config: Config
  commands: BackupCommands
  targets: Targets
  signer: Signer
  /** Runs a statement in the relay's database. */
  query: Query
  /** Packs the working tree, or a next version of it, and installs the package. */
  install(name: string, next?: NextVersion): Promise<Installed>
  /** Sets the version that commands and new processes have. */
  use(installed: Installed): void
  current(): Installed
  /** Runs a command line with the programs of the relay and of PostgreSQL. @returns its output */
  run(command: string): Promise<string>
  startPostgres(): Promise<void>
  /** Variables that all processes of the relay have. */
  variables(): Record<string, string>
}

/** Starts the destinations, and prepares everything else. @param own returns the variables of this form of an installation */
export const createGround = async (
  { folder, transcript, cleanUp, say }: Run,
  own: (commands: BackupCommands) => Record<string, string>,
): Promise<Ground> => {
  const config = readConfig()
  const programs = await findPostgresPrograms({ config, say })
  let current: Installed | undefined
  const targets = await startTargets(kinds)
  cleanUp.add(targets.stop)
  const signer = await createSigner('RSA 2048')
  cleanUp.add(signer.remove)

  const variables = (): Record<string, string> => ({
    DATABASE_URL: commands.databaseUrl,
    RELAY_SECRET_KEYS: secretKeys,
    RELAY_HOST: '127.0.0.1',
    RELAY_LOG_LEVEL: 'info',
    RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8',
    RECONCILE_INTERVAL_MS: reconcileMs,
    ...own(commands),
  })
  const commands: BackupCommands = await createBackupCommands({
    folder,
    programs,
    port: await findFreePort(),
    bin: () => current!.bin,
    variables,
    // The transcript names the block: the commands stand in docs/backup.md.
    onBlock: () => {},
  })
  transcript.rename(commands.backup, '$BACKUP')
  transcript.rename(commands.contentDir, '$CONTENT_DIR')
  transcript.rename(commands.cluster, '$PGDATA')
  transcript.rename(folder, '.')
  cleanUp.add(commands.stop)
  const query = createQuery(() => commands.databaseUrl)

  return {
    transcript,
    config,
    commands,
    targets,
    signer,
    query,
    install: async (name, next) => {
      const tarball: Tarball = await packRelay(join(folder, `sources-${name}`), next)
      transcript.command('npm pack')
      transcript.output(`${tarball.name}: ${(tarball.sizeBytes / MiB).toFixed(1)} MiB, ${tarball.fileCount} files`)
      const target = join(folder, name)
      transcript.command(`npm install ./${tarball.name}`)
      transcript.output(await installRelay(tarball, target))
      const bin = join(target, 'node_modules/.bin')
      const { stdout } = await run(process.execPath, [join(bin, 'relay'), '--version'])
      if (stdout.trim() !== tarball.version) throw new Error(`The installed version is ${stdout.trim()}, not ${tarball.version}`)
      return { version: tarball.version, bin, main: join(target, 'node_modules/document-relay/dist/src/main.js') }
    },
    use: (installed) => {
      current = installed
    },
    current: () => current!,
    run: async (command) => {
      transcript.command(command)
      const PATH = [current!.bin, dirname(process.execPath), programs, process.env['PATH']].join(delimiter)
      const environment = { ...process.env, PATH, ...variables() }
      const output = (await runSteps([command], { folder, environment, timeoutMs: commandMaxMs })).join('')
      transcript.output(output.replace(/^Applied: (.*,.*)$/m, (_, names: string) => `Applied: ${names.split(', ').length} migrations`))
      return output
    },
    startPostgres: async () => {
      await commands.createCluster()
      const [row] = await query<{ version: string }>(`select split_part(current_setting('server_version'), ' ', 1) as version`)
      transcript.note(`PostgreSQL ${row!.version}.`)
    },
    variables,
  }
}
