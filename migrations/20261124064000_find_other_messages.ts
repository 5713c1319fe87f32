// Many documents can wait for their start. The few other messages are found without reading those.
import type { Knex } from 'knex'

export const up = async (knex: Knex) => {
  await knex.raw(`
    create index outbox_others_by_due_at on outbox (due_at) where message ->> 'kind' <> 'startDocument';
    comment on index outbox_others_by_due_at is 'Serves the sweep of messages that do not start a document.';
  `)
}
