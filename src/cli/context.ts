import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'

/** Parts of the process that a verb uses. Each is loaded when a verb asks for it. */
export interface CommandContext {
  variables: NodeJS.ProcessEnv
  /** Reads the configuration: that of the server that runs on RELAY_DATA_DIR, and what the environment adds. */
  config(): Promise<Config>
  /** Opens the database for one piece of work. */
  inDatabase<T>(work: (db: Database, config: Config) => Promise<T>): Promise<T>
  openLog(config: Config): Promise<Log>
}

export const createContext = (variables: NodeJS.ProcessEnv): CommandContext => {
  const config = async () => {
    const { readConfig } = await import('../config/config.ts')
    return readConfig(await withRunningServer(variables))
  }
  return {
    variables,
    config,
    inDatabase: async (work) => {
      const [settings, { withDatabase }] = [await config(), await import('../db/with-database.ts')]
      return withDatabase(settings, 'cli', (db) => work(db, settings))
    },
    openLog: async ({ RELAY_LOG_LEVEL, RELAY_LOG_FORMAT = 'json' }) => {
      const { openLog } = await import('../base/log.ts')
      return openLog(RELAY_LOG_LEVEL, RELAY_LOG_FORMAT)
    },
  }
}

/**
 * Adds the variables of the server that runs on RELAY_DATA_DIR, unless DATABASE_URL is set. A variable of this environment keeps its value,
 * but for the addresses: the server knows those of what it has started.
 */
const withRunningServer = async (variables: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> => {
  if (variables['DATABASE_URL']) return variables
  const [{ readConfig }, { readReady }] = await Promise.all([import('../config/config.ts'), import('../dev/data-dir.ts')])
  const ready = readReady(readConfig(variables).RELAY_DATA_DIR)
  if (!ready) return variables
  const { DATABASE_URL, TEMPORAL_ADDRESS } = ready.variables
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value))
  return { ...ready.variables, ...given, DATABASE_URL, TEMPORAL_ADDRESS }
}
