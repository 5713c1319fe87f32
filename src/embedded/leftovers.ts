import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

/** What tells a running process from a later one with the same id; undefined where none runs (a zombie does not). */
export interface ProcessIdentity {
  command: string
  startedAt: string
}

export const identify = async (pid: number): Promise<ProcessIdentity | undefined> => {
  // 0 and negative numbers mean groups
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid)
}

const fromProc = async (pid: number): Promise<ProcessIdentity | undefined> => {
  try {
    const [commandLine, status] = await Promise.all([readFile(`/proc/${pid}/cmdline`, 'utf8'), readFile(`/proc/${pid}/stat`, 'utf8')])
    // proc(5): field 22 is the start time; the name in field 2 may hold anything but ends with the last parenthesis
    const startedAt = status.slice(status.lastIndexOf(')') + 2).split(' ')[19]
    return commandLine && startedAt ? { command: commandLine.replaceAll('\0', ' '), startedAt } : undefined
  } catch {
    return undefined
  }
}

const fromPs = async (pid: number): Promise<ProcessIdentity | undefined> => {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'lstart=', '-o', 'command=', '-p', String(pid)], { timeout: 5_000 })
    // "Sat Nov 21 14:32:49 2026 command": a fixed 24 characters
    return { startedAt: stdout.slice(0, 24), command: stdout.slice(24).trim() }
  } catch {
    return undefined
  }
}

/** The process id a pid file begins with. */
export const readPid = async (pidFile: string): Promise<number | undefined> => {
  try {
    const pid = Number.parseInt(await readFile(pidFile, 'utf8'), 10)
    return Number.isInteger(pid) ? pid : undefined
  } catch {
    return undefined
  }
}

export interface Leftover {
  pid: number
  /** Must stand in its command line: process ids are used again, and we end nothing that is not ours. */
  marker: string
  timeoutMs: number
}

/** Stops what a crashed parent left running. @returns whether there was anything to stop */
export const stopLeftover = async ({ pid, marker, timeoutMs }: Leftover): Promise<boolean> => {
  const isOurs = async () => (await identify(pid))?.command.includes(marker) ?? false
  if (!(await isOurs())) return false
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    try {
      process.kill(pid, signal)
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown
    }
    const deadline = Date.now() + timeoutMs
    while (Date.now() < deadline) {
      if (!(await isOurs())) return true
      await sleep(50)
    }
  }
  throw new Error(`Process ${pid} was left behind by a server that crashed, and cannot be stopped`)
}
