import knex, { type Knex } from 'knex'
import { DatabaseError, types, type Client, type QueryConfig } from 'pg'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { createSilenceWatch, keepAliveMs } from './silence.ts'

export type Database = Knex
export type Transaction = Knex.Transaction

// bigint is read as a number: sizes and counts stay far below 2^53.
types.setTypeParser(types.builtins.INT8, Number)

type DatabaseConfig = Pick<
  Config,
  'DATABASE_URL' | 'DATABASE_POOL_MAX_CONNECTIONS' | 'DATABASE_STATEMENT_TIMEOUT_MS' | 'DATABASE_TRANSACTION_POOLING'
> & { RELAY_DATA_DIR?: string; acquireTimeoutMs?: number }

// Opening a connection costs as much as 40 queries.
const idleTimeoutMs = 600_000
// A request that waits longer for a connection is answered 503.
export const acquireTimeoutMs = 5_000

/**
 * Lets a connection run statements without preparing them by their names: a pooler runs the next execution of a statement in another
 * session, where it has not been prepared, or has been by another connection.
 */
const runUnprepared = (connection: Client): void => {
  const query = connection.query.bind(connection) as (statement: unknown, ...rest: unknown[]) => unknown
  const queryUnnamed = (statement: unknown, ...rest: unknown[]) =>
    query(isNamed(statement) ? { ...statement, name: undefined } : statement, ...rest)
  Object.assign(connection, { query: queryUnnamed })
}

const isNamed = (statement: unknown): statement is QueryConfig =>
  typeof statement === 'object' && statement !== null && 'name' in statement && 'text' in statement

/**
 * Opens the connection pool. It connects at the first query, and replaces a lost connection at the next query.
 * @param name shown in PostgreSQL's `application_name`
 * @throws `UserError` if DATABASE_URL is not set
 */
export const openDatabase = (config: DatabaseConfig, name: string, log?: Log): Database => {
  if (!config.DATABASE_URL) {
    throw new UserError(
      `DATABASE_URL is not set, and no script/server runs on the data directory ${config.RELAY_DATA_DIR}. Start script/server, or set DATABASE_URL.`,
    )
  }
  const watch = createSilenceWatch(config.DATABASE_STATEMENT_TIMEOUT_MS)
  return knex({
    client: 'pg',
    // Any that the relay supports: knex would ask on the first connection, before anything limits the question.
    version: '15',
    connection: {
      connectionString: config.DATABASE_URL,
      application_name: `relay ${name}`,
      // A pooler either refuses settings of a session, or ignores them.
      ...(!config.DATABASE_TRANSACTION_POOLING && { statement_timeout: config.DATABASE_STATEMENT_TIMEOUT_MS }),
      connectionTimeoutMillis: config.acquireTimeoutMs ?? acquireTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
    } as Knex.PgConnectionConfig,
    pool: {
      min: 0,
      max: config.DATABASE_POOL_MAX_CONNECTIONS,
      idleTimeoutMillis: idleTimeoutMs,
      afterCreate: (connection: Client, done: (error: Error | undefined, connection: Client) => void) => {
        if (config.DATABASE_TRANSACTION_POOLING) runUnprepared(connection)
        watch(connection)
        done(undefined, connection)
      },
    },
    acquireConnectionTimeout: config.acquireTimeoutMs ?? acquireTimeoutMs,
    // Errors are logged, and the values of a statement must not reach the log.
    compileSqlOnError: false,
    // By default knex writes to the console.
    log: {
      warn: (message: unknown) => log?.warn({ reason: String(message) }, 'database driver warning'),
      error: (message: unknown) => log?.warn({ reason: String(message) }, 'database driver error'),
      deprecate: () => {},
      debug: () => {},
    },
  })
}

class Rollback extends Error {
  readonly result: unknown

  constructor(result: unknown) {
    super('rolled back')
    this.result = result
  }
}

/**
 * Runs work in a transaction. The work can call `rollback(result)` to undo the transaction and to return a result instead of an error.
 */
export const inTransaction = async <Result>(
  db: Database,
  work: (trx: Transaction, rollback: (result: Result) => never) => Promise<Result>,
): Promise<Result> => {
  try {
    return await db.transaction((trx) =>
      work(trx, (result) => {
        throw new Rollback(result)
      }),
    )
  } catch (thrown) {
    if (thrown instanceof Rollback) return thrown.result as Result
    throw thrown
  }
}

const uniqueViolation = '23505'

/** Returns true if a unique constraint rejected the row, which has to be the named one if a name is given. */
export const isDuplicate = (thrown: unknown, constraint?: string): boolean =>
  thrown instanceof DatabaseError && thrown.code === uniqueViolation && (constraint === undefined || thrown.constraint === constraint)

/** Returns true if the database rejected a value (SQLSTATE classes 22 and 23): the same statement fails again. */
export const isRejectedValue = (thrown: unknown): boolean => thrown instanceof DatabaseError && /^2[23]/.test(thrown.code ?? '')

const foreignKeyViolation = '23503'
const ownerConstraint = /_(workspace|repository|destination|api_key)_id_fkey$/

/**
 * Returns true if the owner of a new row does not exist any more. Repositories and destinations that are deleted keep their rows, so the
 * whole workspace was deleted.
 */
export const isWorkspaceGone = (thrown: unknown): boolean =>
  thrown instanceof DatabaseError && thrown.code === foreignKeyViolation && ownerConstraint.test(thrown.constraint ?? '')

/** Returns true if the member that a new row refers to does not exist any more. */
export const isMemberGone = (thrown: unknown): boolean =>
  thrown instanceof DatabaseError && thrown.code === foreignKeyViolation && thrown.constraint === 'api_keys_member_id_fkey'

const undefinedTable = '42P01'

/** Returns true if a table is missing: the database has not been migrated. */
export const isSchemaMissing = (thrown: unknown): boolean => thrown instanceof DatabaseError && thrown.code === undefinedTable

// The error that lock_timeout raises.
const lockNotAvailable = '55P03'

/** Returns true if another transaction held a lock for longer than `lock_timeout`. */
export const isLockTimeout = (thrown: unknown): boolean => thrown instanceof DatabaseError && thrown.code === lockNotAvailable

// Deadlock and serialization failure.
const lostRaceCodes = new Set(['40P01', '40001'])

/** Returns true if PostgreSQL aborted a transaction in favour of another one. The same transaction may succeed if repeated. */
export const isLostRace = (thrown: unknown): boolean => thrown instanceof DatabaseError && lostRaceCodes.has(thrown.code ?? '')

const readOnlyTransaction = '25006'

/** Returns true if a statement failed because the server, or the database, is read-only. */
export const isReadOnly = (thrown: unknown): boolean => thrown instanceof DatabaseError && thrown.code === readOnlyTransaction

/** Returns true if a pooler refused a setting that the relay makes for its session. */
export const isSettingRefused = (thrown: unknown): boolean =>
  thrown instanceof DatabaseError && thrown.message.includes('unsupported startup parameter')

// Class 08: connection; 25006: read-only, as a former primary after a failover; 53: insufficient resources; 57P: shutdown; 58: the
// server's disk or operating system fails.
const outage = /^(08|25006|53|57P|58)/
const outageCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
])

// pg reports these errors without a code, and knex prepends the statement.
const lostConnection = /(^| - )(Connection terminated|timeout expired|Client has encountered a connection error)/

/** Returns true if the database is unavailable and the caller may try again later; false if the statement was wrong. */
export const isOutage = (thrown: unknown): boolean => {
  if (!(thrown instanceof Error)) return false
  if (thrown instanceof AggregateError) return thrown.errors.some(isOutage)
  if ('code' in thrown && typeof thrown.code === 'string' && (outage.test(thrown.code) || outageCodes.has(thrown.code))) return true
  return thrown.name === 'KnexTimeoutError' || lostConnection.test(thrown.message)
}

/** Returns true if the server has refused a statement by itself: nothing of it is committed, and the caller may try something else. */
export const isRefused = (thrown: unknown): boolean => thrown instanceof DatabaseError && !isOutage(thrown)

/** Replaces NUL and lone surrogates, which PostgreSQL cannot store, by U+FFFD. */
export const storable = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed()
