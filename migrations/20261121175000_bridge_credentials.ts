// The bridge logs on to a workspace's system with credentials of its own: sealed like those of destinations, and apart from the settings,
// which are read with every document.
import type { Knex } from 'knex'

export const up = (knex: Knex) => knex.raw('alter table workspaces add column rfc_credentials_sealed bytea')

export const down = (knex: Knex) => knex.raw('alter table workspaces drop column rfc_credentials_sealed')
