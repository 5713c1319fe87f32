import { z } from 'zod'
import { countsSince, hourAndDayOf, presentCounts } from '../db/counters.ts'
import type { Database } from '../db/database.ts'
import type { Page, PageRequest } from '../db/page.ts'
import { inFailureGroup } from '../delivery/failure-group.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { timestamp } from '../domain/date-range.ts'
import { failureStatuses, noErrorCode } from '../domain/delivery-states.ts'
import { connectorTypeName } from '../workspace/inputs.ts'

export const failureFields = z.object({
  destination_id: z.string(),
  destination_name: z.string(),
  destination_deleted: z.boolean().describe('Deliveries to a deleted destination cannot be retried.'),
  connector_type: connectorTypeName,
  status: z.enum(failureStatuses).meta({ id: 'FailureStatus' }),
  error_code: z.string().nullable().describe('The code of the last error. Null if the error is not one of an attempt.'),
  last_message: z.string().nullable().describe('The message of the delivery that got its status last, or null if it has none.'),
  documents: z.int().describe('Documents with such a delivery. A document with several failed deliveries is in several groups.'),
  oldest_at: timestamp.describe('When the first of these deliveries got its status.'),
  newest_at: timestamp.describe('When the last of these deliveries got its status.'),
})

/** Deliveries to one destination that ended, or are retried, with one error. Each is of another document. */
type FailureGroup = CamelCasedOutput<typeof failureFields> & { id: string }

interface FailureFilter extends Pick<FailureGroup, 'status'> {
  destinationId?: string | undefined
  /** Only deliveries that have had the status for at least this time. */
  minAgeSeconds?: number | undefined
}

// Deliveries are not read to be counted: the counters of failures have the numbers. Only those that got their status in the same hour as
// the youngest that counts, but before it, are read. Counters of that hour and later are taken off the present number, because they are
// few as a rule: adding up those before it would read every day of the workspace.
const statementOf = ({ status, minAgeSeconds }: FailureFilter) => {
  const ofGroup = inFailureGroup(status)
  const ofDestination = `and status = '${status}' and (:destinationId::text is null or destination_id = :destinationId)`
  const isAged = minAgeSeconds !== undefined
  const old = isAged ? 'and status_since <= :newest::timestamptz' : ''
  return `
  with present as (
    select destination_id, detail as code, sum(count)::bigint as documents
    from (
      ${presentCounts('failures', ofDestination)}
    ) as counted
    group by destination_id, detail
    having sum(count) <> 0
  ), failure as (
    ${
      isAged
        ? `select present.destination_id, present.code, aged.documents
    from present
    left join (
      select destination_id, detail as code, sum(count)::bigint as documents
      from (
        ${countsSince('failures', ofDestination)}
      ) as counted
      group by destination_id, detail
    ) as later on later.destination_id = present.destination_id and later.code = present.code
    cross join lateral (
      select count(*) as documents
      from deliveries
      where ${ofGroup}
        and status_since >= :hour::timestamptz
        ${old}
    ) as last_hour
    cross join lateral (select present.documents - coalesce(later.documents, 0) + last_hour.documents as documents) as aged
    where aged.documents > 0`
        : 'select * from present'
    }
  ), page as (
    select *
    from failure
    order by documents desc, destination_id, code
    offset :offset
    limit :limit
  )
  select
    present.destination_id as "destinationId", destinations.name as "destinationName", destinations.deleted_at is not null as "destinationDeleted",
    connector_type as "connectorType", nullif(present.code, '${noErrorCode}') as "errorCode", newest.last_error as "lastMessage", documents,
    oldest.status_since as "oldestAt", newest.status_since as "newestAt", total
  from (select count(*) as total from failure) as counted
  left join page as present on true
  left join destinations on destinations.id = present.destination_id
  left join lateral (
    select status_since
    from deliveries
    where ${ofGroup}
    order by status_since
    limit 1
  ) as oldest on true
  left join lateral (
    select status_since, last_error
    from deliveries
    where ${ofGroup}
      ${old}
    order by status_since desc
    limit 1
  ) as newest on true
  order by documents desc, present.destination_id, present.code
`
}

export const createFailures = (db: Database) => ({
  /**
   * Groups deliveries by destination and error code, the largest group first. Deliveries of acknowledged documents are left out, and
   * cancelled deliveries count only if their documents have failed.
   */
  list: async (workspaceId: string, { page, perPage, ...filter }: FailureFilter & PageRequest): Promise<Page<FailureGroup>> => {
    const newest = new Date(Date.now() - (filter.minAgeSeconds ?? 0) * 1_000)
    const { rows } = await db.raw<{ rows: (Omit<FailureGroup, 'id' | 'status'> & { total: number })[] }>(statementOf(filter), {
      workspaceId,
      destinationId: filter.destinationId ?? null,
      newest,
      ...hourAndDayOf(newest),
      offset: (page - 1) * perPage,
      limit: perPage,
    })
    const items = rows
      // A page beyond the end has one row, with the total alone.
      .filter(({ destinationId }) => destinationId !== null)
      .map((group) => ({
        ...group,
        id: `${group.destinationId}-${filter.status}-${group.errorCode ?? noErrorCode}`,
        status: filter.status,
      }))
    return { items, total: rows[0]!.total }
  },
})

export type Failures = ReturnType<typeof createFailures>
