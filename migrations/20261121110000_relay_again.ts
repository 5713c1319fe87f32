// A component that was appended to is delivered again once no append has arrived for a while. Each such delivery is a
// revision of the document, with its own outbox message, which is sent when it is due.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table documents add column revision integer not null default 1;

    alter table outbox add column revision integer not null default 1;
    alter table outbox add column due_at timestamptz not null default now();
    alter table outbox drop constraint outbox_pkey;
    alter table outbox add primary key (document_id, revision);
    drop index outbox_by_age;
    -- serves: the sweep, which sends the messages that have been due the longest first
    create index outbox_by_due_at on outbox (due_at);
  `)
