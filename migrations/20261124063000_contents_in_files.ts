// A content can be a file in a directory that the processes share. The former version refuses such a content as one of a store that it
// is not configured for.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table contents
      drop constraint contents_store_check,
      add constraint contents_store_check check (store in ('postgres', 's3', 'files'))
  `)
