// The bytes. A content is written before the document that will own it: until then owned_at is null, and what stays so is swept away.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create table contents (
      id text collate "C" primary key,
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      store text not null check (store in ('postgres', 's3')),
      size_bytes bigint,
      sha256 bytea,
      created_at timestamptz not null default now(),
      owned_at timestamptz
    );
    -- serves: the sweep of contents whose upload never ended in a document
    create index contents_without_owner on contents (created_at) where owned_at is null;

    -- 256 KiB a row: the size that read fastest by COPY of those measured (64 KiB to 4 MiB).
    create table content_chunks (
      content_id text collate "C" not null references contents (id) on delete cascade,
      seq integer not null,
      data bytea not null,
      primary key (content_id, seq)
    );
    -- documents are mostly compressed already; out of line and uncompressed reads about twice as fast
    alter table content_chunks alter column data set storage external;
  `)

export const down = (knex: Knex) => knex.raw('drop table content_chunks, contents')
