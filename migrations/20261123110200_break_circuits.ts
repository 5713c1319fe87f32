// A destination whose attempts fail one after the other gets one attempt at a time, until one succeeds.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    alter table destination_gates
      add column circuit text not null default 'closed' check (circuit in ('closed', 'open', 'half_open')),
      add column circuit_since timestamptz,
      add column failures integer not null default 0,
      add column pause_ms integer not null default 0,
      add column trial_at timestamptz,
      add column trial_id text collate "C";
    comment on column destination_gates.circuit is
      'closed: attempts start. open: none starts until trial_at. half_open: one attempt tries the target. See src/domain/circuit.ts.';
    comment on column destination_gates.circuit_since is 'When the circuit got its state. Null if it has always been closed.';
    comment on column destination_gates.failures is 'Consecutive failed attempts that a retry may help.';
    comment on column destination_gates.pause_ms is 'The pause before the latest trial. It doubles with each trial that fails.';
    comment on column destination_gates.trial_at is
      'When the next trial may start. While one is under way: when another one replaces it, unless it is renewed, because its worker was lost.';
    comment on column destination_gates.trial_id is 'The attempt that tries the target, as deliveries.attempt_id.';
  `)
}
