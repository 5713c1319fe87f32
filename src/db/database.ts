import knex, { type Knex } from 'knex'
import { DatabaseError, types } from 'pg'
import type { Config } from '../config.ts'
import { UserError } from '../errors.ts'
import type { Log } from '../log.ts'

export type Database = Knex
export type Transaction = Knex.Transaction

// bigint is read as a number: sizes and counts stay far below 2^53.
types.setTypeParser(types.builtins.INT8, Number)

type DatabaseConfig = Pick<
  Config,
  | 'DATABASE_URL'
  | 'DATABASE_POOL_MAX_CONNECTIONS'
  | 'DATABASE_IDLE_TIMEOUT_MS'
  | 'DATABASE_ACQUIRE_TIMEOUT_MS'
  | 'DATABASE_STATEMENT_TIMEOUT_MS'
>

/**
 * Opens the connection pool. It connects at the first query, and replaces a lost connection at the next query.
 * @param name shown in PostgreSQL's `application_name`
 * @throws `UserError` if DATABASE_URL is not set
 */
export const openDatabase = (config: DatabaseConfig, name: string, log?: Log): Database => {
  if (!config.DATABASE_URL) throw new UserError('DATABASE_URL is not set, and no running script/server was found in RELAY_DATA_DIR')
  return knex({
    client: 'pg',
    connection: {
      connectionString: config.DATABASE_URL,
      application_name: `relay ${name}`,
      statement_timeout: config.DATABASE_STATEMENT_TIMEOUT_MS,
      connectionTimeoutMillis: config.DATABASE_ACQUIRE_TIMEOUT_MS,
      keepAlive: true,
    } as Knex.PgConnectionConfig,
    pool: { min: 0, max: config.DATABASE_POOL_MAX_CONNECTIONS, idleTimeoutMillis: config.DATABASE_IDLE_TIMEOUT_MS },
    acquireConnectionTimeout: config.DATABASE_ACQUIRE_TIMEOUT_MS,
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

const foreignKeyViolation = '23503'
const ownerConstraint = /_(workspace|repository|destination|member|api_key)_id_fkey$/

/**
 * Returns true if the owner of a new row does not exist any more. Repositories and destinations that are deleted keep their rows, so the
 * whole workspace was deleted.
 */
export const isWorkspaceGone = (thrown: unknown): boolean =>
  thrown instanceof DatabaseError && thrown.code === foreignKeyViolation && ownerConstraint.test(thrown.constraint ?? '')

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

// Class 08: connection; 53: insufficient resources; 57P: shutdown; 58: the server's disk or operating system fails.
const outage = /^(08|53|57P|58)/
const outageCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'ETIMEDOUT', 'EPIPE', 'EAI_AGAIN'])

// pg reports these errors without a code, and knex prepends the statement.
const lostConnection = /(^| - )(Connection terminated|timeout expired|Client has encountered a connection error)/

/** Returns true if the database is unavailable and the caller may try again later; false if the statement was wrong. */
export const isOutage = (thrown: unknown): boolean => {
  if (!(thrown instanceof Error)) return false
  if (thrown instanceof AggregateError) return thrown.errors.some(isOutage)
  if ('code' in thrown && typeof thrown.code === 'string' && (outage.test(thrown.code) || outageCodes.has(thrown.code))) return true
  return thrown.name === 'KnexTimeoutError' || lostConnection.test(thrown.message)
}

/** Replaces NUL and lone surrogates, which PostgreSQL cannot store, by U+FFFD. */
export const storable = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed()
