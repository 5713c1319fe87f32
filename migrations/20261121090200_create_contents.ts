// The bytes of documents. A content is written before the document that will own it. Until then owned_at is null, and a
// maintenance job removes contents that stay without an owner.
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
    -- serves: the removal of contents whose upload never became a document
    create index contents_without_owner on contents (created_at) where owned_at is null;

    -- 256 KiB per row: of the sizes measured (64 KiB to 4 MiB), COPY read this one fastest.
    create table content_chunks (
      content_id text collate "C" not null references contents (id) on delete cascade,
      seq integer not null,
      data bytea not null,
      primary key (content_id, seq)
    );
    -- Most documents are compressed already. Stored out of line and uncompressed, they read about twice as fast.
    alter table content_chunks alter column data set storage external;
  `)
