import { readdir } from 'node:fs/promises'
import type { Knex } from 'knex'
import type { Database } from './database.ts'
import { ensurePartitions } from './partitions.ts'

const directory = new URL('../../migrations/', import.meta.url)

/** Names migrations without their extension, so that a database migrated from .ts sources is the same to the compiled .js ones. */
export const migrationSource: Knex.MigrationSource<string> = {
  getMigrations: async () => {
    const files = await readdir(directory)
    return files.filter((file) => /^\d{14}_\w+\.(ts|js)$/.test(file)).toSorted()
  },
  getMigrationName: (file) => file.replace(/\.(ts|js)$/, ''),
  getMigration: (file) => import(new URL(file, directory).href) as Promise<Knex.Migration>,
}

/** Brings the schema up to date and makes the partitions of the near future. @returns the names of what was applied. */
export const migrate = async (db: Database): Promise<string[]> => {
  const [, applied] = (await db.migrate.latest({ migrationSource })) as [number, string[]]
  await ensurePartitions(db, new Date())
  return applied
}

/** The migrations that this code has and the database has not. */
export const pendingMigrations = async (db: Database): Promise<string[]> => {
  const [, pending] = (await db.migrate.list({ migrationSource })) as [unknown, string[]]
  return pending.map((file) => migrationSource.getMigrationName(file))
}
