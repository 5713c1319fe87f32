import { mkdir, open, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Connection } from '@temporalio/client'
import { searchAttributes } from '../../workflows/messages.ts'
import type { Config } from '../config.ts'
import { readPid, stopLeftover } from './leftovers.ts'
import { isListening, stablePort } from './ports.ts'
import { startProgram } from './programs.ts'
import { stopServer, waitUntilReady } from './server-process.ts'
import { findTemporal, type FindTemporalOptions } from './temporal-program.ts'

export interface DevServerOptions extends FindTemporalOptions {
  /** Everything of it lies in here: its SQLite file, its ports, its log. */
  dataDir: string
  config: FindTemporalOptions['config'] & Pick<Config, 'EMBEDDED_START_TIMEOUT_MS' | 'EMBEDDED_STOP_TIMEOUT_MS'>
}

export interface DevServer {
  address: string
  uiUrl: string
  stop(): Promise<void>
}

// measured (see docs): on a file with SQLite's defaults it does half as much; eager activities and a lazier collector give a fifth each
const pragmas = ['journal_mode=WAL', 'synchronous=normal']
/** Settings of the server itself. Fairness is a setting of each cluster: without it the keys our workflows carry mean nothing. */
export const dynamicConfig = ['system.enableActivityEagerExecution=true', 'matching.useNewMatcher=true', 'matching.enableFairness=true']
const collector = { GOGC: '400' }

const argumentsOf = (port: number, uiPort: number, databaseFile: string): string[] => [
  'server',
  'start-dev',
  '--ip=127.0.0.1',
  `--port=${port}`,
  `--ui-port=${uiPort}`,
  `--db-filename=${databaseFile}`,
  '--log-level=error',
  ...pragmas.flatMap((pragma) => ['--sqlite-pragma', pragma]),
  ...dynamicConfig.flatMap((setting) => ['--dynamic-config-value', setting]),
  ...Object.values(searchAttributes).flatMap(({ name }) => ['--search-attribute', `${name}=Keyword`]),
]

/** Temporal's own dev server with its UI. Workflows outlive a restart. @throws UserError */
export const startTemporalDevServer = async (options: DevServerOptions): Promise<DevServer> => {
  const { dataDir, config, say, signal } = options
  const databaseFile = join(dataDir, 'temporal.sqlite')
  const pidFile = join(dataDir, 'temporal.pid')
  const logFile = join(dataDir, 'temporal.log')
  await mkdir(dataDir, { recursive: true })

  const pid = await readPid(pidFile)
  if (pid !== undefined && (await stopLeftover({ pid, marker: databaseFile, timeoutMs: config.EMBEDDED_STOP_TIMEOUT_MS })))
    say('Stopped a Temporal that a crash had left running.')

  const program = await findTemporal(options)
  const port = await stablePort(join(dataDir, 'temporal.port'))
  const uiPort = await stablePort(join(dataDir, 'temporal-ui.port'))
  const log = await open(logFile, 'w', 0o600)
  const child = await startProgram(program, argumentsOf(port, uiPort, databaseFile), {
    env: { ...config.childEnvironment, ...collector },
    stdio: ['ignore', log.fd, log.fd],
  })
  await log.close()
  if (child.pid !== undefined) await writeFile(pidFile, String(child.pid))

  const stop = async () => {
    await stopServer(child, config.EMBEDDED_STOP_TIMEOUT_MS)
    await rm(pidFile, { force: true })
  }
  const address = `127.0.0.1:${port}`
  try {
    await waitUntilReady(child, {
      name: 'Temporal',
      logFile,
      signal,
      timeoutMs: config.EMBEDDED_START_TIMEOUT_MS,
      // a gRPC channel that found nobody waits a second before it looks again
      isReady: async () => (await isListening(port)) && answers(address),
    })
  } catch (thrown) {
    await stop()
    throw thrown
  }
  return { address, uiUrl: `http://127.0.0.1:${uiPort}`, stop }
}

const answerTimeoutMs = 2_000

const answers = async (address: string): Promise<boolean> => {
  const connection = Connection.lazy({ address, connectTimeout: answerTimeoutMs })
  try {
    // it listens before it has made its namespace
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
