import type { ChildProcess } from 'node:child_process'
import { chmod, chown, mkdir, open, readdir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { processTree } from '../bench/support/processes.ts'
import { createLog } from '../src/base/log.ts'
import type { Config } from '../src/config/config.ts'
import { findPostgres } from '../src/dev/find-postgres.ts'
import { findFreePort } from '../src/programs/ports.ts'
import { exitCodeOf, findProgram, runProgram, startProgram, type Account } from '../src/programs/programs.ts'
import { stopServer, waitUntilReady } from '../src/programs/server-process.ts'

/** A PostgreSQL server that can be killed, frozen and copied. Like any server in production, it syncs what it commits. */
export interface PostgresServer {
  port: number
  /** Folder of the cluster. */
  folder: string
  start(): Promise<void>
  /** Restarts the server whenever it exits, as a service manager does, until it is stopped or killed. */
  supervise(): void
  /** Kills the postmaster with SIGKILL, and waits until its backends have noticed. */
  kill(): Promise<void>
  freeze(): void
  thaw(): void
  stop(): Promise<void>
  /** Runs a statement as the superuser, on a connection of its own. */
  query(sql: string): Promise<Record<string, unknown>[]>
  /** Copies the running cluster with pg_basebackup and starts the copy as a streaming standby. */
  startStandby(folder: string): Promise<PostgresServer>
  promote(): Promise<void>
}

export const databaseName = 'relay'
export const roleName = 'relay'
const admin = 'postgres'
export const maxConnections = 80
export const standbyName = 'standby'

/** Address of the relay's database at a server on this machine. */
export const databaseUrl = (port: number): string => `postgres://${roleName}@127.0.0.1:${port}/${databaseName}`

// PostgreSQL refuses to run as root.
const account: Account | undefined = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined

/** Creates a folder that PostgreSQL can use. */
const createFolder = async (folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true })
  if (account) await chown(folder, account.uid, account.gid)
  await chmod(folder, 0o700)
}

/** Creates a cluster in the folder, unless it holds one, and returns its server. The server is not started. */
export const createPostgres = async (config: Config, folder: string, settings: string[] = []): Promise<PostgresServer> => {
  const programs = await findPostgres({ config, log: createLog('silent'), account })
  const env = { ...config.childEnvironment, LC_ALL: 'C' }
  const options = { env, cwd: '/', account, timeoutMs: 120_000 }
  await createFolder(folder)
  if ((await readdir(folder)).length === 0) {
    await runProgram(programs.initdb, ['-D', folder, '-U', admin, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'], options)
  }
  const port = await findFreePort()
  const logFile = join(dirname(folder), `postgres-${port}.log`)
  let child: ChildProcess | undefined
  let isWanted = false

  const query: PostgresServer['query'] = async (sql) => {
    const client = new Client({ host: '127.0.0.1', port, user: admin, database: 'postgres', connectionTimeoutMillis: 5_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query<Record<string, unknown>>(sql)).rows
    } finally {
      await client.end().catch(() => {})
    }
  }

  const launch = async () => {
    const log = await open(logFile, 'a')
    const all = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', `max_connections=${maxConnections}`, 'max_wal_size=256MB']
    const args = ['-D', folder, '-p', String(port), ...[...all, ...settings].flatMap((setting) => ['-c', setting])]
    child = await startProgram(programs.postgres, args, { env, cwd: '/', account, stdio: ['ignore', log.fd, log.fd] })
    await log.close()
    return child
  }
  const untilReady = (started: ChildProcess) =>
    waitUntilReady(started, {
      name: 'PostgreSQL',
      logFile,
      timeoutMs: 120_000,
      isReady: () =>
        query('select 1').then(
          () => true,
          () => false,
        ),
    })
  const tree = () => processTree([child?.pid ?? -1]).map(({ pid }) => pid)
  const signalAll = (signal: NodeJS.Signals) => {
    for (const pid of tree()) {
      try {
        process.kill(pid, signal)
      } catch (thrown) {
        // A backend may have ended since the processes were listed.
        if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown
      }
    }
  }

  const server: PostgresServer = {
    port,
    folder,
    query,
    start: async () => {
      isWanted = true
      await untilReady(await launch())
    },
    supervise: () => {
      const watch = async () => {
        await exitCodeOf(child!)
        await pause(1_000)
        if (!isWanted) return
        await launch()
        void watch()
      }
      void watch()
    },
    kill: async () => {
      isWanted = false
      const pids = tree()
      const exited = exitCodeOf(child!)
      child!.kill('SIGKILL')
      await exited
      while (processTree(pids).length > 0) await pause(50)
    },
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    stop: async () => {
      isWanted = false
      signalAll('SIGCONT')
      if (child) await stopServer(child, 20_000)
    },
    startStandby: async (standbyFolder) => {
      const program = await findBaseBackup(config)
      if (!program) throw new Error('pg_basebackup was not found')
      await createFolder(standbyFolder)
      const source = ['-h', '127.0.0.1', '-p', String(port), '-U', admin]
      await runProgram(program, [...source, '-D', standbyFolder, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'], options)
      const standby = await createPostgres(config, standbyFolder, [...settings, `cluster_name=${standbyName}`])
      await standby.start()
      return standby
    },
    promote: async () => {
      await query('select pg_promote()')
    },
  }
  return server
}

export type Query = <Row>(sql: string, parameters?: unknown[]) => Promise<Row[]>

/** Returns a function that runs a statement in the database at this address, on a connection of its own. */
export const createQuery =
  (url: () => string): Query =>
  async <Row>(sql: string, parameters: unknown[] = []) => {
    const client = new Client({ connectionString: url(), connectionTimeoutMillis: 10_000, query_timeout: 30_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query(sql, parameters)).rows as Row[]
    } finally {
      await client.end().catch(() => {})
    }
  }

/** Returns pg_basebackup of the same installation. The npm package of the embedded stack lacks it. */
export const findBaseBackup = async (config: Config) => {
  const { postgres } = await findPostgres({ config, log: createLog('silent'), account })
  return findProgram('pg_basebackup', `${dirname(await realpath(postgres))}:${config.childEnvironment.PATH ?? ''}`)
}

/** Creates the relay's role and its database. */
export const createRelayDatabase = async (server: PostgresServer): Promise<void> => {
  await server.query(`create role ${roleName} login`)
  await server.query(`create database ${databaseName} owner ${roleName}`)
}
