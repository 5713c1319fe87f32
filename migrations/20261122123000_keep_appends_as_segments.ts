// An append stores its own bytes as a segment instead of writing the whole component again. The content of a document then consists of
// the content it began with and its segments, each of them a content that never changes.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table contents
      add column appends integer not null default 0,
      add column appended_sha256 bytea;
    comment on column contents.size_bytes is
      'The bytes that the content itself holds, without those of its segments. Null until a document owns the content.';
    comment on column contents.sha256 is 'Of the bytes that the content itself holds.';
    comment on column contents.appends is 'The number of appends that have extended the content by segments.';
    comment on column contents.appended_sha256 is
      'Of the content with its segments. Null until a delivery has computed it, and again after each append.';

    create table content_segments (
      content_id text collate "C" not null references contents (id),
      append integer not null,
      start_byte bigint not null,
      segment_id text collate "C" not null references contents (id),
      workspace_id text collate "C" not null references workspaces (id) on delete cascade,
      primary key (content_id, append)
    );
    create unique index content_segments_by_segment on content_segments (segment_id);
    comment on table content_segments is
      'The bytes that appends have added to a content, in the order of start_byte. Each segment is a content of its own.';
    comment on column content_segments.append is 'The number of the last append whose bytes the segment holds.';
    comment on column content_segments.start_byte is 'Where the segment begins in the whole content.';
    comment on index content_segments_by_segment is 'Serves the check that a removed content is no segment.';
  `)
