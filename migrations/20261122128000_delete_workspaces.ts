// A workspace can be deleted. Its contents stay until the orphan sweep has removed their bytes, from PostgreSQL or from the bucket, so
// their rows outlive the workspace. Deleting many archive documents must not search the documents of all workspaces for each of them,
// and an index for that check would cost every received document a write.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table contents drop constraint contents_workspace_id_fkey;
    comment on column contents.workspace_id is
      'Without a foreign key: the contents of a deleted workspace stay until the orphan sweep has removed them.';
    alter table documents drop constraint documents_archive_document_id_fkey;
    comment on column documents.archive_document_id is
      'Null for a document that was acknowledged but not stored, because no destination was wired to its repository. Without a foreign key: archive documents are deleted only together with their workspace, after its documents.';
  `)
