import type { Client } from 'pg'
import { acquireTimeoutMs, type Database, type PoolClient } from './database.ts'
import { DatabaseUnavailable } from './errors.ts'

// Share of the pool that all but source systems may use at a time, in a process that serves source systems.
const shareOfAll = 0.6

/** Returns how many connections of a pool everybody but the source systems may use: at least one, and not all of several. */
export const shareSizeOf = ({ DATABASE_POOL_MAX_CONNECTIONS: max }: { DATABASE_POOL_MAX_CONNECTIONS: number }): number =>
  Math.max(1, Math.floor(max * shareOfAll))

/**
 * Returns the same database, of whose pool it borrows at most so many connections at a time. A statement that needs another one waits in
 * the order of arrival.
 * @param waitMaxMs after which the statement fails with `DatabaseUnavailable`
 */
export const shareOf = (db: Database, maxConnections: number, waitMaxMs = acquireTimeoutMs): Database => {
  // knex documents this as the way to a second instance on the pool of the first.
  const share = db.withUserParams({}) as Database
  // A listener of the database is told of the statements of its shares.
  for (const event of ['start', 'query', 'query-error', 'query-response']) {
    share.removeAllListeners(event)
    share.on(event, (...told: unknown[]) => db.emit(event, ...told))
  }
  const pool = db.client as PoolClient
  const line = new Set<() => void>()
  let used = 0

  const enter = (): Promise<void> => {
    if (used < maxConnections) {
      used += 1
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const proceed = () => {
        clearTimeout(timer)
        line.delete(proceed)
        resolve()
      }
      const timer = setTimeout(() => {
        line.delete(proceed)
        reject(
          new DatabaseUnavailable(
            `the ${maxConnections} database connections of the API are in use, and none became free within ${waitMaxMs} ms`,
          ),
        )
      }, waitMaxMs)
      line.add(proceed)
    })
  }

  /** Gives the place to the next one, if there is one. */
  const leave = () => {
    const [next] = line
    if (next) next()
    else used -= 1
  }

  Object.assign(share.client as PoolClient, {
    acquireConnection: async () => {
      await enter()
      try {
        return await pool.acquireConnection()
      } catch (thrown) {
        leave()
        throw thrown
      }
    },
    releaseConnection: (connection: Client) => {
      leave()
      return pool.releaseConnection(connection)
    },
  } satisfies Partial<PoolClient>)
  return share
}
