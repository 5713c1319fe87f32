import type { ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { UserError } from '../errors.ts'
import { exitOf, lastLines, signalGroup } from './programs.ts'

export interface WaitOptions {
  /** What it is, at the beginning of a sentence. */
  name: string
  logFile: string
  timeoutMs: number
  signal?: AbortSignal | undefined
  isReady: () => Promise<boolean>
}

/** Waits until a server that we started answers. @throws UserError with the end of its log where it ends first or takes too long */
export const waitUntilReady = async (child: ChildProcess, options: WaitOptions): Promise<void> => {
  let exited = false
  void exitOf(child).then(() => (exited = true))
  const deadline = Date.now() + options.timeoutMs
  while (!(await options.isReady())) {
    options.signal?.throwIfAborted()
    const reason = exited ? 'ended as soon as it was started' : `does not answer after ${options.timeoutMs / 1000} s`
    if (exited || Date.now() > deadline) {
      const log = await readFile(options.logFile, 'utf8').catch(() => '')
      throw new UserError(`${options.name} ${reason} (${options.logFile}): ${lastLines(log)}`)
    }
    await sleep(50)
  }
  options.signal?.throwIfAborted()
}

/** Asks it to stop, and kills it where it does not within the time. */
export const stopServer = async (child: ChildProcess, timeoutMs: number): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = exitOf(child)
  signalGroup(child, 'SIGINT')
  const kill = setTimeout(() => signalGroup(child, 'SIGKILL'), timeoutMs)
  await exited
  clearTimeout(kill)
}
