// Every list of documents, whichever way it is filtered, is counted and paged in an index alone: each index holds all that can be asked
// for, in the one order of the list. Of a million documents, a page in the middle and its total were read from the table before.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    drop index documents_of_workspace, documents_by_status, documents_by_repository;
    -- serve: the list of documents by status, by repository, by both, each with or without dates (documents_by_received_at: with neither)
    create index documents_by_status on documents (workspace_id, status, received_at, id);
    create index documents_by_repository on documents (workspace_id, repo_id, received_at, id);
    create index documents_by_repository_and_status on documents (workspace_id, repo_id, status, received_at, id);
  `)

export const down = (knex: Knex) =>
  knex.raw(`
    drop index documents_by_status, documents_by_repository, documents_by_repository_and_status;
    create index documents_of_workspace on documents (workspace_id, id);
    create index documents_by_status on documents (workspace_id, status, id);
    create index documents_by_repository on documents (workspace_id, repo_id, id);
  `)
