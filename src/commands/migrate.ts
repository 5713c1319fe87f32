import type { Config } from '../config.ts'
import { migrate } from '../db/migrations.ts'
import { registerSearchAttributes } from '../temporal/search-attributes.ts'
import { withDatabase } from './with-database.ts'

export interface MigrationResult {
  /** Names of the migrations applied now. */
  applied: string[]
  /** Reason why the search attributes could not be registered. The relay runs without them. */
  searchAttributesError: string | undefined
}

/** `relay migrate`: applies pending migrations and registers the search attributes in Temporal. */
export const migrateAll = async (config: Config): Promise<MigrationResult> => {
  const applied = await withDatabase(config, 'migrate', migrate)
  return { applied, searchAttributesError: await registerSearchAttributes(config) }
}
