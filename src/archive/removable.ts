import { openDeliveryStatuses } from '../domain/delivery-states.ts'

// When a document or its content may be removed, in SQL. legal-holds.ts has the third condition.

const open = openDeliveryStatuses.map((status) => `'${status}'`).join(', ')

/**
 * SQL: nothing is left to be done with a document: none of its deliveries is open, and those that have failed are acknowledged. A document with a
 * failed delivery is `failed`, and may have open ones. An operator could retry what is failed or cancelled, for as long as the content is kept.
 */
export const isSettled = (document: string) => `(
      ${document}.status in ('delivered', 'discarded')
      or (${document}.status = 'failed' and not exists (
        select
        from deliveries
        where document_id = ${document}.id
          and (status in (${open}) or (status = 'failed' and ${document}.acknowledged_at is null))
      ))
    )`

/**
 * SQL: the end of the last day of which a workspace has a manifest. What is of a later day is not removed. No day is over before `:now`, whatever
 * the clock of the process said that has made the manifest.
 */
export const endOfProven = `least(
      date_trunc('day', :now::timestamptz, 'UTC'),
      coalesce(
        (select day + 1 from manifests where workspace_id = workspaces.id order by day desc limit 1), (created_at at time zone 'UTC')::date
      )::timestamp at time zone 'UTC'
    )`
