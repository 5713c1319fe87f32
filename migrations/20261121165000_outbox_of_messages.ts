// The outbox stores every kind of message for Temporal, not only the start of a document's workflow. Each message has a
// kind, and a key by which it is stored once and removed. Columns that repeat a part of the message are dropped. The
// decision: docs/adr/0005-transactional-outbox.md.
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
