import { readdir } from 'node:fs/promises'
import type { Knex } from 'knex'
import { UserError } from '../base/errors.ts'
import { version } from '../base/version.ts'
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
  getMigration: async (file) => {
    const { up } = (await import(new URL(file, directory).href)) as Pick<Knex.Migration, 'up'>
    // Migrations are forward only, and knex requires a function.
    return { up: (trx) => waitBriefly(trx).then(() => up(trx)), down: refuse }
  },
}

/**
 * Lets a migration run for as long as it takes, but not wait: everything that uses a table waits behind a migration that waits for the
 * lock of this table.
 */
const waitBriefly = (trx: Knex) => trx.raw("set local statement_timeout = 0; set local lock_timeout = '2s'")

const refuse = (): Promise<never> => Promise.reject(new Error('Migrations are forward only: restore a backup, or write another migration.'))

/**
 * Applies pending migrations and creates the partitions of the near future. A database that is newer is left alone, so that a deployment
 * which goes back to the former version can run its `relay migrate`.
 * @returns the names of the applied migrations
 * @throws `UserError` if the database is too new for this version
 */
export const migrate = async (db: Database): Promise<string[]> => {
  await refuseTooNew(db)
  // knex would refuse a database with migrations that this version does not contain.
  const [, applied] = (await db.migrate.latest({ migrationSource, disableMigrationsListValidation: true })) as [number, string[]]
  await ensurePartitions(db, new Date())
  return applied
}

const readNames = async (db: Database, table: 'knex_migrations' | 'required_migrations'): Promise<string[]> => {
  try {
    const { rows } = await db.raw<{ rows: { name: string }[] }>('select name from ??', [table])
    return rows.map(({ name }) => name)
  } catch (thrown) {
    if (isSchemaMissing(thrown)) return []
    throw thrown
  }
}

const ownMigrations = async (): Promise<Set<string>> =>
  new Set((await migrationSource.getMigrations([])).map((file) => migrationSource.getMigrationName(file)))

/** A version of the relay that is too old for its database. */
export class TooOldError extends UserError {}

const refuseTooNew = async (db: Database): Promise<void> => {
  const own = await ownMigrations()
  const missing = (await readNames(db, 'required_migrations')).find((name) => !own.has(name))
  if (missing !== undefined) {
    throw new TooOldError(
      `This version of the relay (${version}) is too old for the database, which requires the migration ${missing}. Use a newer version`,
    )
  }
}

/**
 * Checks that the database has every migration of this version, and that this version contains every migration that the database requires.
 * Other migrations of a newer version are accepted: they only add to the schema, and old processes go on during an upgrade. Changes
 * nothing, not even in an empty database.
 * @throws `UserError` if the database is empty, older, or too new
 */
export const requireSchema = async (db: Database): Promise<void> => {
  const applied = new Set(await readNames(db, 'knex_migrations'))
  const pending = [...(await ownMigrations())].filter((name) => !applied.has(name))
  if (pending.length > 0) {
    throw new UserError(`The database lacks ${pending.length} migrations of this version, the first is ${pending[0]}. Run: relay migrate`)
  }
  await refuseTooNew(db)
}
