// The servers and processes of faults/production.ts, and the commands that run on them.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readConfig, type Config } from '../src/config/config.ts'
import { findTemporal } from '../src/dev/find-temporal.ts'
import { findFreePort } from '../src/programs/ports.ts'
import { temporalServerVersion } from '../src/temporal-server/find-programs.ts'
import { createBackupCommands, type BackupCommands } from '../test/docs/backup-commands.ts'
import { createSigner, type Signer } from '../test/support/signer.ts'
import { historyShards, startTemporalCluster } from '../test/support/temporal-cluster.ts'
import { findHaproxy, findPostgresPrograms, temporalServerFolder } from '../test/support/tools.ts'
import { until } from '../test/support/until.ts'
import { installRelay, packRelay, type NextVersion, type Tarball } from './build.ts'
import { startHaproxy, type Haproxy } from './haproxy.ts'
import { createPostgres, createQuery, type Query } from './postgres.ts'
import { supervise, type Supervised } from './relay-processes.ts'
import { startTargets, type Kind, type Targets } from './targets.ts'
import type { Transcript } from './transcript.ts'
import { drainMs, replicas } from './upgrade.ts'

const run = promisify(execFile)
const secretKeys = `production:${randomBytes(32).toString('base64')}`
const MiB = 1024 * 1024

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

/** A block of docs/backup.md: the heading above it, and its index if not all blocks under the heading are meant. */
export type Block = [heading: string, index?: number]

/** Returns the line of the transcript for commands of docs/backup.md. */
export const blockName = ([heading, index]: Block): string => `# backup.md, ${heading}${index === undefined ? '' : `, block ${index + 1}`}`

/** An installation as in production on this machine. */
export interface Site {
  transcript: Transcript
  config: Config
  commands: BackupCommands
  haproxy: Haproxy
  targets: Targets
  signer: Signer
  /** Runs a statement in the relay's database. */
  query: Query
  /** Packs the working tree, or a next version of it, and installs the package. */
  install(name: string, next?: NextVersion): Promise<Installed>
  /** Sets the version that commands and new processes have. */
  use(installed: Installed): void
  /** Runs blocks of docs/backup.md. @returns their output */
  follow(blocks: Block[]): Promise<string>
  /** Runs a command of the relay. */
  relay(command: string): Promise<void>
  startPostgres(): Promise<void>
  startTemporal(name: string): Promise<void>
  /** Kills the cluster of Temporal with its database, and removes their data. */
  destroyTemporal(): Promise<void>
  /** Variables that all processes of the relay have. */
  variables(): Record<string, string>
  variablesOf(process: Pick<Supervised, 'verb' | 'name'>): Record<string, string>
  /** Starts three API processes and three workers. @param logs name of the folder of their logs */
  startProcesses(logs: string): Promise<void>
  processes(): Supervised[]
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

/** Starts the proxy and the destinations, and prepares everything else. */
export const createSite = async (folder: string, transcript: Transcript, cleanUp: CleanUp, say: (line: string) => void): Promise<Site> => {
  const config = readConfig()
  const tools = { config, say }
  const programs = await findPostgresPrograms(tools)
  const temporalPrograms = await temporalServerFolder(tools)
  const haproxyProgram = await findHaproxy(tools)
  const cli = await findTemporal(tools)

  // Changed by the upgrade, the loss and the restore.
  let current: Installed | undefined
  let temporal: { variables: Record<string, string>; destroy(): Promise<void> } | undefined
  let processes: Supervised[] = []

  const ports = await Promise.all(Array.from({ length: replicas }, findFreePort))
  const haproxy = await startHaproxy(haproxyProgram, folder, ports)
  cleanUp.add(haproxy.stop)
  const targets = await startTargets(kinds)
  cleanUp.add(targets.stop)
  const signer = await createSigner('RSA 2048')
  cleanUp.add(signer.remove)

  const variables = (): Record<string, string> => ({
    ...temporal?.variables,
    DATABASE_URL: commands.databaseUrl,
    CONTENT_DIR: commands.contentDir,
    RELAY_SECRET_KEYS: secretKeys,
    RELAY_HOST: '127.0.0.1',
    RELAY_LOG_LEVEL: 'info',
    RELAY_BASE_URL: haproxy.url,
    RELAY_TRUST_PROXY: 'true',
    RELAY_DRAIN_MS: String(drainMs),
    RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8',
    RECONCILE_INTERVAL_MS: reconcileMs,
  })
  const variablesOf: Site['variablesOf'] = ({ verb, name }) => ({
    ...variables(),
    ...(verb === 'api' ? { RELAY_PORT: String(ports[Number(name.split('-')[1])]), RELAY_PROBES_PORT: '0' } : { RELAY_WORKER_PORT: '0' }),
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
  cleanUp.add(commands.stop, () => Promise.all(processes.map((one) => one.destroy())))
  const query = createQuery(() => commands.databaseUrl)

  return {
    transcript,
    config,
    commands,
    haproxy,
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
      transcript.command('node_modules/.bin/relay --version')
      const { stdout } = await run(process.execPath, [join(bin, 'relay'), '--version'])
      transcript.output(stdout)
      if (stdout.trim() !== tarball.version) throw new Error(`The installed version is ${stdout.trim()}, not ${tarball.version}`)
      return { version: tarball.version, bin, main: join(target, 'node_modules/document-relay/dist/src/main.js') }
    },
    use: (installed) => {
      current = installed
    },
    follow: async (blocks) => {
      let output = ''
      for (const [heading, index] of blocks) {
        transcript.command(blockName([heading, index]))
        const part = await commands.follow(heading, index)
        transcript.output(part)
        output += part
      }
      return output
    },
    relay: async (command) => {
      transcript.command(command)
      const output = (await commands.asRelay(command)).join('')
      transcript.output(output.replace(/^Applied: (.*,.*)$/m, (_, names: string) => `Applied: ${names.split(', ').length} migrations`))
    },
    startPostgres: async () => {
      await commands.createCluster()
      const [row] = await query<{ version: string }>(`select split_part(current_setting('server_version'), ' ', 1) as version`)
      transcript.note(`PostgreSQL ${row!.version}.`)
    },
    startTemporal: async (name) => {
      const server = await createPostgres(config, join(folder, `${name}-postgres`), ['max_connections=200'])
      await server.start()
      cleanUp.add(server.stop)
      const serverUrl = `postgres://postgres@127.0.0.1:${server.port}/postgres`
      const { cluster, kill } = await startTemporalCluster({ folder: join(folder, name), programs: temporalPrograms, cli, serverUrl })
      cleanUp.add(kill)
      transcript.note(
        `Temporal ${temporalServerVersion}: frontend, history, matching and worker service, ${historyShards} history shards, mTLS.`,
      )
      temporal = {
        variables: cluster.variables,
        destroy: async () => {
          await kill()
          await server.kill()
          for (const path of [server.folder, cluster.folder]) await rm(path, { recursive: true })
        },
      }
    },
    destroyTemporal: async () => temporal?.destroy(),
    variables,
    variablesOf,
    startProcesses: async (logs) => {
      const logFolder = join(folder, logs)
      await mkdir(logFolder)
      const startedAt = performance.now()
      const { main, version } = current!
      processes = (['api', 'worker'] as const).flatMap((verb) =>
        ports.map((_, index) => {
          const name = `${verb}-${index}`
          return supervise(main, verb, name, logFolder, variablesOf({ verb, name }))
        }),
      )
      await Promise.all(processes.map((one) => one.ready()))
      for (const index of ports.keys()) await until('the proxy sends requests to each process', () => haproxy.isUp(index))
      const { stdout } = await run(haproxyProgram, ['-v'])
      transcript.note(`Three API processes and three workers of ${version} are ready after ${roundedSeconds(startedAt)}.`)
      transcript.note(`HAProxy ${/version (\d+\.\d+\.\d+)/.exec(stdout)?.[1]} sends requests to each API process.`)
    },
    processes: () => processes,
  }
}
