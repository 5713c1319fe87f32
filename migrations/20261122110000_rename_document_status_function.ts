import type { Knex } from 'knex'

// The trigger follows the function by its identity, not by its name.
export const up = (knex: Knex) => knex.raw(`alter function settle_document() rename to update_document_status`)
