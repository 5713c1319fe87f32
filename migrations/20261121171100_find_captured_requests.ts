// Every filter of the list of requests has an index that ends in the id. A page of rare requests among a million others
// is then read in order.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    -- serve: the list of requests, newest first, by status class, by method and by channel
    create index captured_requests_by_status_class on captured_requests (workspace_id, (status_code / 100), id);
    create index captured_requests_by_method on captured_requests (workspace_id, http_method, id);
    create index captured_requests_by_channel on captured_requests (workspace_id, channel, id);
  `)
