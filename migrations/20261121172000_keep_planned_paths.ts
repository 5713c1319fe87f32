// A delivery keeps both: the path that was planned for it, by which every later attempt is made too, and the location that the
// destination told once the document lay there.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table deliveries add column location text;
    update deliveries set location = path where status = 'delivered';
  `)

export const down = (knex: Knex) =>
  knex.raw(`
    update deliveries set path = coalesce(location, path);
    alter table deliveries drop column location;
  `)
