import { readFile } from 'node:fs/promises'
import { schemaSql } from '../../docs/schema.ts'
import { migrationSource } from '../../src/db/migrations.ts'
import { catalogueOf } from '../support/catalogue.ts'
import { createTestDatabase } from '../support/database.ts'

/** Returns the catalogue of a database that a script makes. */
const catalogueMadeBy = async (sql: string) => {
  await using other = await createTestDatabase()
  await other.db.raw('drop schema public cascade; create schema public')
  await other.db.raw(sql.replaceAll('?', '\\?'))
  return await catalogueOf(other.db)
}

test('docs/schema.sql makes the database that the migrations make', async () => {
  await using database = await createTestDatabase()
  const migrated = await catalogueOf(database.db)
  expect(Object.values(migrated).reduce((sum, objects) => sum + Object.keys(objects).length, 0)).toBeGreaterThan(500)
  expect(await catalogueMadeBy(await readFile(new URL('../../docs/schema.sql', import.meta.url), 'utf8'))).toEqual(migrated)
})

test('the dump writes storage options, attributes of functions, and every kind of trigger, constraint and column', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await db.raw(`
    create table wide_rows (
      id bigint,
      title text collate "C" default 'it''s' check (title <> ''),
      size_bytes bigint generated always as (length(title)) stored,
      constraint wide_rows_by_title primary key (title, id),
      constraint titles_differ unique (title) deferrable initially deferred
    ) with (fillfactor = 40, autovacuum_enabled = false);
    alter table wide_rows alter column title set storage external;
    comment on constraint titles_differ on wide_rows is 'Allows one title.';
    comment on index titles_differ is 'Serves ''titles''.';
    create index wide_rows_by_size on wide_rows (size_bytes desc nulls last, lower(title)) include (id) with (fillfactor = 60) where id > 0;
    create function sizes(above bigint default 0) returns setof bigint language sql stable strict security definer
      parallel restricted cost 7 rows 5 set search_path to public, pg_temp as $$ select size_bytes from wide_rows where id > above $$;
    create function refuse_row() returns trigger language plpgsql as $$ begin return null; end $$;
    create constraint trigger rows_are_refused after insert or update of title on wide_rows deferrable for each row
      when (new.id > 0) execute function refuse_row();
    comment on trigger rows_are_refused on wide_rows is 'Refuses.';
  `)
  const sql = await schemaSql(db)
  expect(await catalogueMadeBy(sql)).toEqual(await catalogueOf(db))
})

test('the dump refuses objects that it cannot write, instead of leaving them out', async () => {
  await using database = await createTestDatabase()
  await database.db.raw('create view failed_documents as select id from documents')
  await expect(schemaSql(database.db)).rejects.toThrow('failed_documents')
})

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
