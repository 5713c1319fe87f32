// Files in RELAY_DATA_DIR with which a running development server lets other commands reach it: ready.json and the
// sealing key.
import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

const readyFile = z.object({
  base_url: z.string(),
  temporal_ui_url: z.string().nullable(),
  /** The variables with which the server runs: those that it was given, and those that it has set itself. */
  variables: z.record(z.string(), z.string()),
  /** Address of the probes and metrics of the API. */
  probes_url: z.string().optional(),
  /** Address of the probes and metrics of the worker. */
  worker_url: z.string().optional(),
  pid: z.number().int().positive(),
})

/** Addresses and variables of a running server. The file has mode 0600, because the variables contain passwords and keys. */
export type Ready = z.output<typeof readyFile>

const readyPath = (dataDir: string) => join(dataDir, 'ready.json')

/** Writes ready.json in one step, so that a process waiting for the file never reads a partial one. */
export const writeReady = async (dataDir: string, ready: Ready): Promise<void> => {
  const temporary = `${readyPath(dataDir)}.${process.pid}`
  await writeFile(temporary, `${JSON.stringify(readyFile.parse(ready), undefined, 2)}\n`, { mode: 0o600 })
  await rename(temporary, readyPath(dataDir))
}

/**
 * Returns the content of ready.json, or `undefined` if the file is missing, invalid, or left behind by a crashed
 * server.
 */
export const readReady = (dataDir: string): Ready | undefined => {
  try {
    const ready = readyFile.parse(JSON.parse(readFileSync(readyPath(dataDir), 'utf8')))
    return isRunning(ready.pid) ? ready : undefined
  } catch {
    return undefined
  }
}

export const removeReady = (dataDir: string): Promise<void> => rm(readyPath(dataDir), { force: true })

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (thrown) {
    // EPERM: the process runs, as another user.
    return (thrown as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const secretKeyPath = (dataDir: string) => join(dataDir, 'secret-key')

/**
 * Returns the sealing key of a data directory in the format of RELAY_SECRET_KEYS, or `undefined` if none was generated
 * yet.
 */
const readSecretKey = (dataDir: string): string | undefined => {
  try {
    return readFileSync(secretKeyPath(dataDir), 'utf8').trim()
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw thrown
  }
}

/**
 * Returns the sealing key of a data directory. The first start generates it; later starts need it to open sealed
 * credentials.
 */
export const readOrCreateSecretKey = (dataDir: string): string => {
  const existing = readSecretKey(dataDir)
  if (existing !== undefined) return existing
  const entry = `local:${randomBytes(32).toString('base64')}`
  writeFileSync(secretKeyPath(dataDir), `${entry}\n`, { mode: 0o600, flag: 'wx' })
  return entry
}
