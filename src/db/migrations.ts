import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import { UserError } from '../base/errors.ts'
import { version } from '../base/version.ts'
import type { Database } from './database.ts'
import { isLockTimeout, isLostRace, isSchemaMissing } from './errors.ts'
import { ensureInstallation } from './installation.ts'
import { ensurePartitions } from './partitions.ts'

const directory = new URL('../../migrations/', import.meta.url)

/** The files of `migrations/`, which the build copies. The name of a migration is that of its file without the extension. */
export const migrationSource: Knex.MigrationSource<{ file: string }> = {
  getMigrations: async () => {
    const files = await readdir(directory)
    const names = files.filter((file) => /^\d{4}_\w+\.sql$/.test(file)).toSorted()
    // The command line of knex prints the property file.
    return names.map((file) => ({ file }))
  },
  getMigrationName: ({ file }) => file.replace(/\.sql$/, ''),
  getMigration: async ({ file }) => {
    // knex takes a question mark for the place of a value.
    const sql = (await readFile(new URL(file, directory), 'utf8')).replaceAll('?', '\\?')
    // Migrations are forward only, and knex requires a function.
    return { up: (trx) => waitBriefly(trx).then(() => trx.raw(sql)), down: refuse }
  },
}

/**
 * Lets a migration run for as long as it takes, but not wait: everything that uses a table waits behind a migration that waits for the
 * lock of this table.
 */
const waitBriefly = (trx: Knex) => trx.raw("set local statement_timeout = 0; set local lock_timeout = '2s'")

const refuse = (): Promise<never> => Promise.reject(new Error('Migrations are forward only: restore a backup, or write another migration.'))

/**
 * Applies pending migrations, creates the partitions of the near future, and gives a new installation its id. A database that is newer is
 * left alone, so that a deployment which goes back to the former version can run its `relay migrate`.
 * @returns the names of the applied migrations
 * @throws `UserError` if the database is too new for this version
 */
export const migrate = async (db: Database): Promise<string[]> => {
  await refuseTooNew(db)
  // knex would refuse a database with migrations that this version does not contain.
  const [, applied] = (await db.migrate.latest({ migrationSource, disableMigrationsListValidation: true })) as [number, string[]]
  await ensurePartitions(db, new Date())
  await ensureInstallation(db)
  return applied
}

const pauseMs = 1_000
// Longer than a CSV export takes by default, which locks the tables that it reads.
const lockedMaxMs = 15 * 60_000

/**
 * Migrates while no other process does. A second `relay migrate` waits for the first. While the work of running processes locks a table,
 * the migration is tried again: it must not wait in front of them.
 * @returns the names of the applied migrations
 * @throws `UserError` if a table stays locked
 */
export const migrateAlone = (db: Database): Promise<string[]> =>
  db.transaction(async (lock) => {
    await lock.raw('set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0')
    await lock.raw("select pg_advisory_xact_lock(hashtextextended('relay migrate', 0))")
    // The lock of knex stays behind if its process is killed, and would refuse every further migration. The process that left it has ended.
    await db.migrate.forceFreeMigrationsLock({ migrationSource })
    const deadline = Date.now() + lockedMaxMs
    for (;;) {
      try {
        return await migrate(db)
      } catch (thrown) {
        if (!isLockTimeout(thrown) && !isLostRace(thrown)) throw thrown
        if (Date.now() > deadline) {
          throw new UserError('Other transactions lock a table for too long. Nothing was changed. End them, or repeat: relay migrate', {
            cause: thrown,
          })
        }
        await delay(pauseMs)
      }
    }
  })

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
  new Set((await migrationSource.getMigrations([])).map((migration) => migrationSource.getMigrationName(migration)))

/** A version of the relay that is too old for its database. */
export class TooOldError extends UserError {}

/** @throws `TooOldError` if the database requires a migration that this version does not contain */
export const refuseTooNew = async (db: Database): Promise<void> => {
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
