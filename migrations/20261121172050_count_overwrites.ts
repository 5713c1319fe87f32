// Two documents of one name go to one path. Where an attempt of the older one was under way while the newer one arrived, it may have
// taken the newer one's place: each such time is counted with the newer delivery, which is then to be made again.
import type { Knex } from 'knex'

export const up = (knex: Knex) => knex.raw('alter table deliveries add column overwrites integer not null default 0')

export const down = (knex: Knex) => knex.raw('alter table deliveries drop column overwrites')
