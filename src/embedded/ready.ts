import { readFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

const readyFile = z.object({
  base_url: z.string(),
  temporal_address: z.string(),
  temporal_ui_url: z.string().nullable(),
  database_url: z.string(),
  pid: z.number().int().positive(),
})

/** What a running server tells others: how to reach it and what it runs on. Holds the database's password, hence mode 0600. */
export type Ready = z.output<typeof readyFile>

const pathIn = (dataDir: string) => join(dataDir, 'ready.json')

/** Whoever waits for the file never sees half of it. */
export const writeReady = async (dataDir: string, ready: Ready): Promise<void> => {
  const temporary = `${pathIn(dataDir)}.${process.pid}`
  await writeFile(temporary, `${JSON.stringify(readyFile.parse(ready), undefined, 2)}\n`, { mode: 0o600 })
  await rename(temporary, pathIn(dataDir))
}

/** What the server on this data directory wrote; undefined where there is none, or a crash has left the file behind. */
export const readReady = (dataDir: string): Ready | undefined => {
  try {
    const ready = readyFile.parse(JSON.parse(readFileSync(pathIn(dataDir), 'utf8')))
    return isRunning(ready.pid) ? ready : undefined
  } catch {
    return undefined
  }
}

export const removeReady = (dataDir: string): Promise<void> => rm(pathIn(dataDir), { force: true })

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (thrown) {
    // it lives, and belongs to another user
    return (thrown as NodeJS.ErrnoException).code === 'EPERM'
  }
}
