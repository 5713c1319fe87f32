// A workspace is a tenant: every other row belongs to one. The column settings holds only the values that differ from
// the defaults in src/domain/settings.ts.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table workspaces (
      id text collate "C" primary key,
      user_slug text not null,
      workspace_slug text not null,
      compliance_tier boolean not null default false,
      settings jsonb not null default '{}',
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      -- serves: every request, to find the workspace that its path names
      unique (user_slug, workspace_slug)
    );

    create table members (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      email text not null,
      name text not null,
      created_at timestamptz not null default now(),
      unique (workspace_id, email)
    );

    create table api_keys (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      member_id text collate "C" references members (id) on delete cascade,
      name text not null,
      level text not null check (level in ('viewer', 'member', 'admin')),
      secret_sha256 bytea not null,
      expires_at timestamptz,
      revoked_at timestamptz,
      last_used_at timestamptz,
      created_at timestamptz not null default now()
    );
    -- serves: the list of a workspace's keys
    create index api_keys_of_workspace on api_keys (workspace_id, id);
  `)
