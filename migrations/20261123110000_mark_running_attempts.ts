// An attempt is marked when it starts, so that one whose worker is lost is recorded and counted, however early it was lost.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    alter table deliveries
      add column attempt_id text collate "C",
      add column lost_attempts integer not null default 0;
    comment on column deliveries.attempt_id is
      'The attempt that is under way, as delivery_attempts.id will name it. If the next attempt still finds it, its worker was lost.';
    comment on column deliveries.lost_attempts is
      'Consecutive lost attempts that the workflow does not know of, because the same activity goes on with the upload.';
  `)
}
