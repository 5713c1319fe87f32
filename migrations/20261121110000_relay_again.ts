// A component that was appended to is relayed again, once it has been quiet for a while: each such relay is a revision, with an outbox
// message of its own that lies there until it is due.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table documents add column revision integer not null default 1;

    alter table outbox add column revision integer not null default 1;
    alter table outbox add column due_at timestamptz not null default now();
    alter table outbox drop constraint outbox_pkey;
    alter table outbox add primary key (document_id, revision);
    drop index outbox_by_age;
    -- serves: the sweep, what has been due for longest first
    create index outbox_by_due_at on outbox (due_at);
  `)

export const down = (knex: Knex) =>
  knex.raw(`
    drop index outbox_by_due_at;
    delete from outbox where revision > 1;
    alter table outbox drop constraint outbox_pkey;
    alter table outbox add primary key (document_id);
    alter table outbox drop column due_at, drop column revision;
    create index outbox_by_age on outbox (created_at);
    alter table documents drop column revision;
  `)
