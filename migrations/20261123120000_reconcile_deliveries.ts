// Temporal may lose its state, or be restored from an older backup. The database then knows alone which deliveries are open, so it also
// has to know when each of them is expected to show a sign of life: the reconciler asks Temporal about those that are overdue.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    alter table deliveries
      add column next_attempt_at timestamptz,
      add column checked_at timestamptz;
    update deliveries set next_attempt_at = now() where status in ('pending', 'retrying');
    alter table deliveries alter column next_attempt_at set default now();
    comment on column deliveries.next_attempt_at is
      'When the next attempt is due, while the delivery is pending or retrying. An attempt under way, or one that waits for a slot, is past it.';
    comment on column deliveries.checked_at is 'When the reconciler last asked Temporal about the delivery, because its next attempt was overdue.';

    create index deliveries_by_due_time on deliveries (greatest(next_attempt_at, checked_at), document_id, destination_id)
      where status in ('pending', 'retrying');
    comment on index deliveries_by_due_time is
      'Serves the reconciler, which asks Temporal about the deliveries that have shown no sign of life for the longest time.';

    create index bulk_retries_running on bulk_retries (id) where status = 'running';
    comment on index bulk_retries_running is 'Serves the reconciler, which asks Temporal about running bulk retries.';
  `)
  await knex.raw(`
    create or replace function note_delivery_status() returns trigger language plpgsql as $$
    begin
      new.status_since = now();
      new.ended_by = case when new.status = 'failed' then new.ended_by end;
      if new.status not in ('pending', 'retrying') then
        new.next_attempt_at = null;
      elsif new.next_attempt_at is not distinct from old.next_attempt_at then
        new.next_attempt_at = now();
      end if;
      return new;
    end
    $$
  `)
  await knex.raw(`
    comment on function note_delivery_status is
      'Sets the time of the last change of a delivery''s status. A delivery that is not failed any more has not been ended. The next attempt of an open delivery is due at once, unless the statement says when; any other delivery has none.'
  `)
}
