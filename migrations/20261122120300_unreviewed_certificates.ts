import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table certificates
      -- Sent by putCert and never activated. Anybody can send certificates, so unreviewed ones have a limit of their own: the
      -- oldest gives way.
      add column is_unreviewed boolean not null default false;
  `)
