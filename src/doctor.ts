import { allChores } from './chores.ts'
import type { Config } from './config.ts'
import { openDatabase } from './db/database.ts'
import { pendingMigrations } from './db/migrations.ts'
import { messageOf } from './errors.ts'
import { createKeyRing } from './security/seal.ts'
import { openTemporal } from './temporal/client.ts'
import { createSchedules } from './temporal/schedules.ts'

export interface Finding {
  name: string
  ok: boolean
  message: string
}

const oldestNode = [22, 18] as const
const oldestPostgres = 14

/** Looks at everything the relay needs, each by itself, and says what to do about what is not right. */
export const diagnose = async (config: Config): Promise<Finding[]> => {
  const db = openDatabase(config, 'doctor')
  const temporal = openTemporal(config)
  try {
    return await Promise.all([
      find('node', async () => {
        const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
        const fits = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])
        if (!fits) throw new Error(`${process.version} is too old: install ${oldestNode.join('.')} or newer`)
        return process.version
      }),
      find('database', async () => {
        const { rows } = await db.raw<{ rows: { version: number; name: string }[] }>(
          `select current_setting('server_version_num')::integer / 10000 as version, current_setting('server_version') as name`,
        )
        const { version = 0, name = '' } = rows[0] ?? {}
        if (version < oldestPostgres) throw new Error(`PostgreSQL ${name} is too old: ${oldestPostgres} or newer is needed`)
        return `PostgreSQL ${name}`
      }),
      find('schema', async () => {
        const pending = await pendingMigrations(db)
        if (pending.length > 0) throw new Error(`${pending.length} migrations are pending: run relay migrate`)
        return 'up to date'
      }),
      find('secret keys', async () => {
        createKeyRing(config.RELAY_SECRET_KEYS)
        return `${config.RELAY_SECRET_KEYS.length} configured`
      }),
      find('temporal', async () => {
        await temporal.ping()
        return config.temporal.connectionOptions.address ?? 'reached'
      }),
      find('search attributes', async () => {
        if (!(await temporal.hasSearchAttributes()))
          throw new Error('not registered: run relay migrate, or ask who runs the Temporal cluster')
        return 'registered'
      }),
      find('schedules', async () => {
        const missing = await createSchedules(temporal.client, temporal.connection, config).findMissing(allChores())
        if (missing.length > 0) throw new Error(`${missing.join(', ')} missing: start a relay worker, it makes them`)
        return `${allChores().length} there`
      }),
    ])
  } finally {
    await temporal.close()
    await db.destroy()
  }
}

const find = async (name: string, look: () => Promise<string>): Promise<Finding> => {
  try {
    return { name, ok: true, message: await look() }
  } catch (thrown) {
    return { name, ok: false, message: messageOf(thrown) }
  }
}
