// A delivery stores both the planned path, which every attempt uses, and the location that the destination reported
// when it stored the document.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table deliveries add column location text;
    update deliveries set location = path where status = 'delivered';
  `)
