import { open } from 'node:fs/promises'
import { readConfig } from '../../src/config/config.ts'
import { isListening } from '../../src/programs/ports.ts'
import { startProgram, type Account } from '../../src/programs/programs.ts'
import { stopServer, waitUntilReady } from '../../src/programs/server-process.ts'

// Generous, because a busy machine starts servers many times slower than an idle one.
const startTimeoutMs = 120_000
const stopTimeoutMs = 20_000

interface ServerOptions {
  /** Name of the server at the beginning of a sentence. */
  name: string
  /** Port on which it listens when it is ready. */
  port: number
  /** File for its output. */
  logFile: string
  /** Environment variables beside those that any program needs. */
  env?: Record<string, string>
  account?: Account | undefined
  niceness?: number
}

export interface RunningServer {
  pid: number
  stop(): Promise<void>
  kill(): Promise<void>
}

/**
 * Starts a server in a process group of its own, and waits until it listens.
 * @throws `UserError` with the end of its output, if it exits first or takes too long. It is stopped then
 */
export const startServer = async (program: string, args: string[], options: ServerOptions): Promise<RunningServer> => {
  const { name, port, logFile, env = {}, account, niceness = 0 } = options
  const log = await open(logFile, 'w', 0o600)
  try {
    const child = await startProgram(program, args, {
      env: { ...readConfig().childEnvironment, ...env },
      stdio: ['ignore', log.fd, log.fd],
      account,
      niceness,
    })
    const stop = () => stopServer(child, stopTimeoutMs)
    try {
      await waitUntilReady(child, { name, logFile, timeoutMs: startTimeoutMs, isReady: () => isListening(port) })
    } catch (thrown) {
      await stop()
      throw thrown
    }
    const kill = () =>
      new Promise<void>((resolve) => {
        child.once('close', () => resolve())
        process.kill(-child.pid!, 'SIGKILL')
      })
    return { pid: child.pid!, stop, kill }
  } finally {
    await log.close()
  }
}
