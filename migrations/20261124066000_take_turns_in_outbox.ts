// Many documents of one workspace can wait for their start. The oldest of each workspace are found without reading the others.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    create index outbox_starts_by_workspace on outbox ((message -> 'input' ->> 'workspace'), due_at) where message ->> 'kind' = 'startDocument';
    comment on index outbox_starts_by_workspace is 'Serves the sweep of starts of documents, in which workspaces take turns.';
    comment on index outbox_by_due_at is 'Serves the metric of the oldest message.';
  `)
}
