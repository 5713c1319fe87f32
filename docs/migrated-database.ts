import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '../src/base/ids.ts'
import { createLog } from '../src/base/log.ts'
import { readConfig, type Config } from '../src/config/config.ts'
import { openDatabase, type Database } from '../src/db/database.ts'
import { migrate } from '../src/db/migrations.ts'
import { startPostgres } from '../src/dev/postgres-server.ts'

/**
 * Runs a function on a new, migrated database and removes the database afterwards. Uses the server of TEST_DATABASE_URL, or
 * starts a PostgreSQL of its own in a temporary directory, as `script/server` does: 1.3 s together with the migrations.
 */
export const withMigratedDatabase = async <T>(use: (db: Database) => Promise<T>): Promise<T> => {
  const config = readConfig()
  const serverUrl = process.env['TEST_DATABASE_URL']
  return serverUrl ? onServer(serverUrl, config, use) : onOwnServer(config, use)
}

const onOwnServer = async <T>(config: Config, use: (db: Database) => Promise<T>): Promise<T> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'relay-docs-'))
  try {
    const postgres = await startPostgres({ dataDir, config, log: createLog('warn'), say: () => {}, fast: true })
    try {
      return await onServer(postgres.adminUrl, config, use)
    } finally {
      await postgres.stop()
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

const onServer = async <T>(serverUrl: string, config: Config, use: (db: Database) => Promise<T>): Promise<T> => {
  const admin = openDatabase({ ...config, DATABASE_URL: serverUrl }, 'docs')
  const name = `docs_${newId().toLowerCase()}`
  try {
    await admin.raw('create database ??', [name])
    const url = new URL(serverUrl)
    url.pathname = `/${name}`
    const db = openDatabase({ ...config, DATABASE_URL: url.href }, 'docs')
    try {
      await migrate(db)
      return await use(db)
    } finally {
      await db.destroy()
      await admin.raw('drop database ?? with (force)', [name])
    }
  } finally {
    await admin.destroy()
  }
}
