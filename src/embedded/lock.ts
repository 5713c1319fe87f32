import { randomUUID } from 'node:crypto'
import { link, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { messageOf, UserError } from '../errors.ts'
import { identify } from './leftovers.ts'

const holder = z.object({ pid: z.number(), command: z.string(), startedAt: z.string() })

const codeOf = (thrown: unknown) => (thrown as NodeJS.ErrnoException).code

const livingHolder = async (content: string): Promise<number | undefined> => {
  try {
    const { pid, command, startedAt } = holder.parse(JSON.parse(content))
    const running = await identify(pid)
    return running?.command === command && running.startedAt === startedAt ? pid : undefined
  } catch {
    return undefined
  }
}

const linkTo = async (own: string, file: string): Promise<boolean> => {
  try {
    // a link comes into being with its content, and only where there is none
    await link(own, file)
    return true
  } catch (thrown) {
    if (codeOf(thrown) === 'EEXIST') return false
    throw thrown
  }
}

/** One server for one data directory. A lock whose process has died counts for nothing. @throws UserError where another one lives */
export const lockDataDir = async (dataDir: string): Promise<{ release(): Promise<void> }> => {
  const file = join(dataDir, 'server.lock')
  const own = `${file}.${randomUUID()}`
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await writeFile(own, JSON.stringify({ pid: process.pid, ...(await identify(process.pid)) }), { mode: 0o600 })
  } catch (thrown) {
    throw new UserError(`${dataDir} cannot be written: ${messageOf(thrown)}. Choose another RELAY_DATA_DIR.`, { cause: thrown })
  }
  try {
    while (!(await linkTo(own, file))) await removeStale(file, own, dataDir)
    return { release: () => rm(file, { force: true }) }
  } finally {
    await rm(own, { force: true })
  }
}

const takeoverMaxMs = 10_000

// of many who find a stale lock one removes it: else a slow one would remove the lock that a quick one has just got
const removeStale = async (file: string, own: string, dataDir: string): Promise<void> => {
  const takeover = `${file}.takeover`
  if (!(await linkTo(own, takeover))) {
    const { ctimeMs } = await stat(takeover).catch(() => ({ ctimeMs: Infinity }))
    if (Date.now() - ctimeMs > takeoverMaxMs) await rm(takeover, { force: true })
    await sleep(20)
    return
  }
  try {
    const pid = await livingHolder(await readFile(file, 'utf8'))
    if (pid !== undefined)
      throw new UserError(`Another server (process ${pid}) is using ${dataDir}: stop that one, or choose another RELAY_DATA_DIR.`)
    await rm(file)
  } catch (thrown) {
    // it was released in between
    if (codeOf(thrown) !== 'ENOENT') throw thrown
  } finally {
    await rm(takeover, { force: true })
  }
}
