// A retry of every failed delivery that a filter matches. It is stored here, and not only in Temporal, so that it can
// be shown after its workflow has been removed, and so that each page of retries and its counts are one transaction.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table bulk_retries (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      status text not null default 'running' check (status in ('running', 'completed', 'cancelled')),
      -- repoId, destinationId, dateFrom and dateTo, each optional
      filter jsonb not null,
      -- counted when the bulk retry was created
      matched_documents bigint not null,
      matched_deliveries bigint not null,
      retried_documents bigint not null default 0,
      retried_deliveries bigint not null default 0,
      -- the last document that was processed
      document_cursor text collate "C" not null default '',
      -- the actor who requested it
      actor_type text not null check (actor_type in ('user', 'api_key', 'system')),
      user_id text collate "C",
      created_at timestamptz not null default now(),
      ended_at timestamptz
    );
    -- serves: the list of a workspace's bulk retries, newest first
    create index bulk_retries_of_workspace on bulk_retries (workspace_id, id);
  `)
