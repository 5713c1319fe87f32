import { Readable } from 'node:stream'
import { createPostgresStore } from '../../src/content/postgres.ts'
import { openDatabase } from '../../src/db/database.ts'
import { isOutage } from '../../src/db/errors.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { createRoutes } from '../support/factories.ts'
import { share } from '../support/share.ts'
import { startLossyPath } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

// The kernel would report these connections after 15 minutes: a test that passes has not waited for it.
const statementTimeoutMs = 3_000
const connections = 5

const database = share(await createTestDatabase())

/** Opens the database through a path that can go silent. */
const openThroughPath = async () => {
  const url = new URL(database.url)
  const path = await startLossyPath(Number(url.port))
  url.port = String(path.port)
  const config = {
    ...databaseConfig(url.href),
    DATABASE_STATEMENT_TIMEOUT_MS: statementTimeoutMs,
    DATABASE_POOL_MAX_CONNECTIONS: connections,
  }
  const db = openDatabase(config, 'test silence')
  return {
    path,
    db,
    openAll: () => Promise.all(Array.from({ length: connections }, () => db.raw('select pg_sleep(0.1)'))),
    [Symbol.asyncDispose]: async () => {
      await db.destroy()
      await path.stop()
    },
  }
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )

describe('a path to PostgreSQL that goes silent', () => {
  test('every statement ends as in an outage, and the next ones succeed once the path is back', async () => {
    await using scene = await openThroughPath()
    const { path, db, openAll } = scene
    await openAll()
    path.lose()
    const failures = Promise.all(Array.from({ length: 2 * connections }, () => failureOf(db.raw('select 1'))))
    path.heal()
    const first = (await failures).slice(0, connections)
    expect(first.map(isOutage)).toEqual(first.map(() => true))
    await expect(openAll()).resolves.toHaveLength(connections)
  })

  test('a silent connection takes the idle ones with it, so that their next statements do not wait as well', async () => {
    await using scene = await openThroughPath()
    const { path, db, openAll } = scene
    await openAll()
    path.lose()
    const failure = failureOf(db.raw('select 1'))
    path.heal()
    expect(isOutage(await failure)).toBe(true)
    await until('only connections that were opened since are left', () => path.openConnections() === 0)
    await expect(openAll()).resolves.toHaveLength(connections)
  })

  test('a transaction and the COPY of a content end, too', async () => {
    await using scene = await openThroughPath()
    const { path, db, openAll } = scene
    const { workspaceId } = await createRoutes(database.db, [])
    const store = createPostgresStore(db)
    const { id, sizeBytes } = await store.write(workspaceId, Readable.from([Buffer.alloc(300 * 1024, 1)]))
    await openAll()
    path.lose()
    const reading = failureOf(store.read({ id, sizeBytes }).toArray())
    const transacting = failureOf(db.transaction((trx) => trx.raw('select 1')))
    expect([isOutage(await reading), isOutage(await transacting)]).toEqual([true, true])
  })

  test('a process that stops does not wait for a goodbye', async () => {
    await using scene = await openThroughPath()
    const { path, db, openAll } = scene
    await openAll()
    expect(path.openConnections()).toBe(connections)
    path.lose()
    await db.destroy()
    await until('every connection is closed', () => path.openConnections() === 0)
  })
})

test('a statement that lifts its limit in PostgreSQL has none in the relay, and the next one of the connection has one again', async () => {
  const one = openDatabase(
    { ...databaseConfig(database.url), DATABASE_STATEMENT_TIMEOUT_MS: statementTimeoutMs, DATABASE_POOL_MAX_CONNECTIONS: 1 },
    'test',
  )
  const slept = one.transaction(async (trx) => {
    await trx.raw('set local statement_timeout = 0')
    return (await trx.raw('select pg_sleep(6), 1 as ok')).rows
  })
  await expect(slept).resolves.toMatchObject([{ ok: 1 }])
  await expect(one.raw('select pg_sleep(6)')).rejects.toMatchObject({ code: '57014' })
  await one.destroy()
})

test('PostgreSQL ends a transaction in which the relay waits for something else, and the connection is replaced', async () => {
  const config = { ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 1 }
  const usual = openDatabase(config, 'test')
  const { rows } = await usual.raw<{ rows: object[] }>('show idle_in_transaction_session_timeout')
  expect(rows).toEqual([{ idle_in_transaction_session_timeout: '30s' }])
  await usual.destroy()

  const one = openDatabase({ ...config, idleInTransactionMaxMs: 300 }, 'test')
  const waiting = one.transaction(async (trx) => {
    await trx.raw('select 1')
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    await trx.raw('select 1')
  })
  expect(isOutage(await failureOf(waiting))).toBe(true)
  await expect(one.raw('select 1')).resolves.toMatchObject({ rowCount: 1 })
  await one.destroy()
})
