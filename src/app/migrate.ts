import type { Config } from '../config/config.ts'
import { migrateAlone, refuseTooNew } from '../db/migrations.ts'
import { requireServer } from '../db/require-server.ts'
import { withDatabase } from '../db/with-database.ts'
import { findTemporalServer } from '../temporal-server/find-programs.ts'
import { prepareSchemas } from '../temporal-server/schemas.ts'
import { registerSearchAttributes } from '../temporal/search-attributes.ts'

export interface MigrationResult {
  /** Names of the migrations applied now. */
  applied: string[]
  /** Reason why the search attributes could not be registered. The relay runs without them. */
  searchAttributesError: string | undefined
  /** Version of Temporal whose schemas were prepared. `relay server` registers the search attributes when it starts this Temporal. */
  temporalVersion?: string
}

/**
 * `relay migrate`: applies pending migrations and registers the search attributes in Temporal. With RELAY_TEMPORAL=local it prepares the schemas
 * of Temporal, unless this Temporal runs.
 * @param say is told of a build of Temporal, which takes minutes
 * @param onWait is told once if Temporal is waited for: why, and for how long at most
 */
export const migrateAll = async (
  config: Config,
  onWait?: (problem: string, maxMs: number) => void,
  say: (line: string) => void = () => {},
): Promise<MigrationResult> => {
  await withDatabase(config, 'migrate', async (db) => {
    await requireServer(db, config)
    await refuseTooNew(db)
  })
  const isLocal = config.RELAY_TEMPORAL === 'local' && config.temporal.connectionOptions.address === undefined
  // First, because Temporal may refuse the database, in which nothing is changed then.
  const temporalVersion = isLocal ? await prepareSchemas(config, await findTemporalServer({ config, say })) : undefined
  const applied = await withDatabase(config, 'migrate', migrateAlone)
  if (temporalVersion !== undefined) return { applied, searchAttributesError: undefined, temporalVersion }
  return { applied, searchAttributesError: await registerSearchAttributes(config, onWait) }
}
