import { execFile, type ChildProcess } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { signalGroup } from './programs.ts'

/** Properties that distinguish a process from a later one with the same process id. */
export interface ProcessIdentity {
  command: string
  startedAt: string
}

/** Identifies a running process. @returns `undefined` if no process has this id, or it is a zombie */
export const identifyProcess = async (pid: number): Promise<ProcessIdentity | undefined> => {
  // Zero and negative numbers address process groups.
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  return process.platform === 'linux' ? identifyFromProc(pid) : identifyWithPs(pid)
}

const identifyFromProc = async (pid: number): Promise<ProcessIdentity | undefined> => {
  try {
    const [commandLine, status] = await Promise.all([readFile(`/proc/${pid}/cmdline`, 'utf8'), readFile(`/proc/${pid}/stat`, 'utf8')])
    // proc(5): field 22 is the start time. Field 2, the name, may contain any character and ends with the last
    // parenthesis.
    const startedAt = status.slice(status.lastIndexOf(')') + 2).split(' ')[19]
    return commandLine && startedAt ? { command: commandLine.replaceAll('\0', ' '), startedAt } : undefined
  } catch {
    return undefined
  }
}

const identifyWithPs = async (pid: number): Promise<ProcessIdentity | undefined> => {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'lstart=', '-o', 'command=', '-p', String(pid)], { timeout: 5_000 })
    // "Sat Nov 21 14:32:49 2026 command": the start time has 24 characters.
    return { startedAt: stdout.slice(0, 24), command: stdout.slice(24).trim() }
  } catch {
    return undefined
  }
}

/**
 * Reads the process id from the first line of a pid file.
 * @returns `undefined` if the file is missing or does not start with a number
 */
export const readPidFile = async (pidFile: string): Promise<number | undefined> => {
  try {
    const pid = Number.parseInt(await readFile(pidFile, 'utf8'), 10)
    return Number.isInteger(pid) ? pid : undefined
  } catch {
    return undefined
  }
}

/** Writes the process id of a child that has just been started. @throws if it cannot, after it has killed the child, which nothing else knows yet */
export const writePidFile = async (pidFile: string, child: ChildProcess): Promise<void> => {
  if (child.pid === undefined) return
  try {
    await writeFile(pidFile, String(child.pid))
  } catch (thrown) {
    signalGroup(child, 'SIGKILL')
    throw thrown
  }
}

export interface OrphanedProcess {
  pid: number
  /** Text that the command line must contain. Process ids are reused, and a foreign process must not be stopped. */
  marker: string
  timeoutMs: number
}

/**
 * Stops a process that a crashed server left running: with SIGINT, then with SIGKILL after `timeoutMs`.
 * @returns `false` if no such process was running
 */
export const stopOrphanedProcess = async ({ pid, marker, timeoutMs }: OrphanedProcess): Promise<boolean> => {
  const isOrphan = async () => (await identifyProcess(pid))?.command.includes(marker) ?? false
  if (!(await isOrphan())) return false
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    try {
      process.kill(pid, signal)
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown
    }
    const deadline = Date.now() + timeoutMs
    while (Date.now() < deadline) {
      if (!(await isOrphan())) return true
      await sleep(50)
    }
  }
  throw new Error(`Process ${pid}, left running by a crashed server, cannot be stopped`)
}
