import type { Client } from 'pg'
import { messageOf, UserError } from '../base/errors.ts'
import type { Config } from '../config/config.ts'
import type { Database } from './database.ts'
import { isConnectionRefused, isOutage, isReadOnly, isSettingRefused } from './errors.ts'

const readOnlyMessage =
  'DATABASE_URL leads to a PostgreSQL that accepts no writes, such as a standby or a read replica. ' +
  'Let it lead to the primary server: the relay sends every statement there'

const transactionPoolingMessage =
  'DATABASE_URL leads to a pooler with transaction pooling, such as PgBouncer. Set DATABASE_TRANSACTION_POOLING=true, ' +
  'or let DATABASE_URL lead to PostgreSQL or to a pooler with session pooling'

const settingMessage =
  'DATABASE_URL leads to a pooler that does not accept statement_timeout. With transaction pooling, set DATABASE_TRANSACTION_POOLING=true. ' +
  'With session pooling, set ignore_startup_parameters = statement_timeout in PgBouncer'

// The sort orders of the schema exist for some encodings only, and names have characters of every language.
const encodingMessage = (encoding: string) =>
  `The database of DATABASE_URL has the encoding ${encoding}, and the relay needs UTF8. ` +
  "Create it with: create database relay owner relay encoding 'UTF8' template template0"

/** Explains an error that every statement causes until DATABASE_URL leads elsewhere. @returns undefined if the error has another cause */
export const explainServer = (thrown: unknown): UserError | undefined => {
  if (isReadOnly(thrown)) return new UserError(readOnlyMessage, { cause: thrown })
  if (isSettingRefused(thrown)) return new UserError(settingMessage, { cause: thrown })
  return undefined
}

/** Explains at a start why there is no connection to PostgreSQL. @returns undefined if the error has another cause */
export const explainConnection = (thrown: unknown): UserError | undefined =>
  isOutage(thrown) || isConnectionRefused(thrown)
    ? new UserError(`PostgreSQL cannot be used at DATABASE_URL: ${messageOf(thrown)}`, { cause: thrown })
    : undefined

/** Checks that the server accepts writes. @throws UserError if it does not */
export const requirePrimary = async (db: Database): Promise<void> => {
  const { rows } = await db.raw<{ rows: { isReadOnly: boolean }[] }>(
    `select pg_is_in_recovery() or current_setting('default_transaction_read_only')::boolean as "isReadOnly"`,
  )
  if (rows[0]!.isReadOnly) throw new UserError(readOnlyMessage)
}

// On a pooler with many idle sessions, two connections may get different ones by chance.
const tries = 10

/**
 * Checks that a connection keeps its session, as prepared statements need.
 * @throws UserError if it does not, and the configuration says that it does
 */
const requireSessions = async (db: Database): Promise<void> => {
  const one = (await db.client.acquireConnection()) as Client & { processID: number }
  try {
    const session = await sessionOf(one)
    // A pooler states a process id of its own at the start of a connection.
    if (session === one.processID) return
    const other = (await db.client.acquireConnection()) as Client
    try {
      for (let count = 0; count < tries; count += 1) {
        if ((await sessionOf(other)) === session || (await sessionOf(one)) !== session) throw new UserError(transactionPoolingMessage)
      }
    } finally {
      await db.client.releaseConnection(other)
    }
  } finally {
    await db.client.releaseConnection(one)
  }
}

const sessionOf = async (connection: Client): Promise<number> =>
  (await connection.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]!.pid

/**
 * Checks that the relay can work with the server of DATABASE_URL.
 * @returns warnings
 * @throws UserError if it cannot
 */
export const requireServer = async (
  db: Database,
  { DATABASE_TRANSACTION_POOLING: isPooled }: Pick<Config, 'DATABASE_TRANSACTION_POOLING'>,
): Promise<string[]> => {
  try {
    await requirePrimary(db)
    if (!isPooled) await requireSessions(db)
    const { rows } = await db.raw<{ rows: { role: string; timeout: string; encoding: string }[] }>(
      `select
        quote_ident(current_user) as role,
        current_setting('statement_timeout') as timeout,
        current_setting('server_encoding') as encoding`,
    )
    const { role, timeout, encoding } = rows[0]!
    if (encoding !== 'UTF8') throw new UserError(encodingMessage(encoding))
    if (timeout !== '0') return []
    return [
      'statement_timeout is 0, and the pooler does not let the relay set it, so a statement may run without a limit. ' +
        `Run in PostgreSQL: alter role ${role} set statement_timeout = '30s'`,
    ]
  } catch (thrown) {
    throw explainServer(thrown) ?? thrown
  }
}
