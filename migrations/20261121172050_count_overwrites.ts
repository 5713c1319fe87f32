// Two documents with the same name are delivered to the same path. An attempt for the older document that is running
// while the newer one is delivered may overwrite it. Each such case is counted on the newer delivery, which is then
// repeated.
import type { Knex } from 'knex'

export const up = (knex: Knex) => knex.raw('alter table deliveries add column overwrites integer not null default 0')
