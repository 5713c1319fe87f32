// A replay must send what came, and nothing else: a body out of which something was redacted is known as such. Bodies are mostly
// documents, compressed already: kept uncompressed, like the documents' own bytes.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table captured_bodies add column redacted boolean not null default false;
    alter table captured_bodies alter column data set storage external;
  `)

export const down = (knex: Knex) =>
  knex.raw(`
    alter table captured_bodies alter column data set storage extended;
    alter table captured_bodies drop column redacted;
  `)
