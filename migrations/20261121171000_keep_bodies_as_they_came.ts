// A replay must send exactly what was received, so a body from which something was redacted is marked. Most bodies are
// documents, which are compressed already: bodies are stored uncompressed, like the contents of documents.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table captured_bodies add column redacted boolean not null default false;
    alter table captured_bodies alter column data set storage external;
  `)
