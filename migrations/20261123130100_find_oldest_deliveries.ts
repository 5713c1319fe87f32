// The oldest delivery that is under way to a destination tells better than any number that the destination falls behind.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    create index deliveries_under_way_of_destination on deliveries (destination_id, document_id) where status in ('pending', 'retrying');
    comment on index deliveries_under_way_of_destination is
      'Serves the oldest delivery under way to a destination, for statistics and metrics: ids of documents are in the order of receipt.';
  `)
