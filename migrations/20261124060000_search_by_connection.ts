// Which documents went through a connection, and which of them it holds, is a question of operators. Without an index, the answer would read
// the deliveries of every connection.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create index deliveries_by_connection on deliveries (connection_id, document_id);
    comment on index deliveries_by_connection is 'Serves the search for documents by connection.';
    comment on index deliveries_held_by_connection is
      'Serves the release and the cancellation of held deliveries, and the search for documents that a connection holds.';
  `)
