// Deliveries that start later (by the sweep, a retry, a release, the reconciler) join the trace of the request that contained the document.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table documents add column traceparent text;
    comment on column documents.traceparent is
      'The span of the request that contained the document (W3C Trace Context): the parent of its deliveries. Null if it was not traced.';
  `)
