// An attempt may find that a newer document lies where it would write: it sends nothing, and says so. A partition has the constraint
// as its own, too, from before it was attached.
import type { Knex } from 'knex'

const allowOutcomes = (knex: Knex, outcomes: string[]) => {
  const list = outcomes.map((outcome) => `'${outcome}'`).join(', ')
  return knex.raw(`
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
      alter table delivery_attempts add constraint delivery_attempts_outcome_check check (outcome in (${list}));
    end
    $$;
  `)
}

export const up = (knex: Knex) => allowOutcomes(knex, ['delivered', 'superseded', 'retryable', 'permanent', 'interrupted'])

export const down = async (knex: Knex) => {
  await knex('delivery_attempts').where({ outcome: 'superseded' }).update({ outcome: 'delivered' })
  await allowOutcomes(knex, ['delivered', 'retryable', 'permanent', 'interrupted'])
}
