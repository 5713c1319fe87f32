import { DatabaseError } from 'pg'

// What an error of the database means.

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

/** The relay got no connection to PostgreSQL in time. Its message says why. */
export class DatabaseUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DatabaseUnavailable'
  }
}

/** Returns true if the database is unavailable and the caller may try again later; false if the statement was wrong. */
export const isOutage = (thrown: unknown): boolean => {
  if (!(thrown instanceof Error)) return false
  if (thrown instanceof AggregateError) return thrown.errors.some(isOutage)
  if ('code' in thrown && typeof thrown.code === 'string' && (outage.test(thrown.code) || outageCodes.has(thrown.code))) return true
  return thrown instanceof DatabaseUnavailable || lostConnection.test(thrown.message)
}

// Class 28: the role may not sign in; 3D: there is no such database.
const connectionRefusal = /^(28|3D)/

/** Returns true if the server refused the connection, for a reason that DATABASE_URL or the server has to mend. */
export const isConnectionRefused = (thrown: unknown): boolean =>
  (thrown instanceof DatabaseError && connectionRefusal.test(thrown.code ?? '')) ||
  (thrown instanceof Error && thrown.message.includes('does not support SSL'))

/** Returns true if the server has refused a statement by itself: nothing of it is committed, and the caller may try something else. */
export const isRefused = (thrown: unknown): boolean => thrown instanceof DatabaseError && !isOutage(thrown)
