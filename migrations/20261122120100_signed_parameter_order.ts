import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table repositories
      -- The order of the signed parameters in a URL: that of all measured clients, or any. A fixed order leaves less freedom to read a
      -- signed URL differently.
      add column signed_parameter_order text not null default 'fixed' check (signed_parameter_order in ('fixed', 'any'));
  `)
