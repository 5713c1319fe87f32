import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { migrateAll } from '../../src/app/migrate.ts'
import { oneMachine } from '../../src/app/one-machine.ts'
import { UserError } from '../../src/base/errors.ts'
import { createLog } from '../../src/base/log.ts'
import { readConfig, type Config } from '../../src/config/config.ts'
import { findTemporal } from '../../src/dev/find-temporal.ts'
import { startPostgres } from '../../src/dev/postgres-server.ts'
import { startStack } from '../../src/dev/stack.ts'
import { backgroundNiceness, runProgram } from '../../src/programs/programs.ts'
import { temporalServerVersion } from '../../src/temporal-server/find-programs.ts'
import { startRelayProcess, type RelayProcess as StartedProcess } from '../../test/support/relay-process.ts'
import { historyShards, startTemporalCluster } from '../../test/support/temporal-cluster.ts'
import { temporalServerFolder } from '../../test/support/tools.ts'
import { cpuTimes, memoryByName, type CpuTimes } from './processes.ts'
import { say } from './report.ts'

/** A command that starts processes of the relay: `server` is the API, with a worker as a child process of lower priority. */
type Verb = 'server' | 'api' | 'worker'

export interface RelayProcess extends StartedProcess {
  /** Time from the start of the process until it was ready. */
  startedInMs: number
}

/** PostgreSQL and Temporal as `script/server` starts them, and the processes of the relay that a benchmark starts. */
export interface Installation {
  config: Config & { DATABASE_URL: string }
  /** Folder for files of this run. It is removed in the end. */
  folder: string
  /** The Temporal server, in words. */
  temporalName: string
  /**
   * @param nodeOptions options of Node, for example `--cpu-prof`
   * @param more variables of this process
   */
  startRelay(verb: Verb, nodeOptions?: string[], more?: Record<string, string>): Promise<RelayProcess>
  /** Starts a module of the benchmark as a Node process of its own, and waits until it has sent a message. @returns the message */
  startModule<Message>(name: string, module: URL, variables?: Record<string, string>): Promise<Message>
  /**
   * Starts another program, which counts under its own name.
   * @param port if the program is a server: it is awaited
   */
  startProgram(program: string, args: string[], variables?: Record<string, string>, port?: number): Promise<ChildProcess>
  /** Returns the CPU time so far of the relay's processes, PostgreSQL, Temporal and everything started here. */
  cpuTimes(): CpuTimes
  /** Returns the memory of the same processes now, in MiB. */
  memoryMiB(): Record<string, number>
  stop(): Promise<void>
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const startTimeoutMs = 120_000

/** Starts PostgreSQL, and the four services of Temporal on it. */
const startCluster = async (folder: string) => {
  const config = readConfig()
  const [programs, cli] = [await temporalServerFolder({ config, say }), await findTemporal({ config, say })]
  const postgres = await startPostgres({ dataDir: folder, config, log: createLog('warn'), say })
  const { cluster, stop } = await startTemporalCluster({
    folder: join(folder, 'temporal'),
    programs,
    cli,
    serverUrl: postgres.adminUrl,
    niceness: backgroundNiceness,
  }).catch(async (thrown: unknown) => {
    await postgres.stop()
    throw thrown
  })
  return {
    name: `Temporal ${temporalServerVersion}: four services, PostgreSQL, ${historyShards} shards, mTLS`,
    variables: { ...cluster.variables, DATABASE_URL: postgres.url },
    stop: async () => {
      await stop()
      await postgres.stop()
    },
  }
}

/** Starts PostgreSQL, and Temporal on it as `relay server` does in production on one machine. */
const startOneMachine = async (folder: string, variables: NodeJS.ProcessEnv) => {
  const config = readConfig(variables)
  const postgres = await startPostgres({ dataDir: folder, config, log: createLog('warn'), say })
  try {
    const local = readConfig({ ...variables, DATABASE_URL: postgres.url, RELAY_TEMPORAL: 'local' })
    const { temporalAddress, stop } = await oneMachine.startStack({
      dataDir: join(folder, 'relay'),
      config: local,
      log: createLog('warn'),
      say,
      signal: new AbortController().signal,
    })
    return {
      name: `Temporal ${temporalServerVersion} in one process on the PostgreSQL of the relay`,
      variables: { DATABASE_URL: postgres.url, TEMPORAL_ADDRESS: temporalAddress },
      stop: async () => {
        await stop()
        await postgres.stop()
      },
    }
  } catch (thrown) {
    await postgres.stop()
    throw thrown
  }
}

const startServers = (temporal: string | undefined, folder: string, variables: NodeJS.ProcessEnv) => {
  if (temporal === undefined) return undefined
  if (temporal === 'postgres') return startCluster(folder)
  if (temporal === 'local') return startOneMachine(folder, variables)
  throw new UserError('The servers to choose are --temporal postgres and --temporal local.')
}

const definedOf = (variables: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined))

/** Migrates the database, as another checkout does. */
const migrateBy = (checkout: string, env: Record<string, string>) =>
  runProgram(process.execPath, [join(checkout, 'src/main.ts'), 'migrate'], { env, timeoutMs: startTimeoutMs })

interface InstallationOptions {
  /** `postgres` starts a cluster of Temporal on PostgreSQL, `local` the server of one machine. */
  temporal?: string | undefined
  /** Folder of another checkout, whose relay is measured. */
  checkout?: string | undefined
}

/** Starts PostgreSQL, with fsync, and Temporal in a new folder, and migrates the database. */
const startInstallation = async ({ temporal, checkout }: InstallationOptions): Promise<Installation> => {
  const folder = await mkdtemp(join(tmpdir(), 'relay-bench-'))
  const names = new Map<number, string>()
  const children: ChildProcess[] = []
  const relays: StartedProcess[] = []
  const contentDir = join(folder, 'contents')
  await mkdir(contentDir)
  const given = {
    ...process.env,
    RELAY_SECRET_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8,::1/128',
    RELAY_HOST: '127.0.0.1',
    // A fast machine would meet the limit of a workspace, and measure refusals.
    RELAY_WORKSPACE_MAX_REQUESTS_PER_MINUTE: '0',
    // As in script/server. Empty in the environment, contents are stored in PostgreSQL.
    CONTENT_DIR: process.env['CONTENT_DIR'] ?? contentDir,
  }
  const servers = await startServers(temporal, folder, given)
  const variables = { ...given, ...servers?.variables }
  const stackConfig = readConfig(variables)
  const stack = await startStack({ dataDir: folder, config: stackConfig, log: createLog('warn'), say })
  const stop = async () => {
    for (const relay of relays.splice(0).toReversed()) await relay.stop()
    for (const child of children.splice(0).toReversed()) await stopChild(child)
    await stack.stop()
    await servers?.stop()
    await rm(folder, { recursive: true, force: true })
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop().then(() => process.exit(130)))

  const addresses = { DATABASE_URL: stack.databaseUrl, TEMPORAL_ADDRESS: stack.temporalAddress }
  const config = { ...readConfig({ ...variables, ...addresses }), DATABASE_URL: stack.databaseUrl }

  /** Starts a child whose output goes to a file: reading it here would use time of the benchmark. */
  const start = async (name: string, program: string, args: string[], more: Record<string, string>, ipc: 'ipc' | 'ignore' = 'ignore') => {
    const logFile = join(folder, `${name}-${children.length}.log`)
    const log = await open(logFile, 'w')
    const child = spawn(program, args, { cwd: root, env: { ...variables, ...addresses, ...more }, stdio: ['ignore', log.fd, log.fd, ipc] })
    child.on('error', (error) => say(`${program}: ${error.message}`))
    await log.close()
    children.push(child)
    return { child, logFile }
  }

  try {
    if (checkout === undefined) await migrateAll(config)
    else await migrateBy(checkout, { ...definedOf(variables), ...addresses })
    return {
      config,
      folder,
      temporalName: servers?.name ?? (stackConfig.temporal.connectionOptions.address ? 'a running server' : 'dev server'),

      startRelay: async (verb, nodeOptions = [], more = {}) => {
        const dataDir = join(folder, `server-${relays.length}`)
        await mkdir(dataDir)
        const startedAt = performance.now()
        const relay = await startRelayProcess(
          verb,
          { ...variables, ...addresses, RELAY_DATA_DIR: dataDir, RELAY_LOG_FORMAT: 'json', ...more },
          // Reading the log here would use time of the benchmark.
          {
            nodeOptions,
            logFile: join(folder, `relay-${verb}-${relays.length}.log`),
            ...(checkout !== undefined && { main: join(checkout, 'src/main.ts') }),
          },
        )
        relays.push(relay)
        names.set(relay.pid, `relay ${verb}`)
        return { ...relay, startedInMs: performance.now() - startedAt }
      },

      startModule: async <Message>(name: string, module: URL, more: Record<string, string> = {}) => {
        const { child, logFile } = await start(name, process.execPath, [fileURLToPath(module)], more, 'ipc')
        names.set(child.pid!, name)
        let message: Message | undefined
        child.once('message', (received) => {
          message = received as Message
        })
        await untilReady(child, logFile, async () => message !== undefined)
        return message!
      },

      startProgram: async (program, args, more = {}, port) => {
        const { child, logFile } = await start('program', program, args, more)
        if (port !== undefined) {
          say(`Starting ${program} ...`)
          await untilReady(child, logFile, () => isListening(port))
        }
        return child
      },
      cpuTimes: () => cpuTimes(names),
      memoryMiB: () => memoryByName(names),
      stop,
    }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

/** Runs a benchmark with an installation, and stops it in the end. */
export const withInstallation = async (
  work: (installation: Installation) => Promise<void>,
  options: InstallationOptions = {},
): Promise<void> => {
  const installation = await startInstallation(options)
  try {
    await work(installation)
  } finally {
    await installation.stop()
  }
}

const untilReady = async (child: ChildProcess, logFile: string, isReady: () => Promise<boolean>): Promise<void> => {
  const deadline = performance.now() + startTimeoutMs
  while (!(await isReady())) {
    if (hasExited(child) || performance.now() > deadline) {
      throw new Error(`${child.spawnargs.join(' ')} is not ready:\n${(await readFile(logFile, 'utf8')).slice(-2_000)}`)
    }
    await delay(20)
  }
}

const isListening = async (port: number): Promise<boolean> => {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

// A program that could not be started has no pid.
const hasExited = ({ pid, exitCode, signalCode }: ChildProcess) => pid === undefined || exitCode !== null || signalCode !== null

const stopChild = async (child: ChildProcess): Promise<void> => {
  if (hasExited(child)) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
