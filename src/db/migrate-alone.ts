import { setTimeout as delay } from 'node:timers/promises'
import { UserError } from '../base/errors.ts'
import { isLockTimeout, isLostRace, type Database } from './database.ts'
import { migrate, migrationSource } from './migrations.ts'

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
    // The lock of knex stays behind if its process is killed, and would refuse every further migration. Whoever left it is gone.
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
