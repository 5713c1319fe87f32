import { newId } from '../../src/base/ids.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import { watchTransactions } from './calls-in-transactions.ts'

export const databaseConfig = (url: string) => ({
  DATABASE_URL: url,
  DATABASE_POOL_MAX_CONNECTIONS: 10,
  acquireTimeoutMs: 60_000,
  DATABASE_STATEMENT_TIMEOUT_MS: 60_000,
  DATABASE_TRANSACTION_POOLING: false,
})

export interface TestDatabase extends AsyncDisposable {
  db: Database
  url: string
  drop(): Promise<void>
}

/** Creates an empty database with the current schema. Takes about 100 ms. */
export const createTestDatabase = async (): Promise<TestDatabase> => {
  const serverUrl = process.env.TEST_DATABASE_URL!
  const name = `test_${newId().toLowerCase()}`
  const admin = openDatabase(databaseConfig(serverUrl), 'test admin')
  await admin.raw('create database ?? template ??', [name, process.env.TEST_DATABASE_TEMPLATE!])

  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  const db = openDatabase(databaseConfig(url.href), 'test')
  const endWatch = watchTransactions(db)
  const drop = async () => {
    await db.destroy()
    await admin.raw('drop database ?? with (force)', [name])
    await admin.destroy()
    endWatch()
  }
  return { db, url: url.href, drop, [Symbol.asyncDispose]: drop }
}
