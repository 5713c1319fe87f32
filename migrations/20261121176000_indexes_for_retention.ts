// What retention looks for: the bodies of one workspace by age, and documents that were delivered and still have their bytes.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    -- serves: the end of bodies in a workspace that keeps them for less time than others do
    create index captured_bodies_of_workspace on captured_bodies (workspace_id, request_id);
    -- serves: the same for attempts
    create index delivery_attempts_of_workspace on delivery_attempts (workspace_id, id);
    -- serves: the end of content
    create index documents_delivered_with_content on documents (workspace_id, received_at)
      where status = 'delivered' and content_id is not null;
  `)

export const down = (knex: Knex) =>
  knex.raw('drop index captured_bodies_of_workspace, delivery_attempts_of_workspace, documents_delivered_with_content')
