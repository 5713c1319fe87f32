import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table certificates
      -- The object identifier of the algorithm with which the certificate itself is signed. Empty if it was stored before this column.
      add column signature_algorithm text not null default '';
  `)
