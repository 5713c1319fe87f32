// An update creates a new document for an existing component, and the source system still asks when the component was
// first created. Null if the document is the first of its component, so existing rows need no change.
import type { Knex } from 'knex'

export const up = (knex: Knex) => knex.raw('alter table documents add column component_created_at timestamptz')
