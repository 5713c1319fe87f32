// An archive document is what the source system identifies by a docId: a set of components, possibly empty. A document,
// which is what the relay delivers and the API shows, is one component as it was received.
//
// The trigger derives a document's status from its deliveries; src/domain/delivery-states.ts states the same rule for
// the workflow; a test compares them.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table archive_documents (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      repository_id text collate "C" not null references repositories (id) on delete cascade,
      doc_id text not null,
      doc_prot text,
      created_at timestamptz not null default now(),
      modified_at timestamptz not null default now(),
      deleted_at timestamptz
    );
    -- serves: every protocol command; allows exactly one of two simultaneous creates to succeed
    create unique index archive_documents_by_doc_id on archive_documents (repository_id, doc_id) where deleted_at is null;

    create table documents (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      repository_id text collate "C" not null references repositories (id),
      -- null for a discarded document, which was acknowledged but not stored
      archive_document_id text collate "C" references archive_documents (id),
      content_id text collate "C" references contents (id),
      repo_id text not null,
      doc_id text not null,
      comp_id text not null,
      position integer not null default 0,
      content_type text not null,
      size_bytes bigint not null,
      status text not null check (status in ('pending', 'delivered', 'retrying', 'failed', 'discarded')),
      erp_object_type text,
      erp_object_id text,
      ar_object text,
      received_at timestamptz not null,
      modified_at timestamptz not null,
      -- set when an update replaces the document or a delete ends it: the source system no longer reads it
      superseded_at timestamptz
    );
    -- serves: info, get and docGet; allows one readable document per component
    create unique index documents_by_component on documents (archive_document_id, comp_id) where superseded_at is null;
    -- serve: the list of documents, unfiltered, by status, by repository and by date (a ULID sorts by time of receipt)
    create index documents_of_workspace on documents (workspace_id, id);
    create index documents_by_status on documents (workspace_id, status, id);
    create index documents_by_repository on documents (workspace_id, repo_id, id);
    create index documents_by_received_at on documents (workspace_id, received_at, id);
    -- serves: metadata that arrives after the bytes and names the docId
    create index documents_by_doc_id on documents (workspace_id, repo_id, doc_id);

    create table deliveries (
      document_id text collate "C" not null references documents (id) on delete cascade,
      destination_id text collate "C" not null references destinations (id),
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      -- the connection that planned the delivery; it may have been deleted since
      connection_id text collate "C" not null,
      status text not null check (status in ('pending', 'held', 'retrying', 'delivered', 'failed', 'cancelled')),
      -- the path below the destination's prefix, planned at receipt; the full location once delivered
      path text not null,
      attempts integer not null default 0,
      delivered_at timestamptz,
      last_error text,
      primary key (document_id, destination_id)
    );
    -- serve: the open deliveries of a destination (when it is deleted or shown), and the held deliveries of a
    -- connection
    create index deliveries_open_of_destination on deliveries (destination_id, document_id) where status in ('pending', 'held', 'retrying', 'failed');
    create index deliveries_held_by_connection on deliveries (connection_id, document_id) where status = 'held';

    create function derive_document_status(of_document text) returns text language sql stable as $$
      select case
        when count(*) = 0 then 'delivered'
        when bool_or(status = 'failed') then 'failed'
        when bool_or(status = 'retrying') then 'retrying'
        when bool_or(status in ('pending', 'held')) then 'pending'
        when bool_or(status = 'delivered') then 'delivered'
        else 'failed'
      end
      from deliveries
      where document_id = of_document
    $$;

    -- Two deliveries of one document may end at the same moment. The row lock makes the second wait for the first, and
    -- each statement of a function sees what was committed before that statement began, so the second counts the first.
    create function settle_document() returns trigger language plpgsql as $$
    begin
      perform 1 from documents where id = new.document_id for no key update;
      update documents
      set status = derive_document_status(new.document_id)
      where id = new.document_id
        and status <> derive_document_status(new.document_id);
      return null;
    end
    $$;

    create trigger delivery_status_changed
      after update of status on deliveries
      for each row when (old.status is distinct from new.status)
      execute function settle_document();

    -- Workflows that have not been started yet. A row is inserted in the transaction of its document and deleted once
    -- the workflow has been started.
    create table outbox (
      document_id text collate "C" primary key references documents (id) on delete cascade,
      workflow_input jsonb not null,
      created_at timestamptz not null default now()
    );
    -- serves: the sweep, which sends the oldest rows first
    create index outbox_by_age on outbox (created_at);
  `)
