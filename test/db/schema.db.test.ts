import { schemaSql } from '../../docs/schema.ts'
import { migrationSource } from '../../src/db/migrations.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase

beforeEach(async () => {
  database = await createTestDatabase()
})

afterEach(() => database.drop())

const withoutComments = (sql: string) => sql.replaceAll(/^ *--.*\n/gm, '')

test('docs/schema.sql creates the same schema in an empty database', async () => {
  const { db } = database
  const written = await schemaSql(db)
  await db.raw('drop schema public cascade; create schema public')
  await db.raw(written)
  expect(withoutComments(await schemaSql(db))).toBe(withoutComments(written))
})

test('the dump refuses objects that it cannot write, instead of leaving them out', async () => {
  await database.db.raw('create view failed_documents as select id from documents')
  await expect(schemaSql(database.db)).rejects.toThrow('failed_documents')
})

test('every table and every index, except those of primary keys, has a comment', async () => {
  const { rows } = await database.db.raw<{ rows: { name: string }[] }>(`
    select relname as name
    from pg_class
    left join pg_index on indexrelid = pg_class.oid
    where relnamespace = 'public'::regnamespace
      and relkind in ('r', 'p', 'i', 'I')
      and not relispartition
      and not coalesce(indisprimary, false)
      and relname not like 'knex\\_%'
      and obj_description(pg_class.oid, 'pg_class') is null
  `)
  expect(rows).toEqual([])
})

test('a migration cannot be rolled back', async () => {
  await expect(database.db.migrate.rollback({ migrationSource })).rejects.toThrow('Migrations are forward only')
})
