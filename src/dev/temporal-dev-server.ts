import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Connection } from '@temporalio/client'
import { searchAttributes } from '../../workflows/options.ts'
import { readPidFile, stopOrphanedProcess, writePidFile } from '../programs/orphaned-processes.ts'
import { isListening, stablePort } from '../programs/ports.ts'
import { backgroundNiceness, startProgram } from '../programs/programs.ts'
import { stopServer, stopTimeoutMs, waitUntilReady } from '../programs/server-process.ts'
import { dynamicConfig, garbageCollector, memoryLimits } from '../temporal-server/dynamic-config.ts'
import { findTemporal, type FindTemporalOptions } from './find-temporal.ts'

export interface TemporalDevServerOptions extends FindTemporalOptions {
  /** Directory for all its files: the SQLite database, the ports and the log. */
  dataDir: string
  niceness?: number
}

export interface TemporalDevServer {
  address: string
  uiUrl: string
  stop(): Promise<void>
}

// Measured: SQLite's default pragmas halve the throughput.
const pragmas = ['journal_mode=WAL', 'synchronous=normal']
/**
 * Returns the option that names the file of the database. A server without a file keeps its data in the memory of one connection. If a
 * client cancels a call at the wrong moment, it replaces that connection, and then answers every call with "no such table".
 */
export const databaseArguments = (file: string): string[] => [
  `--db-filename=${file}`,
  ...pragmas.flatMap((pragma) => ['--sqlite-pragma', pragma]),
]

const argumentsOf = (port: number, uiPort: number, databaseFile: string): string[] => [
  'server',
  'start-dev',
  '--ip=127.0.0.1',
  `--port=${port}`,
  `--ui-port=${uiPort}`,
  '--log-level=error',
  ...databaseArguments(databaseFile),
  ...[...dynamicConfig, ...memoryLimits].flatMap((setting) => ['--dynamic-config-value', setting]),
  ...Object.values(searchAttributes).flatMap(({ name }) => ['--search-attribute', `${name}=Keyword`]),
]

/**
 * Starts the Temporal CLI's dev server with its UI. Workflows survive a restart.
 * @throws `UserError` if the Temporal CLI is not found or the server does not start
 */
export const startTemporalDevServer = async (options: TemporalDevServerOptions): Promise<TemporalDevServer> => {
  const { dataDir, config, say, signal, niceness = backgroundNiceness } = options
  const databaseFile = join(dataDir, 'temporal.sqlite')
  const pidFile = join(dataDir, 'temporal.pid')
  const logFile = join(dataDir, 'temporal.log')
  await mkdir(dataDir, { recursive: true })

  const pid = await readPidFile(pidFile)
  if (pid !== undefined && (await stopOrphanedProcess({ pid, marker: databaseFile, timeoutMs: stopTimeoutMs })))
    say('Stopped a Temporal server that a crashed process had left running.')

  const program = await findTemporal(options)
  const port = await stablePort(join(dataDir, 'temporal.port'))
  const uiPort = await stablePort(join(dataDir, 'temporal-ui.port'))
  const log = await open(logFile, 'w', 0o600)
  const child = await startProgram(program, argumentsOf(port, uiPort, databaseFile), {
    env: { ...config.childEnvironment, ...garbageCollector },
    stdio: ['ignore', log.fd, log.fd],
    niceness,
  })
  await log.close()
  await writePidFile(pidFile, child)

  const stop = async () => {
    await stopServer(child)
    await rm(pidFile, { force: true })
  }
  const address = `127.0.0.1:${port}`
  try {
    await waitUntilReady(child, {
      name: 'Temporal',
      logFile,
      signal,
      // Check the port first: a gRPC channel waits a second after a failed connection before it tries again.
      isReady: async () => (await isListening(port)) && answersOn(address),
    })
  } catch (thrown) {
    await stop()
    throw thrown
  }
  return { address, uiUrl: `http://127.0.0.1:${uiPort}`, stop }
}

const answerTimeoutMs = 2_000

const answersOn = async (address: string): Promise<boolean> => {
  const connection = Connection.lazy({ address, connectTimeout: answerTimeoutMs })
  try {
    // The server listens before it has created the default namespace.
    await connection.withDeadline(Date.now() + answerTimeoutMs, () =>
      connection.workflowService.describeNamespace({ namespace: 'default' }),
    )
    return true
  } catch {
    return false
  } finally {
    await connection.close()
  }
}
