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

const sqlPlugin = 'postgres12_pgx'

/** What `pg` makes of the URL and of the PG* variables: the same as for the connections of the relay. */
interface Parsed {
  host: string
  port: number
  user: string | undefined
  password: string | null | undefined
  database: string | undefined
  ssl: boolean | { rejectUnauthorized?: boolean; checkServerIdentity?: unknown }
  connectionParameters: { options?: string; sslnegotiation?: string }
}

/** Returns the parameters of a URL, which may lack a host, and of nothing else that `pg` takes. */
const parametersOf = (url: string): URLSearchParams => new URLSearchParams(/\?([^#]*)/.exec(url)?.[1])

/** Returns how pgx verifies what `pg` verifies: nothing, the certificate, or the certificate and the name of the host. */
const tlsAttributes = ({ host, ssl }: Parsed, parameters: URLSearchParams): Record<string, string> => {
  if (!ssl || host.startsWith('/')) return { sslmode: 'disable' }
  const { rejectUnauthorized = true, checkServerIdentity } = ssl === true ? {} : ssl
  const sslmode = !rejectUnauthorized ? 'require' : checkServerIdentity ? 'verify-ca' : 'verify-full'
  // With a root certificate, pgx would verify it also for `require`.
  const names = sslmode === 'require' ? ['sslcert', 'sslkey'] : ['sslrootcert', 'sslcert', 'sslkey']
  return { sslmode, ...Object.fromEntries(names.flatMap((name) => (parameters.get(name) ? [[name, parameters.get(name)!]] : []))) }
}

/**
 * Returns where Temporal keeps its state: in the database of DATABASE_URL.
 * @throws `UserError` if there is none, a pooler is in front of it, or Temporal cannot reach it as the relay does
 */
export const storeOf = ({ DATABASE_URL: url, DATABASE_TRANSACTION_POOLING: isPooled }: StoreConfig): Store => {
  if (!url) throw new UserError('RELAY_TEMPORAL=local needs DATABASE_URL: Temporal keeps its state in the same database.')
  if (isPooled)
    throw new UserError(
      'RELAY_TEMPORAL=local does not work with DATABASE_TRANSACTION_POOLING: Temporal needs sessions. Let DATABASE_URL lead to PostgreSQL itself.',
    )
  const parsed = new Client({ connectionString: url }) as Client & Parsed
  const { host, port, user, database, connectionParameters } = parsed
  const password = parsed.password ?? ''
  const parameters = parametersOf(url)
  const attributes = {
    ...tlsAttributes(parsed, parameters),
    application_name: 'relay temporal',
    ...(host.startsWith('/') && { host, port: String(port) }),
    // Temporal puts a plus sign for a blank of a password in front of @, where it means itself.
    ...(password.includes(' ') && { password }),
    ...(connectionParameters.options && { options: connectionParameters.options }),
    ...(connectionParameters.sslnegotiation && { sslnegotiation: connectionParameters.sslnegotiation }),
  }
  // Temporal removes the blanks around an attribute.
  const lost = Object.entries(attributes).find(([, value]) => value !== value.trim())?.[0]
  if (lost !== undefined)
    throw new UserError(`RELAY_TEMPORAL=local does not work with a blank at the beginning or end of the ${lost} in DATABASE_URL.`)
  return {
    host: host.startsWith('/') ? '127.0.0.1' : host.replaceAll(/[[\]]/g, ''),
    port: String(port),
    // Temporal puts both into a URL as they are.
    user: encodeURIComponent(user ?? ''),
    database: encodeURIComponent(database ?? ''),
    password,
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
