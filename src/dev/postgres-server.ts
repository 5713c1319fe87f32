import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, mkdtemp, open, readFile, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, DatabaseError } from 'pg'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { readPidFile, stopOrphanedProcess } from '../programs/orphaned-processes.ts'
import { stablePort } from '../programs/ports.ts'
import { runProgram, startProgram, type Account } from '../programs/programs.ts'
import { stopServer, stopTimeoutMs, startTimeoutMs, waitUntilReady } from '../programs/server-process.ts'
import { findPostgres, type PostgresPrograms } from './find-postgres.ts'

export interface PostgresOptions {
  /** Directory for all its files: the cluster in `postgres/`, the password, the port and the log. */
  dataDir: string
  config: Pick<Config, 'RELAY_POSTGRES_BIN' | 'childEnvironment'>
  log: Pick<Log, 'info'>
  say: (line: string) => void
  signal?: AbortSignal | undefined
  /** Turns off fsync, for tests. A crash of the machine may then lose data. */
  fast?: boolean
}

export interface EmbeddedPostgres {
  /** URL of the database `relay`, with a role that owns this database and has no other rights. */
  url: string
  /** URL of the same server with the superuser, for tests. */
  adminUrl: string
  stop(): Promise<void>
}

const admin = 'postgres'
const user = 'relay'
const database = 'relay'
const fastSettings = ['-c', 'fsync=off', '-c', 'synchronous_commit=off', '-c', 'full_page_writes=off']

/**
 * Starts a PostgreSQL server on a data directory, and creates the cluster and the database on the first start.
 * Committed data survives a restart and, unless `fast` is set, a crash of the machine.
 * @throws `UserError` if no usable PostgreSQL is found or the server does not start
 */
export const startPostgres = async (options: PostgresOptions): Promise<EmbeddedPostgres> => {
  const { dataDir, config, say, signal } = options
  const cluster = join(dataDir, 'postgres')
  const marker = `relay.data_dir=${dataDir}`
  const account = await accountFor(cluster)
  await mkdir(dataDir, { recursive: true })

  const pid = await readPidFile(join(cluster, 'postmaster.pid'))
  if (pid !== undefined) {
    if (await stopOrphanedProcess({ pid, marker, timeoutMs: stopTimeoutMs }))
      say('Stopped a PostgreSQL server that a crashed process had left running.')
    // A crash of the machine left the file. PostgreSQL would not start if another process had this process id.
    else await rm(join(cluster, 'postmaster.pid'), { force: true })
  }

  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => undefined)
  const programs = await findPostgres({ ...options, account, requiredMajor: version === undefined ? undefined : Number(version) })
  const password = await readOrCreatePassword(join(dataDir, 'postgres.password'))
  const adminPassword = await readOrCreatePassword(join(dataDir, 'postgres.admin-password'))
  if (version === undefined) {
    say(`Creating a PostgreSQL ${programs.major} database in ${cluster}.`)
    await initialize(programs, cluster, adminPassword, account, options)
  }

  const port = await stablePort(join(dataDir, 'postgres.port'))
  const logFile = join(dataDir, 'postgres.log')
  const url = `postgres://${user}:${password}@127.0.0.1:${port}/${database}`
  const adminUrl = `postgres://${admin}:${adminPassword}@127.0.0.1:${port}/postgres`
  const settings = [`listen_addresses=127.0.0.1`, 'unix_socket_directories=', 'max_connections=200', marker]
  const args = ['-p', String(port), ...settings.flatMap((setting) => ['-c', setting]), ...(options.fast ? fastSettings : [])]
  const log = await open(logFile, 'w', 0o600)
  const directory = await openDirectory(cluster, account)
  const child = await startProgram(programs.postgres, ['-D', directory.path, ...args], {
    env: { ...config.childEnvironment, LC_ALL: 'C' },
    cwd: '/',
    account,
    stdio: ['ignore', log.fd, log.fd, ...directory.inherited],
  })
  await Promise.all([log.close(), directory.close()])

  const stop = () => stopServer(child)
  try {
    await waitUntilReady(child, {
      name: 'PostgreSQL',
      logFile,
      signal,
      isReady: () => createDatabase(adminUrl, password),
    })
  } catch (thrown) {
    await stop()
    throw thrown
  }
  return { url, adminUrl, stop }
}

const nobody: Account = { uid: 65_534, gid: 65_534 }

// PostgreSQL refuses to run as root. It then runs as the owner of the cluster, or as `nobody`, an account that every
// system has.
const accountFor = async (cluster: string): Promise<Account | undefined> => {
  const uid = process.getuid?.()
  const owner = await stat(cluster).catch(() => undefined)
  if (uid === 0) return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : nobody
  if (owner && owner.uid !== uid)
    throw new UserError(
      `${cluster} belongs to another user (uid ${owner.uid}). Run as that user, or set RELAY_DATA_DIR to another directory.`,
    )
  return undefined
}

// The account may be unable to enter a parent directory of the cluster, such as root's home. PostgreSQL therefore
// inherits the open directory as file descriptor 3.
const openDirectory = async (cluster: string, account: Account | undefined) => {
  if (!account || process.platform !== 'linux') return { path: cluster, inherited: [], close: async () => {} }
  const handle: FileHandle = await open(cluster, 'r')
  return { path: '/proc/self/fd/3', inherited: [handle.fd], close: () => handle.close() }
}

const readOrCreatePassword = async (file: string): Promise<string> => {
  const existing = await readFile(file, 'utf8').catch(() => '')
  if (existing) return existing
  const password = randomBytes(24).toString('base64url')
  await writeFile(file, password, { mode: 0o600 })
  return password
}

// initdb writes PG_VERSION early. The cluster is therefore created under another name and renamed when it is complete.
const initialize = async (
  programs: PostgresPrograms,
  cluster: string,
  password: string,
  account: Account | undefined,
  { config, fast, signal }: PostgresOptions,
): Promise<void> => {
  const incomplete = `${cluster}.new`
  await rm(incomplete, { recursive: true, force: true })
  await mkdir(incomplete, { mode: 0o700 })
  const secretDir = await mkdtemp(join(tmpdir(), 'relay-'))
  const passwordFile = join(secretDir, 'password')
  await writeFile(passwordFile, password, { mode: 0o600 })
  if (account) await Promise.all([incomplete, secretDir, passwordFile].map((path) => chown(path, account.uid, account.gid)))
  const directory = await openDirectory(incomplete, account)
  try {
    const initdbOptions = [
      '-U',
      admin,
      '--pwfile',
      passwordFile,
      '-A',
      'scram-sha-256',
      '-E',
      'UTF8',
      '--locale=C',
      ...(fast ? ['--no-sync'] : []),
    ]
    await runProgram(programs.initdb, ['-D', directory.path, ...initdbOptions], {
      env: { ...config.childEnvironment, LC_ALL: 'C' },
      cwd: '/',
      account,
      signal,
      timeoutMs: startTimeoutMs,
      stdio: ['ignore', 'pipe', 'pipe', ...directory.inherited],
    })
  } finally {
    await Promise.all([directory.close(), rm(secretDir, { recursive: true, force: true })])
  }
  await chmod(incomplete, 0o700)
  await rename(incomplete, cluster)
}

const connectTimeoutMs = 2_000
const duplicateDatabase = '42P04'
const duplicateRole = '42710'
const wrongPassword = '28P01'

/** Runs a statement that creates something, unless that exists already. */
const createOnce = async (client: Client, statement: string, duplicate: string): Promise<void> => {
  try {
    await client.query(statement)
  } catch (thrown) {
    if (!(thrown instanceof DatabaseError) || thrown.code !== duplicate) throw thrown
  }
}

/**
 * Creates the role of the relay and its database, if they do not exist.
 * @returns `false` if the server does not accept connections yet
 * @throws `UserError` if the administrator has another password, because its file was lost
 */
const createDatabase = async (adminUrl: string, password: string): Promise<boolean> => {
  const client = new Client({ connectionString: adminUrl, connectionTimeoutMillis: connectTimeoutMs, query_timeout: 30_000 })
  // A starting server closes connections. The promises below report that; without this listener the event would crash
  // the process.
  client.on('error', () => {})
  try {
    await client.connect()
  } catch (thrown) {
    await client.end().catch(() => {})
    if (thrown instanceof DatabaseError && thrown.code === wrongPassword) {
      throw new UserError(
        'postgres.admin-password is not the password of this PostgreSQL. Restore the file, or start with a new data directory.',
      )
    }
    return false
  }
  try {
    await createOnce(client, `create role ${user} login password ${client.escapeLiteral(password)}`, duplicateRole)
    await createOnce(client, `create database ${database} owner ${user}`, duplicateDatabase)
  } finally {
    await client.end()
  }
  return true
}
