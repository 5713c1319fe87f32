import { openDatabase, type Database } from '../../src/db/database.ts'
import { isOutage } from '../../src/db/errors.ts'
import { shareOf, shareSizeOf } from '../../src/db/share.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { disposable } from '../support/disposable.ts'
import { share } from '../support/share.ts'

const database = share(await createTestDatabase())
const db = share(
  disposable(openDatabase({ ...databaseConfig(database.url), DATABASE_POOL_MAX_CONNECTIONS: 4 }, 'test share'), (each) => each.destroy()),
)
const pool = (db.client as { pool: { numUsed(): number; numPendingAcquires(): number } }).pool

const sessionOf = async (of: Pick<Database, 'raw'>) =>
  (await of.raw<{ rows: { pid: number }[] }>('select pg_backend_pid() as pid, pg_sleep(0.05)')).rows[0]!.pid

test.each([
  [1, 1],
  [2, 1],
  [3, 1],
  [5, 3],
  [10, 6],
  [100, 60],
])('of %i connections the API uses %i', (max, expected) => {
  expect(shareSizeOf({ DATABASE_POOL_MAX_CONNECTIONS: max })).toBe(expected)
})

test('statements, queries and transactions of a share use its connections only, and those of the pool do not wait for them', async () => {
  const two = shareOf(db, 2)
  const [first, second] = [await two.transaction(), await two.transaction()]
  const waiting = [two.raw('select 1 as one'), two('workspaces').select('id'), two.transaction((trx) => trx.raw('select 1'))]
  await Promise.all([sessionOf(db), sessionOf(db)])
  expect([pool.numUsed(), pool.numPendingAcquires()]).toEqual([2, 0])
  await first.commit()
  await Promise.all(waiting)
  await second.rollback()
  expect(pool.numUsed()).toBe(0)
  const sessions = await Promise.all(Array.from({ length: 20 }, () => sessionOf(two)))
  expect(new Set(sessions).size).toBe(2)
})

test('a statement that fails gives its connection back', async () => {
  const one = shareOf(db, 1)
  for (let turn = 0; turn < 3; turn += 1) await expect(one.raw('select 1 / 0')).rejects.toThrow('division by zero')
  await expect(one.transaction((trx) => trx.raw('select 1 / 0'))).rejects.toThrow('division by zero')
  await expect(one.raw('select 1 as one')).resolves.toMatchObject({ rows: [{ one: 1 }] })
})

test('a statement that waits for too long fails as in an outage, and makes room for the next one', async () => {
  const one = shareOf(db, 1, 50)
  const transaction = await one.transaction()
  const failure = await one.raw('select 1').then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect([isOutage(failure), String(failure)]).toEqual([
    true,
    'DatabaseUnavailable: the 1 database connections of the API are in use, and none became free within 50 ms',
  ])
  await transaction.rollback()
  await expect(one.raw('select 1')).resolves.toMatchObject({ rowCount: 1 })
})
