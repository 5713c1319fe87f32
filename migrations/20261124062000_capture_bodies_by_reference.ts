// The captured body of a request that creates or reads a document has the same bytes as the content of the document. It refers to the
// content now, and the bytes are written once. A content that captured bodies refer to is kept for as long as they are, also without its
// document. The former version takes a body without data for one that is no longer stored.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table captured_bodies
      alter column data drop not null,
      add column pieces jsonb;
    comment on column captured_bodies.data is
      'Null if the body is stored in pieces. Stored out of line and uncompressed, like content_chunks.data.';
    comment on column captured_bodies.pieces is
      'The parts of the body, in their order: a range of a content (contentId, start, sizeBytes), or bytes in Base64 (data). Null if data '
      'is the body.';

    alter table contents add column captured_on date;
    comment on column contents.captured_on is
      'The day (UTC) of the last captured request with a body that refers to the content. Null if there is none, and once retention has '
      'released a content without an owner.';
    comment on column contents.owned_at is
      'Null until a document owns the content, and again once retention has disowned it.';

    create index contents_orphaned on contents (created_at) where owned_at is null and captured_on is null;
    create index contents_captured on contents (workspace_id, captured_on) where owned_at is null and captured_on is not null;
    drop index contents_without_owner;
    comment on index contents_orphaned is 'Serves the removal of contents without an owner.';
    comment on index contents_captured is 'Serves the release of contents that only captured bodies refer to.';
  `)
