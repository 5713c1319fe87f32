// The audit log is kept for at least 365 days: with a shorter retention, whoever changes it erases the trail of the change. Workspaces of
// the compliance tier keep it indefinitely by their tier, without a setting. Values outside the bounds return to the default, 365.
import type { Knex } from 'knex'

export const up = (knex: Knex) =>
  knex.raw(`
    update workspaces
    set settings = settings - 'audit_days'
    where settings -> 'audit_days' = 'null'
      or (settings ->> 'audit_days')::numeric not between 365 and 3650
  `)
