import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { basename, delimiter, join } from 'node:path'

/** Another user to run a program as. */
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

/** The first program of that name in a PATH. */
export const findProgram = async (name: string, searchPath: string | undefined): Promise<string | undefined> => {
  for (const directory of (searchPath ?? '').split(delimiter).filter(Boolean)) {
    const path = join(directory, name)
    if (await isExecutable(path)) return path
  }
  return undefined
}

export interface StartOptions extends Pick<SpawnOptions, 'stdio' | 'cwd'> {
  env: Record<string, string>
  account?: Account | undefined
}

/**
 * Starts a program in a process group of its own: Ctrl-C in a terminal reaches us alone, and we stop what we started in order.
 * Where we end without having done so, it is told to stop too: by an exit hook, and on Linux by the kernel even after a kill -9.
 */
export const startProgram = async (path: string, args: string[], options: StartOptions): Promise<ChildProcess> => {
  const { account, ...rest } = options
  const [command, ...words] = [...(await deathGuard(options.env)), path, ...args]
  const child = spawn(command!, words, { ...rest, ...account, detached: true })
  const stopWithUs = () => signalGroup(child, 'SIGINT')
  process.once('exit', stopWithUs)
  child.once('close', () => process.off('exit', stopWithUs))
  return child
}

export const signalGroup = (child: ChildProcess, signal: NodeJS.Signals): void => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(-child.pid, signal)
  } catch (thrown) {
    // it ended a moment ago
    if ((thrown as NodeJS.ErrnoException).code !== 'ESRCH') throw thrown
  }
}

// util-linux has it, busybox does not know the option, macOS has no such thing
const deathGuard = async (env: Record<string, string>): Promise<string[]> => {
  const setpriv = process.platform === 'linux' ? await findProgram('setpriv', env.PATH) : undefined
  if (!setpriv) return []
  const guard = [setpriv, '--pdeathsig', 'INT']
  const probe = spawn(setpriv, [...guard.slice(1), 'true'], { env, stdio: 'ignore' })
  return (await exitOf(probe)) === 0 ? guard : []
}

/** Exit code, or -1 where a signal ended it or it could not be started. */
export const exitOf = (child: ChildProcess): Promise<number> =>
  new Promise((resolve) => {
    child.once('error', () => resolve(-1))
    child.once('close', (code) => resolve(code ?? -1))
  })

export interface RunOptions extends StartOptions {
  timeoutMs: number
  signal?: AbortSignal | undefined
  /** Called every 15 seconds while it runs. */
  onWait?: (elapsedSeconds: number) => void
}

const keptOutput = 64 * 1024
const waitNoticeMs = 15_000

/** Runs a program to its end. @returns what it wrote @throws Error with the end of what it wrote, where it fails or takes too long */
export const runProgram = async (path: string, args: string[], options: RunOptions): Promise<string> => {
  const { timeoutMs, signal, onWait, stdio, ...start } = options
  signal?.throwIfAborted()
  const child = await startProgram(path, args, { ...start, stdio: stdio ?? ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-keptOutput)
  }
  child.stdout?.on('data', keep)
  child.stderr?.on('data', keep)

  const startedAt = Date.now()
  let ended: string | undefined
  const end = (reason: string) => {
    ended = reason
    signalGroup(child, 'SIGKILL')
  }
  const onAbort = () => end('was interrupted')
  signal?.addEventListener('abort', onAbort, { once: true })
  const timeout = setTimeout(() => end(`took longer than ${Math.round(timeoutMs / 1000)} s`), timeoutMs)
  const notices = onWait ? setInterval(() => onWait(Math.round((Date.now() - startedAt) / 1000)), waitNoticeMs) : undefined
  try {
    const code = await exitOf(child)
    if (ended === undefined && code === 0) return output
    throw new Error(`${basename(path)} ${ended ?? `failed (${code})`}: ${lastLines(output)}`)
  } finally {
    clearTimeout(timeout)
    clearInterval(notices)
    signal?.removeEventListener('abort', onAbort)
  }
}

/** The end of a long output, on one line. */
export const lastLines = (output: string): string => output.trim().split('\n').slice(-6).join(' | ').slice(-1_000) || 'it wrote nothing'
