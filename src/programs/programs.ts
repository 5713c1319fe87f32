import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { constants } from 'node:fs'
import { access, stat, writeFile } from 'node:fs/promises'
import { basename, delimiter, join } from 'node:path'

/** User to run a program as, if not the current one. */
export interface Account {
  uid: number
  gid: number
}

export const isExecutable = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

/** Finds the first executable file with this name in the directories of a PATH. */
export const findProgram = async (name: string, searchPath: string | undefined): Promise<string | undefined> => {
  for (const directory of (searchPath ?? '').split(delimiter).filter(Boolean)) {
    const path = join(directory, name)
    if (await isExecutable(path)) return path
  }
  return undefined
}

// Temporal and the worker run with a lower priority than the API and PostgreSQL: a peak of documents is then not answered late
// because others are being delivered.
export const backgroundNiceness = 5

export interface StartProgramOptions extends Pick<SpawnOptions, 'stdio' | 'cwd'> {
  env: Record<string, string>
  account?: Account | undefined
  /** Priority of the program while the processors are busy, from 0 (that of this process) to 19 (the lowest). */
  niceness?: number
}

/**
 * Starts a program in its own process group. Ctrl-C in a terminal then reaches this process only, which stops its
 * programs in order. If this process ends without stopping the program, an exit hook sends SIGINT. On Linux the kernel
 * does so even after SIGKILL.
 */
export const startProgram = async (path: string, args: string[], options: StartProgramOptions): Promise<ChildProcess> => {
  const { account, niceness = 0, ...rest } = options
  const prefixes = [...(await parentDeathSignal(options.env)), ...(await lowerPriority(options.env, niceness))]
  const [command, ...commandArgs] = [...prefixes, path, ...args]
  const child = spawn(command!, commandArgs, { ...rest, ...account, detached: true })
  // Linux may divide the processors by sessions first, and `nice` then counts within a session only.
  if (niceness > 0 && child.pid !== undefined) await writeFile(`/proc/${child.pid}/autogroup`, String(niceness)).catch(() => {})
  if (running.size === 0) process.on('exit', stopRunning)
  running.add(child)
  child.once('close', () => {
    running.delete(child)
    if (running.size === 0) process.off('exit', stopRunning)
  })
  return child
}

// One listener for all of them: Node warns of a leak at the eleventh.
const running = new Set<ChildProcess>()
const stopRunning = () => {
  for (const child of running) signalGroup(child, 'SIGINT')
}

export const signalGroup = (child: ChildProcess, signal: NodeJS.Signals): void => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(-child.pid, signal)
  } catch (thrown) {
    // ESRCH: the process has just ended.
    if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown
  }
}

/**
 * Returns the command prefix that makes the kernel send SIGINT when this process dies.
 * @returns an empty array if the system does not support this
 */
const parentDeathSignal = async (env: Record<string, string>): Promise<string[]> => {
  // setpriv is part of util-linux. The one of busybox lacks the option, and macOS has no equivalent.
  const setpriv = process.platform === 'linux' ? await findProgram('setpriv', env.PATH) : undefined
  if (!setpriv) return []
  const options = ['--pdeathsig', 'INT']
  const probe = spawn(setpriv, [...options, 'true'], { env, stdio: 'ignore' })
  return (await exitCodeOf(probe)) === 0 ? [setpriv, ...options] : []
}

/**
 * Returns the command prefix that lowers the priority of a program with all its threads. Node can lower that of a running process, but on
 * Linux only of one of its threads.
 */
const lowerPriority = async (env: Record<string, string>, niceness: number): Promise<string[]> => {
  const nice = niceness > 0 ? await findProgram('nice', env.PATH) : undefined
  return nice ? [nice, '-n', String(niceness)] : []
}

/**
 * Waits for a process to end.
 * @returns the exit code, or -1 if a signal ended the process or it could not be started
 */
export const exitCodeOf = (child: ChildProcess): Promise<number> =>
  new Promise((resolve) => {
    child.once('error', () => resolve(-1))
    child.once('close', (code) => resolve(code ?? -1))
  })

export interface RunProgramOptions extends StartProgramOptions {
  timeoutMs: number
  signal?: AbortSignal | undefined
  /** What the program does, as the subject of an error message. Default: its file name. */
  name?: string
  /** Called every 15 seconds while the program runs. */
  onWait?: (elapsedSeconds: number) => void
}

const maxOutputCharacters = 64 * 1024
const waitNoticeIntervalMs = 15_000

/**
 * Runs a program until it exits.
 * @returns its output
 * @throws `Error` with the end of its output, if the program fails or takes longer than `timeoutMs`
 */
export const runProgram = async (path: string, args: string[], options: RunProgramOptions): Promise<string> => {
  const { timeoutMs, signal, name = basename(path), onWait, stdio, ...start } = options
  signal?.throwIfAborted()
  const child = await startProgram(path, args, { ...start, stdio: stdio ?? ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const append = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-maxOutputCharacters)
  }
  child.stdout?.on('data', append)
  child.stderr?.on('data', append)

  const startedAt = Date.now()
  let killReason: string | undefined
  const kill = (reason: string) => {
    killReason = reason
    signalGroup(child, 'SIGKILL')
  }
  const onAbort = () => kill('was interrupted')
  signal?.addEventListener('abort', onAbort, { once: true })
  const timeout = setTimeout(() => kill(`took longer than ${Math.round(timeoutMs / 1000)} s`), timeoutMs)
  const notices = onWait ? setInterval(() => onWait(Math.round((Date.now() - startedAt) / 1000)), waitNoticeIntervalMs) : undefined
  try {
    const code = await exitCodeOf(child)
    if (killReason === undefined && code === 0) return output
    throw new Error(`${name} ${killReason ?? `failed (exit code ${code})`}: ${lastLines(output)}`)
  } finally {
    clearTimeout(timeout)
    clearInterval(notices)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Returns the end of an output on one line, for an error message. */
export const lastLines = (output: string): string => output.trim().split('\n').slice(-6).join(' | ').slice(-1_000) || 'no output'
