// Every filter of the list has an index that ends in the id, so that a page of rare requests among a million others is read in order.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    -- serve: the list of requests newest first, by class of status, by method, by channel
    create index captured_requests_by_status_class on captured_requests (workspace_id, (status_code / 100), id);
    create index captured_requests_by_method on captured_requests (workspace_id, http_method, id);
    create index captured_requests_by_channel on captured_requests (workspace_id, channel, id);
  `)

export const down = (knex: Knex) =>
  knex.raw('drop index captured_requests_by_status_class, captured_requests_by_method, captured_requests_by_channel')
