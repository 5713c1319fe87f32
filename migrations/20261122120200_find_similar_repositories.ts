import type { Knex } from 'knex'

// The order of bytes finds the names that begin alike, whatever the collation of the database is.
export const up = (knex: Knex) =>
  knex.raw(`
    create index repositories_by_repo_id_bytes on repositories (workspace_id, repo_id collate "C") where deleted_at is null;
    comment on index repositories_by_repo_id_bytes is
      'Serves the search for repositories whose names begin alike: for every signed request, and for the warnings of a repository.';
  `)
