// Counts and pages of the list of documents read an index only, whatever the filter: each index contains the filtered
// columns and the order of the list. Before, a page in the middle of a million documents and its total were read from
// the table.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    drop index documents_of_workspace, documents_by_status, documents_by_repository;
    -- serve: the list of documents by status, by repository and by both, with or without dates;
    -- documents_by_received_at serves the list without either filter
    create index documents_by_status on documents (workspace_id, status, received_at, id);
    create index documents_by_repository on documents (workspace_id, repo_id, received_at, id);
    create index documents_by_repository_and_status on documents (workspace_id, repo_id, status, received_at, id);
  `)
