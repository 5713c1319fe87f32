import { execFileSync } from 'node:child_process'
import { createStatement, openDatabase, type Database } from '../../src/db/database.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { startPgbouncer } from '../support/pgbouncer.ts'
import { startPreparingPooler } from '../support/preparing-pooler.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())

/** The setting by which a PgBouncer prepares no statements. Those before 1.21 never do, and do not know it. */
const unprepared = (): Record<string, string> => {
  const version = execFileSync(process.env.TEST_PGBOUNCER_BIN!, ['--version'], { encoding: 'utf8' })
  return Number(/\d+\.(\d+)/.exec(version)![1]) >= 21 ? { max_prepared_statements: '0' } : {}
}

// Has fewer sessions than the relay has connections.
const pgbouncer = () => startPgbouncer(database.url, { pool_mode: 'transaction', default_pool_size: '2', ...unprepared() })

/** Opens the database through a pooler. */
const openPooled = async (
  start: () => Promise<{ url: string; stop(): Promise<void> }>,
  limits: { idleInTransactionMaxMs?: number } = {},
) => {
  const pooler = await start()
  const db = openDatabase({ ...databaseConfig(pooler.url), DATABASE_TRANSACTION_POOLING: true, ...limits }, 'test pooled')
  return {
    db,
    [Symbol.asyncDispose]: async () => {
      await db.destroy()
      await pooler.stop()
    },
  }
}

const statements = ['one', 'two', 'three'].map((name) =>
  createStatement<{ name: string; prepared: number }>(
    name,
    `select :value::text as name, (select count(*) from pg_prepared_statements where statement like '%as name, (select%') as prepared`,
  ),
)

/** Runs each statement many times by connections that change their sessions. @returns how many statements the sessions had prepared */
const runAll = async (db: Database): Promise<number[]> => {
  const rows = await Promise.all(
    Array.from({ length: 120 }, async (_, number) => (await statements[number % 3]!(db, { value: String(number) }))[0]!),
  )
  expect(rows.map(({ name }) => name)).toEqual(rows.map((_, number) => String(number)))
  return rows.map(({ prepared }) => prepared)
}

test('a pooler that does not prepare statements in its sessions gets none with names', async () => {
  await using pooled = await openPooled(pgbouncer)
  expect(Math.max(...(await runAll(pooled.db)))).toBe(0)
})

test('a pooler that prepares statements in each session gets them with names', async () => {
  await using pooled = await openPooled(() => startPreparingPooler(database.url))
  await runAll(pooled.db)
  expect(Math.max(...(await runAll(pooled.db)))).toBeGreaterThan(0)
})

test('a transaction through a pooler in which the relay does nothing is ended', async () => {
  await using pooled = await openPooled(pgbouncer, { idleInTransactionMaxMs: 300 })
  const { db } = pooled
  const idle = db.transaction(async (trx) => {
    await trx.raw('select pg_sleep(1)')
    expect((await trx.raw('show idle_in_transaction_session_timeout')).rows).toEqual([{ idle_in_transaction_session_timeout: '300ms' }])
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    await trx.raw('select 1')
  })
  await expect(idle).rejects.toBeInstanceOf(Error)
  // Of its session, nothing is left to the next transactions.
  const limits = await Promise.all(Array.from({ length: 10 }, () => db.raw('show idle_in_transaction_session_timeout')))
  expect(new Set(limits.map(({ rows }) => rows[0].idle_in_transaction_session_timeout))).toEqual(new Set(['0']))
})
