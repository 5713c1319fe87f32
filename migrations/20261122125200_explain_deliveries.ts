// What the list of documents says about a delivery: its last error, the limit that ended its retries, and since when it has its status.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    alter table deliveries
      add column last_error_code text,
      add column ended_by text check (ended_by in ('permanent_error', 'max_retries', 'retry_ttl_seconds')),
      add column status_since timestamptz not null default now();
    comment on column deliveries.last_error_code is 'The code of last_error. Null if the error is not one of an attempt.';
    comment on column deliveries.ended_by is
      'Why no retry followed the last attempt of a failed delivery: an error that no retry can fix, or the limit that was reached.';
    comment on column deliveries.status_since is 'When the delivery got its status.';
  `)
  await knex.raw(`
    create function note_delivery_status() returns trigger language plpgsql as $$
    begin
      new.status_since = now();
      new.ended_by = case when new.status = 'failed' then new.ended_by end;
      return new;
    end
    $$
  `)
  await knex.raw(`
    comment on function note_delivery_status is
      'Sets the time of the last change of a delivery''s status. A delivery that is not failed any more has not been ended.';

    create trigger delivery_status_noted
      before update of status on deliveries
      for each row when (old.status is distinct from new.status)
      execute function note_delivery_status();
    comment on trigger delivery_status_noted on deliveries is 'Whatever changes the status of a delivery, the time is noted.';
  `)
}
