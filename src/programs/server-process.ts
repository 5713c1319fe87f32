import type { ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { UserError } from '../base/errors.ts'
import { exitCodeOf, lastLines, signalGroup } from './programs.ts'

// Until a started server answers, on a machine that has other things to do.
export const startTimeoutMs = 60_000
// After it, a server that does not stop is killed.
export const stopTimeoutMs = 20_000

export interface WaitOptions {
  /** Name of the server at the beginning of a sentence. */
  name: string
  /** File with its log, or what returns the end of it. */
  logFile: string | (() => string)
  timeoutMs?: number
  signal?: AbortSignal | undefined
  isReady: () => Promise<boolean>
}

/**
 * Waits until a started server answers.
 * @throws `UserError` with the end of the server's log, if the server exits first or does not answer within `timeoutMs`
 */
export const waitUntilReady = async (child: ChildProcess, { timeoutMs = startTimeoutMs, ...options }: WaitOptions): Promise<void> => {
  let exited = false
  void exitCodeOf(child).then(() => (exited = true))
  const deadline = Date.now() + timeoutMs
  while (!(await options.isReady())) {
    options.signal?.throwIfAborted()
    const reason = exited ? 'exited during start' : `did not answer within ${timeoutMs / 1000} s`
    if (exited || Date.now() > deadline) {
      const { logFile } = options
      const log = typeof logFile === 'string' ? await readFile(logFile, 'utf8').catch(() => '') : logFile()
      throw new UserError(
        `${options.name} ${reason}. End of its log${typeof logFile === 'string' ? ` (${logFile})` : ''}: ${lastLines(log)}`,
      )
    }
    await sleep(50)
  }
  options.signal?.throwIfAborted()
}

/** Stops a server with SIGINT. Kills it if it still runs after `graceMs`. */
export const stopServer = async (child: ChildProcess, graceMs = stopTimeoutMs): Promise<void> => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = exitCodeOf(child)
  signalGroup(child, 'SIGINT')
  const kill = setTimeout(() => signalGroup(child, 'SIGKILL'), graceMs)
  await exited
  clearTimeout(kill)
}
