// An update makes a new document of a component that was there before: the source system still asks when it was first created. Null
// where the document is the component's first, so that rows from before need no change.
import type { Knex } from 'knex'

export const up = (knex: Knex) => knex.raw('alter table documents add column component_created_at timestamptz')

export const down = (knex: Knex) => knex.raw('alter table documents drop column component_created_at')
