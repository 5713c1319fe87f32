// An operator acknowledges a failed document that will not be delivered, so that the list of failed documents can be emptied.
// Every change of the status ends the acknowledgement: a document that fails again needs attention again.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    alter table documents add column acknowledged_at timestamptz;
    comment on column documents.acknowledged_at is
      'When an operator acknowledged that the failed document will not be delivered. A change of the status clears it.';

    create index documents_failed_and_open on documents (workspace_id, received_at, id) where status = 'failed' and acknowledged_at is null;
    comment on index documents_failed_and_open is
      'Serves the list of failed documents that nobody has acknowledged, and bulk retries.';
    create index documents_acknowledged on documents (workspace_id, received_at, id) where acknowledged_at is not null;
    comment on index documents_acknowledged is 'Serves the list of acknowledged documents.';
  `)
  await knex.raw(`
    create or replace function update_document_status() returns trigger language plpgsql as $$
    begin
      perform 1 from documents where id = new.document_id for no key update;
      update documents
      set status = derive_document_status(new.document_id), acknowledged_at = null
      where id = new.document_id
        and status <> derive_document_status(new.document_id);
      return null;
    end
    $$
  `)
}
