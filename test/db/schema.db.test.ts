import { migrationSource } from '../../src/db/migrations.ts'
import { createTestDatabase } from '../support/database.ts'

test('every table and every index, except those of primary keys, has a comment', async () => {
  await using database = await createTestDatabase()
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
  await using database = await createTestDatabase()
  await expect(database.db.migrate.rollback({ migrationSource })).rejects.toThrow('Migrations are forward only')
})
