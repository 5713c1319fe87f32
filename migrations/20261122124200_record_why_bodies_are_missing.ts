// A truncated body has a reason. It is unknown for bodies that were captured before.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    alter table captured_requests
      add column request_body_truncation_reason text
        check (request_body_truncation_reason in ('too_large', 'incomplete', 'not_json', 'memory', 'refused', 'unread')),
      add column response_body_truncation_reason text
        check (response_body_truncation_reason in ('too_large', 'incomplete', 'not_json', 'memory', 'refused', 'unread'));
    comment on column captured_requests.request_body_truncation_reason is
      'Why the body is not stored. Null if it is not truncated.';
  `)
