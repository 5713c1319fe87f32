import type { Socket } from 'node:net'
import knex, { type Knex } from 'knex'
import { types, type Client, type QueryConfig } from 'pg'
import { UserError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'

export type Database = Knex
export type Transaction = Knex.Transaction

// bigint is read as a number: sizes and counts stay far below 2^53.
types.setTypeParser(types.builtins.INT8, Number)

type DatabaseConfig = Pick<
  Config,
  'DATABASE_URL' | 'DATABASE_POOL_MAX_CONNECTIONS' | 'DATABASE_STATEMENT_TIMEOUT_MS' | 'DATABASE_TRANSACTION_POOLING'
> & { RELAY_DATA_DIR?: string; acquireTimeoutMs?: number; idleInTransactionMaxMs?: number }

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

// A path to PostgreSQL may drop every packet without closing the connection: its host is lost, or a NAT has forgotten the flow. The kernel
// reports such a connection after 15 minutes if bytes are unacknowledged, so the relay has limits of its own.

/** An idle connection is checked by the kernel after this time, and then once a second, ten times (libuv sets both numbers). */
const keepAliveMs = 10_000

// For the way of the answer after PostgreSQL has ended a statement.
const answerMs = 2_000
// For the goodbye at the end of a connection, which needs the other side.
const endMaxMs = 2_000

/** What pg has and its types do not tell. */
type OpenClient = Client & { connection: { stream: Socket } }

const socketOf = (client: Client) => (client as OpenClient).connection.stream

interface Watched {
  /** Time of `performance.now()` of the last answer. */
  answeredAt: number
  isBusy: boolean
}

/** The limits that statements set for themselves: `set local statement_timeout`, until their transaction ends. */
const ownLimit = /^set local statement_timeout = (\d+)/
const transactionEnd = /^(commit|rollback);?$/i

/**
 * Ends connections that do not answer. Each statement has the time that PostgreSQL allows it, and a little more for the answer; a statement
 * that lifts the limit of PostgreSQL for its transaction lifts this one, too.
 *
 * One connection that is silent is a reason to doubt the idle ones: those that have not answered since are ended with it. Otherwise each of
 * them would cost its next statement the whole time.
 */
const createSilenceWatch = (statementTimeoutMs: number) => {
  const connections = new Map<Client, Watched>()

  const end = (client: Client, reason: string) => socketOf(client).destroy(new Error(`Connection terminated: ${reason}`))

  const endSilent = (silent: Client, since: number, limitMs: number) => {
    end(silent, `PostgreSQL has not answered within ${limitMs} ms`)
    for (const [client, { answeredAt, isBusy }] of connections) {
      if (client !== silent && !isBusy && answeredAt < since) end(client, 'another connection is silent')
    }
  }

  /** Watches a connection from now on. */
  return (client: Client): void => {
    const watched: Watched = { answeredAt: performance.now(), isBusy: false }
    connections.set(client, watched)
    let limitMs = statementTimeoutMs
    let timer: NodeJS.Timeout | undefined

    const send = client.query.bind(client) as (statement: unknown, ...rest: unknown[]) => unknown
    const query = (statement: unknown, ...rest: unknown[]) => {
      const text = typeof statement === 'string' ? statement : (statement as { text?: unknown }).text
      if (typeof text === 'string') {
        const own = ownLimit.exec(text)?.[1]
        if (own !== undefined) limitMs = Number(own)
        else if (transactionEnd.test(text)) limitMs = statementTimeoutMs
      }
      // A connection that has ended refuses the statement, and tells nothing else.
      if (!connections.has(client)) return send(statement, ...rest)
      watched.isBusy = true
      clearTimeout(timer)
      const startedAt = performance.now()
      if (limitMs > 0) timer = setTimeout(() => endSilent(client, startedAt, limitMs + answerMs), limitMs + answerMs)
      return send(statement, ...rest)
    }
    client.on('drain', () => {
      clearTimeout(timer)
      watched.answeredAt = performance.now()
      watched.isBusy = false
    })

    const endGently = client.end.bind(client) as (...rest: unknown[]) => unknown
    const endInTime = (...rest: unknown[]) => {
      // A connection that is lost already does not end again, and need not keep the process.
      const goodbye = setTimeout(() => socketOf(client).destroy(), endMaxMs).unref()
      client.once('end', () => clearTimeout(goodbye))
      return endGently(...rest)
    }
    client.once('end', () => {
      clearTimeout(timer)
      connections.delete(client)
    })
    Object.assign(client, { query, end: endInTime })
  }
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
  const watch = createSilenceWatch(config.DATABASE_STATEMENT_TIMEOUT_MS)
  return knex({
    client: 'pg',
    // Any that the relay supports: knex would ask on the first connection, before anything limits the question.
    version: '15',
    connection: {
      connectionString: config.DATABASE_URL,
      application_name: `relay ${name}`,
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
        watch(connection)
        const idleMaxMs = config.idleInTransactionMaxMs ?? idleInTransactionMaxMs
        if (config.DATABASE_TRANSACTION_POOLING) {
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
