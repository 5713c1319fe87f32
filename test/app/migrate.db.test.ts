import { migrateAll } from '../../src/app/migrate.ts'
import { oneMachine } from '../../src/app/one-machine.ts'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { openDatabase } from '../../src/db/database.ts'
import { migrateAlone, migrationSource, requireSchema } from '../../src/db/migrations.ts'
import { createTestDatabase, databaseConfig } from '../support/database.ts'
import { testConfig } from '../support/factories.ts'
import { createFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'

const { length: migrations } = await migrationSource.getMigrations([])

/** Creates a database without any table, as a new installation has it. */
const createEmptyDatabase = async () => {
  const name = `test_${newId().toLowerCase()}`
  const admin = openDatabase(databaseConfig(process.env.TEST_DATABASE_URL!), 'test admin')
  await admin.raw('create database ??', [name])
  const url = new URL(process.env.TEST_DATABASE_URL!)
  url.pathname = `/${name}`
  const db = openDatabase({ ...databaseConfig(url.href), DATABASE_POOL_MAX_CONNECTIONS: 2 }, 'test')
  return {
    db,
    url: url.href,
    [Symbol.asyncDispose]: async () => {
      await db.destroy()
      await admin.raw('drop database ?? with (force)', [name])
      await admin.destroy()
    },
  }
}

test('two migrations of an empty database at the same time both succeed, and one of them applies everything', async () => {
  await using empty = await createEmptyDatabase()
  const { db, url } = empty
  const other = openDatabase(databaseConfig(url), 'other')
  const applied = await Promise.all([migrateAlone(db), migrateAlone(other)])
  expect(applied.map(({ length }) => length).toSorted((a, b) => a - b)).toEqual([0, migrations])
  await other.destroy()
  await expect(requireSchema(db)).resolves.toBeUndefined()
})

test('a migration that was killed does not prevent the next one', async () => {
  await using empty = await createEmptyDatabase()
  const { db } = empty
  await migrateAlone(db)
  await db('knex_migrations_lock').update({ is_locked: 1 })
  await expect(migrateAlone(db)).resolves.toEqual([])
})

test('a migration waits for a locked table, and lets others use the table meanwhile', async () => {
  await using empty = await createEmptyDatabase()
  const { db, url } = empty
  const former = async () => (await migrationSource.getMigrations([])).slice(0, -1)
  await db.migrate.latest({ migrationSource: { ...migrationSource, getMigrations: former } })
  const reader = openDatabase(databaseConfig(url), 'reader')
  const reading = await reader.transaction()
  // The migration needs another lock to be recorded.
  await reading.raw('lock table knex_migrations in share mode')
  const migrating = migrateAlone(db)
  const waiting = `
    select 1
    from pg_locks
    where not granted
      and database = (select oid from pg_database where datname = current_database())
      and relation = 'knex_migrations'::regclass
  `
  const isWaiting = async () => (await reading.raw(waiting)).rows.length > 0
  await until('the migration waits for the table', isWaiting)
  await reader.transaction(async (another) => {
    await another.raw("set local lock_timeout = '30s'")
    // Behind the lock that the migration waits for.
    await another.raw('lock table knex_migrations in share mode')
  })
  await reading.commit()
  await expect(migrating).resolves.toHaveLength(1)
  await reader.destroy()
})

test('a relay that is too old for the database is refused before it prepares Temporal there', async () => {
  await using database = await createTestDatabase()
  await using folder = await createFolder()
  await database.db('required_migrations').insert({ name: '9999_contract' })
  const programs = { RELAY_TEMPORAL_SERVER_DIR: folder.path }
  const config = testConfig({ DATABASE_URL: database.url, RELAY_TEMPORAL: 'local', TEMPORAL_ADDRESS: '', ...programs })
  const refusal = 'is too old for the database, which requires the migration 9999_contract'
  await expect(migrateAll(config)).rejects.toThrow(refusal)
  const { signal } = new AbortController()
  const options = { dataDir: folder.path, config, log: createLog('silent'), say: () => {}, signal }
  await expect(oneMachine.startStack(options)).rejects.toThrow(refusal)
})
