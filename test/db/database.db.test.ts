import { Readable } from 'node:stream'
import { reasonOf } from '../../src/base/failure-log.ts'
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
const openThroughPath = async (
  options: { answersRequests?: boolean; acquireTimeoutMs?: number; DATABASE_STATEMENT_TIMEOUT_MS?: number } = {},
) => {
  const url = new URL(database.url)
  const path = await startLossyPath(Number(url.port))
  url.port = String(path.port)
  const config = {
    ...databaseConfig(url.href),
    DATABASE_STATEMENT_TIMEOUT_MS: statementTimeoutMs,
    DATABASE_POOL_MAX_CONNECTIONS: connections,
    ...options,
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

describe('a pool whose statements answer requests', () => {
  // 5 seconds are promised: twice that on a busy machine. The limit of statements alone is half a minute.
  const answerMaxMs = 10_000
  // Longer than the limit of this file, as the statements of a usual installation are.
  const open = () => openThroughPath({ answersRequests: true, acquireTimeoutMs: 5_000, DATABASE_STATEMENT_TIMEOUT_MS: 30_000 })

  const failsInTime = async (work: () => Promise<unknown>) => {
    const startedAt = performance.now()
    const failure = await failureOf(work())
    return { isOutage: isOutage(failure), isInTime: performance.now() - startedAt < answerMaxMs, failure }
  }
  const inTime = { isOutage: true, isInTime: true }

  test('fails within 5 seconds while PostgreSQL is silent, whatever runs or waits for a connection, and works again afterwards', async () => {
    await using scene = await open()
    const { path, db, openAll } = scene
    await openAll()
    const transaction = await db.transaction()
    await transaction.raw('select 1')
    path.lose()
    const first = await Promise.all([
      failsInTime(() => transaction.raw('select 1')),
      failsInTime(() => db.transaction((trx) => trx.raw('select 1'))),
      failsInTime(() => db.raw('select pg_sleep(20)')),
      ...Array.from({ length: 3 * connections }, () => failsInTime(() => db.raw('select 1'))),
    ])
    await transaction.rollback().catch(() => {})
    expect(first).toMatchObject(first.map(() => inTime))
    const second = await failsInTime(() => db.raw('select 1'))
    expect(second).toMatchObject({ ...inTime, failure: { message: 'PostgreSQL does not answer' } })
    path.heal()
    await until('PostgreSQL answers again', async () => (await failureOf(db.raw('select 1'))) === undefined)
    await expect(openAll()).resolves.toHaveLength(connections)
  })

  test('fails within 5 seconds if PostgreSQL is silent from the first connection on', async () => {
    await using scene = await open()
    const { path, db } = scene
    path.lose()
    await expect(failsInTime(() => db.raw('select 1'))).resolves.toMatchObject({
      ...inTime,
      failure: { message: 'PostgreSQL does not answer' },
    })
  })

  test('gives up a connection whose statement PostgreSQL has not received, and no other one', async () => {
    await using scene = await open()
    const { path, db, openAll } = scene
    await db.raw('select 1')
    path.lose()
    path.heal()
    const lost = failsInTime(() => db.raw('select 1'))
    await expect(openAll().then(() => 'answered', isOutage)).resolves.toBe('answered')
    await expect(lost).resolves.toMatchObject(inTime)
  })

  test('lets a statement go on as long as PostgreSQL works on it', async () => {
    await using scene = await open()
    await expect(scene.db.raw('select pg_sleep(8)')).resolves.toMatchObject({ rowCount: 1 })
  })
})

test('a pool that is used up says so in words of the relay', async () => {
  const one = openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 1, acquireTimeoutMs: 2_000 }, 'test')
  const transaction = await one.transaction()
  const failure = await failureOf(one.raw('select 1'))
  expect([isOutage(failure), (failure as Error).message]).toEqual([
    true,
    'all 1 database connections of this process are in use, and none became free within 2000 ms',
  ])
  await transaction.rollback()
  await one.destroy()
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

test('the reason of a failed statement has no statement in it, also in a transaction', async () => {
  const { db } = database
  const statement = "select 'a - b' from missing where id = :id"
  const run = [
    () => db.raw(statement, { id: 1 }),
    () => db.transaction((trx) => trx.raw(statement, { id: 1 })),
    () => db('missing').where({ id: 1 }),
  ]
  const failures = await Promise.all(run.map((each) => Promise.resolve(each()).catch((thrown: unknown) => thrown)))
  expect(failures.map(reasonOf)).toEqual(run.map(() => 'relation "missing" does not exist'))
})
