import { Client } from 'pg'
import { UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'

/** The schemas of Temporal in the relay's database, by their names in Temporal's schema tool. */
export const schemas = { temporal: 'postgresql/v12/temporal', temporal_visibility: 'postgresql/v12/visibility' }

export type SchemaName = keyof typeof schemas

/** How Temporal reaches the relay's database, in its own words. */
export interface Store {
  host: string
  port: string
  user: string
  password: string
  database: string
  attributes: Record<string, string>
}

const pgxTlsFiles = ['sslrootcert', 'sslcert', 'sslkey']
const sqlPlugin = 'postgres12_pgx'

/**
 * Returns where Temporal keeps its state: in the database of DATABASE_URL.
 * @throws `UserError` if there is none, or a pooler is in front of it
 */
export const storeOf = ({ DATABASE_URL: url, DATABASE_TRANSACTION_POOLING: isPooled }: StoreConfig): Store => {
  if (!url) throw new UserError('RELAY_TEMPORAL=local needs DATABASE_URL: Temporal keeps its state in the same database.')
  if (isPooled)
    throw new UserError(
      'RELAY_TEMPORAL=local does not work with DATABASE_TRANSACTION_POOLING: Temporal needs sessions. Let DATABASE_URL lead to PostgreSQL itself.',
    )
  // What `pg` makes of the URL, and of the PG* variables.
  const { host, port, user, password, database, ssl } = new Client({ connectionString: url }) as Client & {
    ssl: false | { rejectUnauthorized?: boolean }
  }
  const parameters = URL.canParse(url) ? new URL(url).searchParams : new URLSearchParams()
  const isSocket = host.startsWith('/')
  const attributes = {
    sslmode: ssl && !isSocket ? (ssl.rejectUnauthorized === false ? 'require' : 'verify-full') : 'disable',
    application_name: 'relay temporal',
    ...(isSocket && { host, port: String(port) }),
    // Temporal puts a plus sign for a blank of a password in front of @, where it means itself.
    ...(password?.includes(' ') && { password }),
    ...Object.fromEntries(pgxTlsFiles.flatMap((name) => (parameters.has(name) ? [[name, parameters.get(name)!] as const] : []))),
  }
  return {
    host: isSocket ? '127.0.0.1' : host.replaceAll(/[[\]]/g, ''),
    port: String(port),
    // Temporal puts both into a URL as they are.
    user: encodeURIComponent(user ?? ''),
    database: encodeURIComponent(database ?? ''),
    password: password ?? '',
    attributes,
  }
}

export type StoreConfig = Pick<Config, 'DATABASE_URL' | 'DATABASE_TRANSACTION_POOLING'>

/** Returns a store of the server's configuration. */
export const datastore = ({ host, port, user, password, database, attributes }: Store, schema: SchemaName, maxConns: number) => ({
  sql: {
    pluginName: sqlPlugin,
    databaseName: database,
    connectAddr: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    connectProtocol: 'tcp',
    user,
    password,
    connectAttributes: { ...attributes, search_path: schema },
    maxConns,
    maxIdleConns: maxConns,
    maxConnLifetime: '1h',
  },
})

/** Returns the variables with which Temporal's schema tool finds a schema. They keep the password out of its command line. */
export const toolVariables = ({ host, port, user, password, database, attributes }: Store, schema: SchemaName): Record<string, string> => ({
  SQL_PLUGIN: sqlPlugin,
  SQL_HOST: host.includes(':') ? `[${host}]` : host,
  SQL_PORT: port,
  SQL_USER: user,
  SQL_PASSWORD: password,
  SQL_DATABASE: database,
  SQL_CONNECT_ATTRIBUTES: new URLSearchParams({ ...attributes, search_path: schema }).toString(),
})
