// A retry of everything that a filter matches. It stands here, and not only in Temporal, so that it can be looked at after its workflow
// has gone, and so that a page and the account of it are one transaction.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table bulk_retries (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      status text not null default 'running' check (status in ('running', 'completed', 'cancelled')),
      -- which documents: repoId, destinationId, dateFrom, dateTo
      filter jsonb not null,
      -- what met the filter at the start
      matched_documents bigint not null,
      matched_deliveries bigint not null,
      retried_documents bigint not null default 0,
      retried_deliveries bigint not null default 0,
      -- the last document that was looked at
      document_cursor text collate "C" not null default '',
      -- on whose behalf
      actor_type text not null check (actor_type in ('user', 'api_key', 'system')),
      user_id text collate "C",
      created_at timestamptz not null default now(),
      ended_at timestamptz
    );
    -- serves: the list of a workspace's bulk retries, newest first
    create index bulk_retries_of_workspace on bulk_retries (workspace_id, id);
  `)

export const down = (knex: Knex) => knex.raw('drop table bulk_retries')
