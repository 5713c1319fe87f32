// The limits of a destination hold across all workers: each attempt leases a slot, and the rate is kept in one row.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    create table destination_slots (
      destination_id text collate "C" not null references destinations (id) on delete cascade,
      number integer not null,
      holder text collate "C",
      leased_until timestamptz not null default '-infinity',
      primary key (destination_id, number)
    ) with (fillfactor = 50);
    comment on table destination_slots is
      'Permission for one attempt at a destination. Rows are added up to its limit of concurrent deliveries when an attempt finds too few.';
    comment on column destination_slots.holder is 'The attempt that runs in the slot, as deliveries.attempt_id.';
    comment on column destination_slots.leased_until is
      'A running attempt renews its lease. The slot of a lost worker becomes free when the lease has run out.';
    comment on constraint destination_slots_pkey on destination_slots is 'Serves the search for a free slot of a destination.';

    create table destination_gates (
      destination_id text collate "C" primary key references destinations (id) on delete cascade,
      next_start_at timestamptz not null default '-infinity'
    ) with (fillfactor = 50);
    comment on table destination_gates is
      'When the next attempt at a destination may start. Apart from destinations, because it changes with attempts.';
    comment on column destination_gates.next_start_at is
      'When its deliveries per minute would allow the next attempt, if attempts were spread evenly.';
  `)
}
