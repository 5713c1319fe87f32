import knex, { type Knex } from 'knex'
import { types, type Client, type QueryConfig } from 'pg'
import { UserError } from '../base/errors.ts'
import { logFailure, noteStatement } from '../base/failure-log.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import { DatabaseUnavailable } from './errors.ts'
import { createSilenceWatch } from './silence.ts'

export type Database = Knex
export type Transaction = Knex.Transaction

// bigint is read as a number: sizes and counts stay far below 2^53.
types.setTypeParser(types.builtins.INT8, Number)

type DatabaseConfig = Pick<
  Config,
  'DATABASE_URL' | 'DATABASE_POOL_MAX_CONNECTIONS' | 'DATABASE_STATEMENT_TIMEOUT_MS' | 'DATABASE_TRANSACTION_POOLING'
> & {
  RELAY_DATA_DIR?: string
  acquireTimeoutMs?: number
  idleInTransactionMaxMs?: number
  /** True if statements answer requests: they fail within 5 seconds if PostgreSQL is silent. */
  answersRequests?: boolean
}

// Opening a connection costs as much as 40 queries.
const idleTimeoutMs = 600_000
// A request that waits longer for a connection is answered 503.
export const acquireTimeoutMs = 5_000
// PostgreSQL ends a transaction in which the relay does nothing for this time. Nothing but the database may be waited for in a transaction:
// each holds a connection of the pool, and the events of all workspaces that are written after it began.
const idleInTransactionMaxMs = 30_000

/**
 * Finds out whether a pooler prepares the statements of a connection in each session that executes them, as PgBouncer 1.21 and later do with
 * `max_prepared_statements`. Such a pooler gives them names of its own, so the session does not know the name of a statement that it executes.
 */
const preparesInSessions = async (connection: Client): Promise<boolean> => {
  // Another connection may have been here with an older pooler.
  const name = `relay probe ${newId()}`
  await connection.query('begin')
  const { rows } = await connection.query<{ known: boolean }>({
    name,
    text: 'select exists (select from pg_prepared_statements where name = $1) as known',
    values: [name],
  })
  const isKnown = rows[0]!.known
  if (isKnown) await connection.query(`deallocate "${name}"`)
  await connection.query('commit')
  return !isKnown
}

/**
 * Lets a connection run statements without preparing them by their names: an older pooler runs the next execution of a statement in another
 * session, where it has not been prepared, or has been by another connection.
 */
const runUnprepared = (connection: Client): void => {
  const query = connection.query.bind(connection) as (statement: unknown, ...rest: unknown[]) => unknown
  const queryUnnamed = (statement: unknown, ...rest: unknown[]) =>
    query(isNamed(statement) ? { ...statement, name: undefined } : statement, ...rest)
  Object.assign(connection, { query: queryUnnamed })
}

/**
 * Prepares a connection through a pooler with transaction pooling, which refuses settings of a session, or ignores them. A transaction sets
 * what ends it in the statement that begins it.
 */
const setUpPooled = async (connection: Client, idleMaxMs: number): Promise<void> => {
  if (!(await preparesInSessions(connection))) runUnprepared(connection)
  const query = connection.query.bind(connection) as (statement: unknown, ...rest: unknown[]) => unknown
  const limited = (statement: unknown): unknown => {
    const text = typeof statement === 'string' ? statement : (statement as { text?: unknown }).text
    if (typeof text !== 'string' || !transactionBegin.test(text)) return statement
    return `${text.replace(/;$/, '')}; set local idle_in_transaction_session_timeout = ${idleMaxMs}`
  }
  Object.assign(connection, { query: (statement: unknown, ...rest: unknown[]) => query(limited(statement), ...rest) })
}

const transactionBegin = /^begin\b[^;]*;?$/i

const isNamed = (statement: unknown): statement is QueryConfig =>
  typeof statement === 'object' && statement !== null && 'name' in statement && 'text' in statement

/** An idle connection is checked by the kernel after this time, and then once a second, ten times (libuv sets both numbers). */
const keepAliveMs = 10_000

/** Rows that one insert of many has: a statement has at most 65,535 parameters. */
export const rowsPerInsert = 1_000

/** What knex has and its types do not tell. */
export interface PoolClient {
  pool: { max: number; numPendingCreates(): number; numUsed(): number }
  acquireConnection(): Promise<Client>
  releaseConnection(connection: Client): Promise<void>
}

/** Says in words of the relay why no connection could be borrowed. */
const explainWait = (thrown: unknown, { pool }: PoolClient, timeoutMs: number): unknown => {
  if (!(thrown instanceof Error) || thrown.name !== 'KnexTimeoutError') return thrown
  const message =
    pool.numUsed() >= pool.max
      ? `all ${pool.max} database connections of this process are in use, and none became free within ${timeoutMs} ms`
      : `PostgreSQL has not accepted a connection within ${timeoutMs} ms`
  return new DatabaseUnavailable(message, { cause: thrown.cause })
}

/**
 * Opens the connection pool. It connects at the first query, and replaces a lost connection at the next query.
 * @param name shown in PostgreSQL's `application_name`
 * @throws `UserError` if DATABASE_URL is not set
 */
export const openDatabase = (config: DatabaseConfig, name: string, log?: Log): Database => {
  if (!config.DATABASE_URL) {
    throw new UserError(
      `DATABASE_URL is not set, and no script/server runs on the data directory ${config.RELAY_DATA_DIR}. Set DATABASE_URL, name a file that has it with --env-file, or start script/server.`,
    )
  }
  const { DATABASE_TRANSACTION_POOLING: isPooled } = config
  const timeoutMs = config.acquireTimeoutMs ?? acquireTimeoutMs
  const silence = createSilenceWatch({
    statementTimeoutMs: config.DATABASE_STATEMENT_TIMEOUT_MS,
    ...(config.answersRequests && { askWith: { connectionString: config.DATABASE_URL, application_name: `relay ${name}` } }),
    knowsSessions: !isPooled,
  })
  const db = knex({
    client: 'pg',
    // Any that the relay supports: knex would ask on the first connection, before anything limits the question.
    version: '15',
    connection: {
      connectionString: config.DATABASE_URL,
      application_name: `relay ${name}`,
      ...(!isPooled && { statement_timeout: config.DATABASE_STATEMENT_TIMEOUT_MS }),
      connectionTimeoutMillis: timeoutMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
    } as Knex.PgConnectionConfig,
    pool: {
      min: 0,
      max: config.DATABASE_POOL_MAX_CONNECTIONS,
      idleTimeoutMillis: idleTimeoutMs,
      afterCreate: (connection: Client, done: (error: Error | undefined, connection: Client) => void) => {
        silence.watch(connection)
        const idleMaxMs = config.idleInTransactionMaxMs ?? idleInTransactionMaxMs
        if (isPooled) {
          void setUpPooled(connection, idleMaxMs).then(
            () => done(undefined, connection),
            (error: Error) => done(error, connection),
          )
          return
        }
        // Statements read few rows of large tables. Where PostgreSQL expects more, it compiles them, which takes longer than they do.
        const settings = `set jit = off; set idle_in_transaction_session_timeout = ${idleMaxMs}`
        connection.query(settings, (error: Error | undefined) => done(error, connection))
      },
    },
    acquireConnectionTimeout: timeoutMs,
    // Errors are logged, and the values of a statement must not reach the log.
    compileSqlOnError: false,
    // By default knex writes to the console.
    log: {
      warn: (message: unknown) => {
        // The caller that wanted the connection gets the error, and logs it.
        if (log && !String(message).startsWith('Acquire connection error')) logFailure(log, message, 'database driver warning')
      },
      error: (message: unknown) => {
        if (log) logFailure(log, message, 'database driver error')
      },
      deprecate: () => {},
      debug: () => {},
    },
  })
  db.on('query-error', (error: Error, { sql }: { sql: string }) => noteStatement(error, sql))
  const client = db.client as PoolClient
  const [borrow, giveBack] = [client.acquireConnection.bind(client), client.releaseConnection.bind(client)]
  client.acquireConnection = () =>
    silence.whileAnswering(borrow, giveBack).catch((thrown: unknown) => {
      throw explainWait(thrown, client, timeoutMs)
    })
  return db
}

const parameter = /(?<!:):([A-Za-z]\w*)/g

/** Replaces `:name` by `$1`, `$2`, ...: the same name by the same number. A cast like `::text` is left alone. */
export const numberParameters = (sql: string): { text: string; names: string[] } => {
  const names: string[] = []
  const text = sql.replaceAll(parameter, (_, name: string) => {
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  return { text, names }
}

/**
 * Creates a statement with parameters like `:documentId` that PostgreSQL parses and plans once per connection, and not at each execution.
 * knex would look for the parameters at each execution as well, and send one that occurs twice two times.
 * @param name identifies the statement within a connection
 */
export const createStatement = <Row>(name: string, sql: string) => {
  const { text, names } = numberParameters(sql)
  // knex replaces question marks.
  if (text.includes('?')) throw new TypeError(`the statement ${name} contains a question mark`)
  return async (db: Database | Transaction, values: Record<string, unknown>): Promise<Row[]> => {
    const missing = names.find((parameterName) => values[parameterName] === undefined)
    if (missing !== undefined) throw new TypeError(`the statement ${name} lacks a value for ${missing}`)
    const { rows } = await db.raw<{ rows: Row[] }>(text).options({ name, values: names.map((parameterName) => values[parameterName]) })
    return rows
  }
}

/**
 * SQL: any of the texts of a list, for a statement that PostgreSQL plans once per connection. With the list itself, each plan for a list of one
 * text promises to be cheaper than a plan for all lists, so the statement would be planned at each execution.
 */
export const anyOf = (name: string) => `any ((select :${name}::text[])::text[])`

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
