import { UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import { openDatabase, type Database } from './database.ts'
import { isSchemaMissing } from './errors.ts'
import { explainServer } from './require-server.ts'

/**
 * Opens the database for one piece of work and closes it afterwards.
 * @param name shown by PostgreSQL as part of the application name
 * @throws `UserError` if the database has not been migrated yet, or if the relay cannot work with its server
 */
export const withDatabase = async <T>(config: Config, name: string, work: (db: Database) => Promise<T>): Promise<T> => {
  const db = openDatabase(config, name)
  try {
    return await work(db)
  } catch (thrown) {
    if (isSchemaMissing(thrown)) throw new UserError('The database has no schema yet. Run: relay migrate', { cause: thrown })
    throw explainServer(thrown) ?? thrown
  } finally {
    await db.destroy()
  }
}
