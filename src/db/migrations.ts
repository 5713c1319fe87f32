import { readdir } from 'node:fs/promises'
import type { Knex } from 'knex'
import { UserError } from '../errors.ts'
import { isSchemaMissing, type Database } from './database.ts'
import { ensurePartitions } from './partitions.ts'

const directory = new URL('../../migrations/', import.meta.url)

/** Names migrations without their extension, so that a database migrated from .ts sources can be used with the compiled .js files. */
export const migrationSource: Knex.MigrationSource<string> = {
  getMigrations: async () => {
    const files = await readdir(directory)
    return files.filter((file) => /^\d{14}_\w+\.(ts|js)$/.test(file)).toSorted()
  },
  getMigrationName: (file) => file.replace(/\.(ts|js)$/, ''),
  // Migrations are forward only, and knex requires a function.
  getMigration: async (file) => ({ ...((await import(new URL(file, directory).href)) as Pick<Knex.Migration, 'up'>), down: refuse }),
}

const refuse = (): Promise<never> => Promise.reject(new Error('Migrations are forward only: restore a backup, or write another migration.'))

/** Applies pending migrations and creates the partitions of the near future. @returns the names of the applied migrations */
export const migrate = async (db: Database): Promise<string[]> => {
  const [, applied] = (await db.migrate.latest({ migrationSource })) as [number, string[]]
  await ensurePartitions(db, new Date())
  return applied
}

const readApplied = async (db: Database): Promise<Set<string>> => {
  try {
    const { rows } = await db.raw<{ rows: { name: string }[] }>('select name from knex_migrations')
    return new Set(rows.map(({ name }) => name))
  } catch (thrown) {
    if (isSchemaMissing(thrown)) return new Set()
    throw thrown
  }
}

/** Lists the migrations of this version that the database lacks. Changes nothing, not even in an empty database. */
const pendingMigrations = async (db: Database): Promise<string[]> => {
  const applied = await readApplied(db)
  const names = (await migrationSource.getMigrations([])).map((file) => migrationSource.getMigrationName(file))
  return names.filter((name) => !applied.has(name))
}

/**
 * Checks that the database has every migration of this version. A database that is newer is accepted: migrations are additive, and old
 * processes go on during an upgrade.
 * @throws `UserError` if the database is empty or older
 */
export const requireSchema = async (db: Database): Promise<void> => {
  const pending = await pendingMigrations(db)
  if (pending.length > 0) {
    throw new UserError(`The database lacks ${pending.length} migrations of this version, the first is ${pending[0]}. Run: relay migrate`)
  }
}
