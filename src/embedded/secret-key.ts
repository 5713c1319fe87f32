import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const fileIn = (dataDir: string) => join(dataDir, 'secret-key')

/** The sealing key of this data directory, as RELAY_SECRET_KEYS takes it; undefined where none has been made. */
export const readSecretKey = (dataDir: string): string | undefined => {
  try {
    return readFileSync(fileIn(dataDir), 'utf8').trim()
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw thrown
  }
}

/** The same, made at the first start: without it the credentials in that directory's database stay closed. */
export const keepSecretKey = (dataDir: string): string => {
  const kept = readSecretKey(dataDir)
  if (kept !== undefined) return kept
  const entry = `local:${randomBytes(32).toString('base64')}`
  writeFileSync(fileIn(dataDir), `${entry}\n`, { mode: 0o600, flag: 'wx' })
  return entry
}
