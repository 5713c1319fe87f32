// Repositories, destinations, and the connections between them. A deleted repository or destination keeps its row
// (deleted_at), because documents and deliveries still refer to it. A deleted connection does not: rows that outlive a
// connection need only its id.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table repositories (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      repo_id text not null,
      name text not null,
      status text not null default 'active' check (status in ('active', 'inactive')),
      signature_verification boolean not null default false,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      deleted_at timestamptz
    );
    -- serves: the receiver's lookup by contRep; allows one repository per name
    create unique index repositories_by_repo_id on repositories (workspace_id, repo_id) where deleted_at is null;
    -- serves: the list of a workspace's repositories
    create index repositories_of_workspace on repositories (workspace_id, id) where deleted_at is null;

    -- The number of documents that a repository has received. It is split over sixteen rows, so that documents that
    -- arrive at the same time do not wait for one row lock. A reader adds the rows up.
    create table repository_counts (
      repository_id text collate "C" not null references repositories (id) on delete cascade,
      shard smallint not null,
      documents bigint not null default 0,
      primary key (repository_id, shard)
    );

    create table destinations (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      name text not null,
      connector_type text not null,
      status text not null default 'connected' check (status in ('connected', 'failing')),
      config jsonb not null,
      -- AES-256-GCM, see src/security/seal.ts: credentials are never stored in plain text
      credentials_sealed bytea not null,
      last_error text,
      last_delivered_at timestamptz,
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      deleted_at timestamptz
    );
    -- serves: the list of a workspace's destinations
    create index destinations_of_workspace on destinations (workspace_id, id) where deleted_at is null;

    create table connections (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      name text not null,
      is_active boolean not null default true,
      settings jsonb not null default '{}',
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );
    -- serves: the list of a workspace's connections
    create index connections_of_workspace on connections (workspace_id, id);

    create table connection_repositories (
      connection_id text collate "C" not null references connections (id) on delete cascade,
      repository_id text collate "C" not null references repositories (id) on delete cascade,
      position smallint not null,
      primary key (connection_id, repository_id)
    );
    -- serves: the connections of one repository, once per received document
    create index connections_of_repository on connection_repositories (repository_id);

    create table connection_destinations (
      connection_id text collate "C" not null references connections (id) on delete cascade,
      destination_id text collate "C" not null references destinations (id) on delete cascade,
      position smallint not null,
      primary key (connection_id, destination_id)
    );
    -- serves: the connections of one destination, and the deletion of a destination
    create index connections_of_destination on connection_destinations (destination_id);
  `)
