import type { Config } from '../config/config.ts'
import { migrateAlone } from '../db/migrations.ts'
import { requireServer } from '../db/require-server.ts'
import { withDatabase } from '../db/with-database.ts'
import { registerSearchAttributes } from '../temporal/search-attributes.ts'

export interface MigrationResult {
  /** Names of the migrations applied now. */
  applied: string[]
  /** Reason why the search attributes could not be registered. The relay runs without them. */
  searchAttributesError: string | undefined
}

/**
 * `relay migrate`: applies pending migrations and registers the search attributes in Temporal.
 * @param onWait is told once if Temporal is waited for: why, and for how long at most
 */
export const migrateAll = async (config: Config, onWait?: (problem: string, maxMs: number) => void): Promise<MigrationResult> => {
  const applied = await withDatabase(config, 'migrate', async (db) => {
    await requireServer(db, config)
    return migrateAlone(db)
  })
  return { applied, searchAttributesError: await registerSearchAttributes(config, onWait) }
}
