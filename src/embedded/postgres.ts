import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, mkdtemp, open, readFile, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, DatabaseError } from 'pg'
import type { Config } from '../config.ts'
import { UserError } from '../errors.ts'
import type { Log } from '../log.ts'
import { readPid, stopLeftover } from './leftovers.ts'
import { stablePort } from './ports.ts'
import { findPostgres, type PostgresPrograms } from './postgres-programs.ts'
import { runProgram, startProgram, type Account } from './programs.ts'
import { stopServer, waitUntilReady } from './server-process.ts'

export interface PostgresOptions {
  /** Everything of it lies in here: the cluster in `postgres/`, its password, its port and its log. */
  dataDir: string
  config: Pick<Config, 'RELAY_POSTGRES_BIN' | 'childEnvironment' | 'EMBEDDED_START_TIMEOUT_MS' | 'EMBEDDED_STOP_TIMEOUT_MS'>
  log: Pick<Log, 'info'>
  say: (line: string) => void
  signal?: AbortSignal | undefined
  /** For tests: a crash of the machine may lose data. */
  fast?: boolean
}

export interface EmbeddedPostgres {
  /** Of the database `relay`. */
  url: string
  stop(): Promise<void>
}

const user = 'relay'
const database = 'relay'
const unsafe = ['-c', 'fsync=off', '-c', 'synchronous_commit=off', '-c', 'full_page_writes=off']

/** A PostgreSQL of our own. What it holds outlives a restart, and a crash unless `fast`. @throws UserError */
export const startPostgres = async (options: PostgresOptions): Promise<EmbeddedPostgres> => {
  const { dataDir, config, say, signal } = options
  const cluster = join(dataDir, 'postgres')
  const marker = `relay.data_dir=${dataDir}`
  const account = await accountFor(cluster)
  await mkdir(dataDir, { recursive: true })

  const pid = await readPid(join(cluster, 'postmaster.pid'))
  if (pid !== undefined) {
    if (await stopLeftover({ pid, marker, timeoutMs: config.EMBEDDED_STOP_TIMEOUT_MS }))
      say('Stopped a PostgreSQL that a crash had left running.')
    // else a crash of the machine left the file, and the next process of that number would keep PostgreSQL from starting
    else await rm(join(cluster, 'postmaster.pid'), { force: true })
  }

  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => undefined)
  const programs = await findPostgres({ ...options, account, requiredMajor: version === undefined ? undefined : Number(version) })
  const password = await passwordIn(dataDir)
  if (version === undefined) {
    say(`Making a PostgreSQL ${programs.major} database in ${cluster}.`)
    await initialize(programs, cluster, password, account, options)
  }

  const port = await stablePort(join(dataDir, 'postgres.port'))
  const logFile = join(dataDir, 'postgres.log')
  const urlOf = (name: string) => `postgres://${user}:${password}@127.0.0.1:${port}/${name}`
  const settings = [`listen_addresses=127.0.0.1`, 'unix_socket_directories=', 'max_connections=200', marker]
  const args = ['-p', String(port), ...settings.flatMap((setting) => ['-c', setting]), ...(options.fast ? unsafe : [])]
  const log = await open(logFile, 'w', 0o600)
  const directory = await openDirectory(cluster, account)
  const child = await startProgram(programs.postgres, ['-D', directory.path, ...args], {
    env: { ...config.childEnvironment, LC_ALL: 'C' },
    cwd: '/',
    account,
    stdio: ['ignore', log.fd, log.fd, ...directory.inherited],
  })
  await Promise.all([log.close(), directory.close()])

  const stop = () => stopServer(child, config.EMBEDDED_STOP_TIMEOUT_MS)
  try {
    await waitUntilReady(child, {
      name: 'PostgreSQL',
      logFile,
      signal,
      timeoutMs: config.EMBEDDED_START_TIMEOUT_MS,
      isReady: () => createDatabase(urlOf('postgres')),
    })
  } catch (thrown) {
    await stop()
    throw thrown
  }
  return { url: urlOf(database), stop }
}

const nobody: Account = { uid: 65_534, gid: 65_534 }

// PostgreSQL refuses to run as root: then it runs as the cluster's owner, or as nobody, whom every system has
const accountFor = async (cluster: string): Promise<Account | undefined> => {
  const uid = process.getuid?.()
  const owner = await stat(cluster).catch(() => undefined)
  if (uid === 0) return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : nobody
  if (owner && owner.uid !== uid)
    throw new UserError(
      `${cluster} belongs to another user (${owner.uid}): start as the user who made it, or choose another RELAY_DATA_DIR.`,
    )
  return undefined
}

// the account may be unable to enter a parent of the cluster (root's home): an open directory that it inherits needs no way there
const openDirectory = async (cluster: string, account: Account | undefined) => {
  if (!account || process.platform !== 'linux') return { path: cluster, inherited: [], close: async () => {} }
  const handle: FileHandle = await open(cluster, 'r')
  return { path: '/proc/self/fd/3', inherited: [handle.fd], close: () => handle.close() }
}

const passwordIn = async (dataDir: string): Promise<string> => {
  const file = join(dataDir, 'postgres.password')
  const kept = await readFile(file, 'utf8').catch(() => '')
  if (kept) return kept
  const password = randomBytes(24).toString('base64url')
  await writeFile(file, password, { mode: 0o600 })
  return password
}

// initdb writes PG_VERSION early: a cluster gets its name only when it is whole
const initialize = async (
  programs: PostgresPrograms,
  cluster: string,
  password: string,
  account: Account | undefined,
  { config, fast, signal }: PostgresOptions,
): Promise<void> => {
  const unfinished = `${cluster}.new`
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { mode: 0o700 })
  const secretDir = await mkdtemp(join(tmpdir(), 'relay-'))
  const passwordFile = join(secretDir, 'password')
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (account) await Promise.all([unfinished, secretDir, passwordFile].map((path) => chown(path, account.uid, account.gid)))
  const directory = await openDirectory(unfinished, account)
  try {
    const words = ['-U', user, '--pwfile', passwordFile, '-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C', ...(fast ? ['--no-sync'] : [])]
    await runProgram(programs.initdb, ['-D', directory.path, ...words], {
      env: { ...config.childEnvironment, LC_ALL: 'C' },
      cwd: '/',
      account,
      signal,
      timeoutMs: config.EMBEDDED_START_TIMEOUT_MS,
      stdio: ['ignore', 'pipe', 'pipe', ...directory.inherited],
    })
  } finally {
    await Promise.all([directory.close(), rm(secretDir, { recursive: true, force: true })])
  }
  await chmod(unfinished, 0o700)
  await rename(unfinished, cluster)
}

const connectTimeoutMs = 2_000
const duplicateDatabase = '42P04'

const createDatabase = async (adminUrl: string): Promise<boolean> => {
  const client = new Client({ connectionString: adminUrl, connectionTimeoutMillis: connectTimeoutMs, query_timeout: 30_000 })
  // a server that is starting closes connections: the promises below tell
  client.on('error', () => {})
  try {
    await client.connect()
  } catch {
    await client.end().catch(() => {})
    return false
  }
  try {
    await client.query(`create database ${database}`)
  } catch (thrown) {
    if (!(thrown instanceof DatabaseError) || thrown.code !== duplicateDatabase) throw thrown
  } finally {
    await client.end()
  }
  return true
}
