// A document names the captured request that it arrived with, and a captured request lists its documents.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table documents add column request_id text collate "C";
    comment on column documents.request_id is
      'The captured request that contained the document. It may have been removed since. Null for a document that is older than this column.';
    create index documents_by_request on documents (request_id) where request_id is not null;
    comment on index documents_by_request is 'Serves the documents of a page of captured requests.';
  `)
