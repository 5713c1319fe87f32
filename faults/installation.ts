import { mkdir, mkdtemp, chmod, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { readConfig, type Config } from '../src/config/config.ts'
import { findTemporal } from '../src/dev/find-temporal.ts'
import { findFreePort } from '../src/programs/ports.ts'
import { runProgram } from '../src/programs/programs.ts'
import { startS3Server, type S3Server } from '../test/support/s3-server.ts'
import { createSigner, type Signer } from '../test/support/signer.ts'
import { findAzurite, findSshd, findVersitygw, temporalServerFolder } from '../test/support/tools.ts'
import type { Workspace } from './load.ts'
import { temporalOfMachine } from './one-machine.ts'
import { createPostgres, createQuery, createRelayDatabase, databaseUrl, standbyName, type PostgresServer, type Query } from './postgres.ts'
import { startProxy, type Proxy } from './proxy.ts'
import { supervise, type Supervised, type Verb } from './relay-processes.ts'
import type { Routes } from './reroute.ts'
import { kinds as allKinds, startTargets, type Kind, type Targets } from './targets.ts'
import { startTemporal, type TemporalServer } from './temporal.ts'
import { setUpWorkspace, type WorkspaceChanges } from './workspace.ts'

/** Everything that a relay in production consists of, on this machine: two API processes, two workers, and all servers they need. */
export interface Installation {
  config: Config
  workDir: string
  /** The server that the relay is connected to. */
  postgres(): PostgresServer
  /** Lead to PostgreSQL. */
  proxies: { apiDatabase: Proxy; workerDatabase: Proxy; temporal: Proxy; contents: Proxy }
  temporal: TemporalServer
  /** True if `relay server` is the only process and runs Temporal itself. */
  isOneMachine: boolean
  /** Path of Temporal's command line. */
  temporalProgram: string
  targets: Targets
  /** The S3 server that stores contents for rows with `contentsInS3`. */
  contentStore: S3Server
  contentsInS3: Record<string, string>
  processes: Supervised[]
  /** Addresses of the API processes. */
  baseUrls: string[]
  signer: Signer
  /** While this file exists, the relay cannot resolve the names of targets. */
  dnsOutageFile: string
  /** Runs a statement in the relay's database. */
  query: Query
  /** Replaces all processes of the relay by processes with these variables, unless they have them. */
  configure(variables: Record<string, string>): Promise<void>
  /** Returns the variables of a process, with changes. */
  variablesOf(process: Supervised, changes?: Record<string, string>): Record<string, string>
  /** Connects the relay to another server that has the same data. */
  usePostgres(server: PostgresServer): void
  /** Moves the database to another folder: copies it to a standby, and promotes that after a clean stop. */
  moveDatabase(folder: string): Promise<void>
  createWorkspace(slug: string, kinds: Kind[], changes: WorkspaceChanges): Promise<Workspace>
  stop(): Promise<void>
}

const secretKey = `faults:${Buffer.alloc(32, 7).toString('base64')}`

// They differ from the defaults so that a row takes seconds instead of a minute.
const shortenedIntervals = {
  DELIVERY_HEARTBEAT_TIMEOUT_MS: '5000',
  DELIVERY_IDLE_TIMEOUT_MS: '10000',
  RECONCILE_INTERVAL_MS: '5000',
}

interface InstallationOptions {
  say: (line: string) => void
  /** Runs the sources instead of the built package in `dist`. Each start of a worker then takes seconds longer. */
  fromSource?: boolean
  /** Path of the program of another build. */
  program?: string
  /** Variables that all processes have. */
  extraVariables?: Record<string, string>
  isOneMachine?: boolean
  /** Number of API processes, and of workers. */
  replicas?: number
  /** Kinds of destinations to start servers for. */
  kinds?: readonly Kind[]
}

export const startInstallation = async ({
  say,
  fromSource = false,
  program,
  extraVariables = {},
  isOneMachine = false,
  replicas = isOneMachine ? 1 : 2,
  kinds = allKinds,
}: InstallationOptions): Promise<Installation> => {
  const mainUrl = program ? pathToFileURL(program) : new URL(fromSource ? '../src/main.ts' : '../dist/src/main.js', import.meta.url)
  const main = fileURLToPath(mainUrl)
  // In production, Temporal does not give way to the relay.
  const config = readConfig({ ...process.env, RELAY_SECRET_KEYS: secretKey })
  const tools = { config, say }
  process.env['TEST_VERSITYGW_BIN'] ??= await findVersitygw(tools)
  process.env['TEST_AZURITE_BIN'] ??= await findAzurite(tools)
  process.env['TEST_SSHD_BIN'] ??= await findSshd(tools)
  const temporalProgram = await findTemporal(tools)

  const workDir = await mkdtemp(join(tmpdir(), 'relay-faults-'))
  // PostgreSQL runs as another user.
  await chmod(workDir, 0o755)
  const machineDir = join(workDir, 'machine')
  const logFolder = join(workDir, 'logs')
  await mkdir(logFolder)
  const closers: (() => Promise<unknown>)[] = [() => rm(workDir, { recursive: true, force: true })]
  const stop = async () => {
    for (const close of closers.splice(0).toReversed()) await close().catch((thrown: unknown) => say(String(thrown)))
  }
  const onStop = <Part extends { stop(): Promise<unknown> }>(part: Part): Part => {
    closers.push(part.stop)
    return part
  }

  try {
    let postgres = await createPostgres(config, join(workDir, 'postgres'))
    closers.push(() => postgres.stop())
    let temporalProxy: Proxy | undefined
    const [, temporal, targets, contentStore, signer] = await Promise.all([
      postgres.start(),
      isOneMachine
        ? temporalOfMachine(machineDir)
        : startTemporal(config, join(workDir, 'temporal'), (port) => temporalProxy?.redirect(port)).then(onStop),
      startTargets(kinds).then(onStop),
      startS3Server().then(onStop),
      createSigner('RSA 2048'),
    ])
    closers.push(signer.remove)
    await createRelayDatabase(postgres)
    const proxies = {
      apiDatabase: onStop(await startProxy(postgres.port)),
      workerDatabase: onStop(await startProxy(postgres.port)),
      // Nothing passes it on one machine.
      temporal: (temporalProxy = onStop(await startProxy(isOneMachine ? postgres.port : temporal.port()))),
      contents: onStop(await startProxy(contentStore.port)),
    }
    const dnsOutageFile = join(workDir, 'dns-outage')
    const microsoftModule = new URL(`./connectors/teamsite/schema.${fromSource ? 'ts' : 'js'}`, mainUrl).href
    const common = {
      ...(isOneMachine
        ? { RELAY_TEMPORAL: 'local', RELAY_TEMPORAL_SERVER_DIR: await temporalServerFolder(tools), RELAY_DATA_DIR: machineDir }
        : { TEMPORAL_ADDRESS: `127.0.0.1:${proxies.temporal.port}` }),
      RELAY_SECRET_KEYS: secretKey,
      RELAY_HOST: '127.0.0.1',
      RELAY_LOG_LEVEL: 'info',
      RELAY_ALLOWED_PRIVATE_CIDRS: '127.0.0.0/8',
      RELAY_DIRECTORY_ROOTS: targets.directoryRoot,
      FAULTS_ROUTES: JSON.stringify({ ...targets.routes, dnsOutageFile, microsoftModule } satisfies Routes),
      ...shortenedIntervals,
      ...extraVariables,
    }
    const ports = await Promise.all(Array.from({ length: replicas }, findFreePort))
    const plan: { verb: Verb; variables: Record<string, string> }[] = [
      ...ports.map((port) => ({
        verb: isOneMachine ? ('server' as const) : ('api' as const),
        variables: {
          ...common,
          RELAY_PORT: String(port),
          RELAY_PROBES_PORT: '0',
          RELAY_WORKER_PORT: '0',
          DATABASE_URL: databaseUrl(proxies.apiDatabase.port),
        },
      })),
      ...(isOneMachine ? [] : ports).map(() => ({
        verb: 'worker' as const,
        variables: { ...common, RELAY_WORKER_PORT: '0', DATABASE_URL: databaseUrl(proxies.workerDatabase.port) },
      })),
    ]
    await runProgram(process.execPath, [main, 'migrate'], {
      env: { ...config.childEnvironment, ...common, DATABASE_URL: databaseUrl(postgres.port) },
      timeoutMs: 120_000,
    })
    let configured: Record<string, string> = {}
    const processes = plan.map(({ verb, variables }, index) =>
      onStop(supervise(main, verb, `${verb}-${index % replicas}`, logFolder, variables)),
    )
    const variablesOf: Installation['variablesOf'] = (one, changes = {}) => ({
      ...plan[processes.indexOf(one)]!.variables,
      ...configured,
      ...changes,
    })
    await Promise.all(processes.map((one) => one.ready()))
    const baseUrls = ports.map((port) => `http://127.0.0.1:${port}`)

    const usePostgres = (server: PostgresServer) => {
      postgres = server
      proxies.apiDatabase.redirect(server.port)
      proxies.workerDatabase.redirect(server.port)
    }
    return {
      config,
      workDir,
      postgres: () => postgres,
      proxies,
      temporal,
      isOneMachine,
      temporalProgram,
      targets,
      contentStore,
      contentsInS3: {
        CONTENT_S3_BUCKET: contentStore.bucket,
        CONTENT_S3_ENDPOINT: `http://127.0.0.1:${proxies.contents.port}`,
        CONTENT_S3_PATH_STYLE: 'true',
        CONTENT_S3_ACCESS_KEY_ID: contentStore.accessKeyId,
        CONTENT_S3_SECRET_ACCESS_KEY: contentStore.secretAccessKey,
      },
      processes,
      baseUrls,
      signer,
      dnsOutageFile,
      query: createQuery(() => databaseUrl(postgres.port)),
      configure: async (variables) => {
        if (JSON.stringify(variables) === JSON.stringify(configured)) return
        configured = variables
        await Promise.all(processes.map((one) => one.replace(variablesOf(one))))
        await Promise.all(processes.map((one) => one.ready()))
      },
      variablesOf,
      usePostgres,
      moveDatabase: async (folder) => {
        const before = postgres
        const standby = await before.startStandby(folder)
        await untilStreaming(before)
        // A clean stop waits until the standby has received everything.
        await before.stop()
        await standby.promote()
        usePostgres(standby)
      },
      createWorkspace: (slug, targetKinds, changes) =>
        setUpWorkspace(
          { config: { ...config, DATABASE_URL: databaseUrl(postgres.port) }, baseUrl: baseUrls[0]!, signer, targets },
          slug,
          targetKinds,
          changes,
        ),
      stop,
    }
  } catch (thrown) {
    await stop()
    throw thrown
  }
}

/** Waits until the standby of a server has received all that the server has written. */
export const untilStreaming = async (server: PostgresServer, sync = false): Promise<void> => {
  const condition = `application_name = '${standbyName}' and state = 'streaming'${sync ? ` and sync_state = 'sync'` : ''}`
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await pause(100)) {
    if ((await server.query(`select from pg_stat_replication where ${condition}`)).length > 0) return
  }
  throw new Error('The standby did not connect')
}

/** Keeps the logs of the relay for a person who looks into a failed row. @returns the folder */
export const keepLogs = async (installation: Installation, folder: string): Promise<string> => {
  await mkdir(folder, { recursive: true })
  for (const one of installation.processes) {
    await writeFile(join(folder, `${one.name}.log`), await one.log())
  }
  return folder
}
