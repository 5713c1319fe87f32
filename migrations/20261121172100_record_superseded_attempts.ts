// Adds the outcome superseded: the attempt found a newer document at its path and sent nothing. Existing partitions
// have a check constraint of their own, from the time before they were attached.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    do $$
    declare
      partition regclass;
    begin
      alter table delivery_attempts drop constraint delivery_attempts_outcome_check;
      for partition in
        select inhrelid::regclass
        from pg_inherits
        where inhparent = 'delivery_attempts'::regclass
      loop
        execute format('alter table %s drop constraint if exists delivery_attempts_outcome_check', partition);
      end loop;
      alter table delivery_attempts add constraint delivery_attempts_outcome_check check (outcome in ('delivered', 'superseded', 'retryable', 'permanent', 'interrupted'));
    end
    $$;
  `)
