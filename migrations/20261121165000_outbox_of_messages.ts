// The outbox keeps whatever Temporal is to be told, not only which workflows to start: each message has a key, by which it is sent once
// and removed, and says by its kind what it is. Its columns no longer repeat what the message holds.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table outbox rename column workflow_input to message;
    alter table outbox add column key text collate "C";
    update outbox
    set
      key = 'document/' || document_id || case when revision > 1 then '@' || revision else '' end,
      message = message || '{"kind": "document"}';
    alter table outbox drop constraint outbox_pkey;
    alter table outbox add primary key (key);
    alter table outbox drop column document_id, drop column revision;
  `)

export const down = (knex: Knex) =>
  knex.raw(`
    alter table outbox add column document_id text collate "C" references documents (id) on delete cascade;
    alter table outbox add column revision integer not null default 1;
    delete from outbox where message ->> 'kind' <> 'document';
    update outbox
    set
      document_id = message ->> 'documentId',
      revision = coalesce((message ->> 'revision')::integer, 1),
      message = message - 'kind';
    alter table outbox drop constraint outbox_pkey;
    alter table outbox add primary key (document_id, revision);
    alter table outbox drop column key;
    alter table outbox rename column message to workflow_input;
  `)
