import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { Database } from '../db/database.ts'
import type { Ready } from '../programs/data-dir.ts'

/** Creates the parts of the process that a verb uses. Each is loaded when a verb asks for it. */
export const createContext = (variables: NodeJS.ProcessEnv) => {
  /** Reads the configuration: that of the server that runs on RELAY_DATA_DIR, and what the environment adds. */
  const config = async (): Promise<Config> => {
    const { readConfig } = await import('../config/config.ts')
    return readConfig(withServer(variables, await readServer(variables)))
  }
  return {
    variables,
    config,
    /** Returns the address of the relay for people: RELAY_BASE_URL, or where the running server listens. Undefined if it is unknown. */
    baseUrl: async (): Promise<string | undefined> => (await config()).RELAY_BASE_URL ?? (await readServer(variables))?.base_url,
    /** Opens the database for one piece of work. */
    inDatabase: async <T>(work: (db: Database, config: Config) => Promise<T>): Promise<T> => {
      const [settings, { withDatabase }] = [await config(), await import('../db/with-database.ts')]
      return withDatabase(settings, 'cli', (db) => work(db, settings))
    },
    openLog: async ({ RELAY_LOG_LEVEL, RELAY_LOG_FORMAT = 'json' }: Config): Promise<Log> => {
      const { openLog } = await import('../base/log.ts')
      return openLog(RELAY_LOG_LEVEL, RELAY_LOG_FORMAT)
    },
  }
}

export type CommandContext = ReturnType<typeof createContext>

/**
 * Reads what the server that runs on RELAY_DATA_DIR has left. @returns undefined if there is none, or if DATABASE_URL is set and the server has
 * not started Temporal on it
 */
const readServer = async (variables: NodeJS.ProcessEnv): Promise<Ready | undefined> => {
  if (variables['DATABASE_URL'] && variables['RELAY_TEMPORAL'] !== 'local') return undefined
  const [{ readConfig }, { readReady }] = await Promise.all([import('../config/config.ts'), import('../programs/data-dir.ts')])
  return readReady(readConfig(variables).RELAY_DATA_DIR)
}

/**
 * Adds the variables of a running server. A variable of this environment keeps its value, but for the addresses: the server knows those of
 * what it has started.
 */
const withServer = (variables: NodeJS.ProcessEnv, server: Ready | undefined): NodeJS.ProcessEnv => {
  if (!server) return variables
  const { DATABASE_URL, TEMPORAL_ADDRESS } = server.variables
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value))
  return { ...server.variables, ...given, DATABASE_URL, TEMPORAL_ADDRESS }
}
