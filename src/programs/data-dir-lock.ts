import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { messageOf, UserError } from '../base/errors.ts'
import { identifyProcess } from './orphaned-processes.ts'

const lockHolder = z.object({ pid: z.number(), command: z.string(), startedAt: z.string() })

const codeOf = (thrown: unknown) => (thrown as NodeJS.ErrnoException).code

const runningHolderPid = async (lockContent: string): Promise<number | undefined> => {
  try {
    const { pid, command, startedAt } = lockHolder.parse(JSON.parse(lockContent))
    const running = await identifyProcess(pid)
    return running?.command === command && running.startedAt === startedAt ? pid : undefined
  } catch {
    return undefined
  }
}

const createLink = async (existing: string, file: string): Promise<boolean> => {
  try {
    // link() is atomic: the file appears with its content, and only if it did not exist.
    await link(existing, file)
    return true
  } catch (thrown) {
    if (codeOf(thrown) === 'EEXIST') return false
    throw thrown
  }
}

const cannotWrite = (dataDir: string, thrown: unknown) =>
  new UserError(`Cannot write to ${dataDir}: ${messageOf(thrown)}. Set RELAY_DATA_DIR to another directory.`, { cause: thrown })

const writing = new Set<unknown>(['mkdir', 'open', 'write', 'close', 'link', 'rename'])

/** Explains at a start that a file of the data directory cannot be written. @returns undefined if the error has another cause */
export const explainWrite = (dataDir: string, thrown: unknown): UserError | undefined => {
  if (thrown instanceof UserError || !(thrown instanceof Error)) return undefined
  const { syscall, path } = thrown as NodeJS.ErrnoException
  // A full disk is found while a file is written, whose path Node does not tell then.
  return writing.has(syscall) && (path ?? dataDir).startsWith(dataDir) ? cannotWrite(dataDir, thrown) : undefined
}

/**
 * Locks a data directory for this process. A lock whose process is no longer running is replaced.
 * @throws `UserError` if another running server holds the lock, or the directory cannot be written
 */
export const lockDataDir = async (dataDir: string): Promise<{ release(): Promise<void> }> => {
  const file = join(dataDir, 'server.lock')
  const own = `${file}.${randomUUID()}`
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await writeFile(own, JSON.stringify({ pid: process.pid, ...(await identifyProcess(process.pid)) }), { mode: 0o600 })
  } catch (thrown) {
    await rm(own, { force: true }).catch(() => {})
    throw cannotWrite(dataDir, thrown)
  }
  try {
    while (!(await createLink(own, file))) await removeStaleLock(file, own, dataDir)
    return { release: () => rm(file, { force: true }) }
  } finally {
    await rm(own, { force: true })
  }
}

const takeoverMaxMs = 10_000

// Of several processes that find a stale lock, only one may remove it: the holder of `server.lock.takeover`. Otherwise
// a slow process could remove the lock that a faster one has just acquired.
const removeStaleLock = async (file: string, own: string, dataDir: string): Promise<void> => {
  const takeover = `${file}.takeover`
  if (!(await createLink(own, takeover))) {
    const { ctimeMs } = await stat(takeover).catch(() => ({ ctimeMs: Infinity }))
    if (Date.now() - ctimeMs > takeoverMaxMs) await rm(takeover, { force: true })
    await sleep(20)
    return
  }
  try {
    const pid = await runningHolderPid(await readFile(file, 'utf8'))
    if (pid !== undefined)
      throw new UserError(`Another server (process ${pid}) is using ${dataDir}. Stop it, or set RELAY_DATA_DIR to another directory.`)
    await rm(file)
  } catch (thrown) {
    // ENOENT: the lock was released in the meantime.
    if (codeOf(thrown) !== 'ENOENT') throw thrown
  } finally {
    await rm(takeover, { force: true })
  }
}
