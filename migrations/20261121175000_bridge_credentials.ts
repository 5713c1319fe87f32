// The credentials that the bridge uses to log on to a workspace's system. They are sealed like those of destinations,
// and are separate from the settings, which are read for every document.
import type { Knex } from 'knex'

export const up = (knex: Knex) => knex.raw('alter table workspaces add column rfc_credentials_sealed bytea')
