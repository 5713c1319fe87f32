// Indexes for retention: bodies and attempts of one workspace by age, and delivered documents that still have their
// content.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    -- serves: the removal of bodies in a workspace that keeps them for a shorter time than others
    create index captured_bodies_of_workspace on captured_bodies (workspace_id, request_id);
    -- serves: the removal of attempts, likewise
    create index delivery_attempts_of_workspace on delivery_attempts (workspace_id, id);
    -- serves: the removal of content by age
    create index documents_delivered_with_content on documents (workspace_id, received_at)
      where status = 'delivered' and content_id is not null;
  `)
