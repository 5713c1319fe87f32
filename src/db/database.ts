import knex, { type Knex } from 'knex'
import { DatabaseError, types } from 'pg'
import type { Config } from '../config.ts'
import { UserError } from '../errors.ts'
import type { Log } from '../log.ts'

export type Database = Knex
export type Transaction = Knex.Transaction

// bigint as a number: sizes and counts stay far below 2^53
types.setTypeParser(types.builtins.INT8, Number)

type DatabaseConfig = Pick<
  Config,
  | 'DATABASE_URL'
  | 'DATABASE_POOL_MAX_CONNECTIONS'
  | 'DATABASE_IDLE_TIMEOUT_MS'
  | 'DATABASE_ACQUIRE_TIMEOUT_MS'
  | 'DATABASE_STATEMENT_TIMEOUT_MS'
>

/** The pool. Connects when first asked; a lost connection is replaced by a new one at the next query. @throws UserError without an address */
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
    // an error is logged, and the values of its statement are not for the log
    compileSqlOnError: false,
    // knex would write to the console by itself
    log: {
      warn: (message: unknown) => log?.warn({ reason: String(message) }, 'the database driver warns'),
      error: (message: unknown) => log?.warn({ reason: String(message) }, 'the database driver failed'),
      deprecate: () => {},
      debug: () => {},
    },
  })
}

const uniqueViolation = '23505'

/** True where a unique constraint (of this name, if one is given) refused the row. */
export const isDuplicate = (thrown: unknown, constraint?: string): boolean =>
  thrown instanceof DatabaseError && thrown.code === uniqueViolation && (constraint === undefined || thrown.constraint === constraint)

const undefinedTable = '42P01'

/** True where a table of ours is not there: nobody has migrated this database. */
export const isSchemaMissing = (thrown: unknown): boolean => thrown instanceof DatabaseError && thrown.code === undefinedTable

// what lock_timeout answers
const lockNotAvailable = '55P03'

/** True where somebody else held a lock for longer than the statement was to wait. */
export const isLockTimeout = (thrown: unknown): boolean => thrown instanceof DatabaseError && thrown.code === lockNotAvailable

// deadlock, serialization failure
const lostRaceCodes = new Set(['40P01', '40001'])

/** True where PostgreSQL undid a transaction for the sake of another one: the same again may well succeed. */
export const isLostRace = (thrown: unknown): boolean => thrown instanceof DatabaseError && lostRaceCodes.has(thrown.code ?? '')

// class 08: connection; 53: out of resources; 57P: shut down
const outage = /^(08|53|57P)/
const outageCodes = new Set(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'ETIMEDOUT', 'EPIPE', 'EAI_AGAIN'])

// pg gives these no code, and knex puts the statement in front
const lostConnection = /(^| - )(Connection terminated|timeout expired|Client has encountered a connection error)/

/** True where the database is away, so that the caller may try again later: not where the statement was wrong. */
export const isOutage = (thrown: unknown): boolean => {
  if (!(thrown instanceof Error)) return false
  if (thrown instanceof AggregateError) return thrown.errors.some(isOutage)
  if ('code' in thrown && typeof thrown.code === 'string' && (outage.test(thrown.code) || outageCodes.has(thrown.code))) return true
  return thrown.name === 'KnexTimeoutError' || lostConnection.test(thrown.message)
}
