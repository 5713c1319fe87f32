import type { Database } from '../db/database.ts'
import type { Page, PageRequest } from '../db/page.ts'
import { noErrorCode } from '../domain/delivery-states.ts'

/** Statuses of deliveries that can be grouped. */
export const failureStatuses = ['failed', 'cancelled', 'retrying'] as const
type FailureStatus = (typeof failureStatuses)[number]

export interface FailureFilter {
  status: FailureStatus
  destinationId?: string | undefined
  /** Only deliveries that have had the status for at least this time. */
  minAgeSeconds?: number | undefined
}

/** Deliveries to one destination that ended, or are retried, with one error. Each is of another document. */
export interface FailureGroup {
  id: string
  destinationId: string
  destinationName: string
  destinationDeleted: boolean
  connectorType: string
  status: FailureStatus
  /** Null if the error is not one of an attempt. */
  errorCode: string | null
  /** The message of the newest document. Null if there is none. */
  lastMessage: string | null
  documents: number
  /** The first and the last time at which a delivery got the status. */
  oldestAt: Date
  newestAt: Date
}

// The newest document tells the message, because ids of documents are in the order of receipt: all messages would have to be sorted.
const statementOf = ({ status }: FailureFilter) => `
  with ${
    status === 'retrying'
      ? ''
      : `open as materialized (
    select id
    from documents
    where workspace_id = :workspaceId
      and status = 'failed'
      and acknowledged_at is null
  ), `
  }failure as (
    select
      destination_id, last_error_code as code, count(*) as documents, max(document_id) as newest_document,
      min(status_since) as oldest_at, max(status_since) as newest_at
    from deliveries
    ${status === 'retrying' ? '' : 'join open on open.id = document_id'}
    where destination_id = any (array(
        select id
        from destinations
        where workspace_id = :workspaceId
          and (:destinationId::text is null or id = :destinationId)
      ))
      and deliveries.status = '${status}'
      and status_since <= now() - :minAgeSeconds::float8 * interval '1 second'
    group by destination_id, last_error_code
  ), page as (
    select *
    from failure
    order by documents desc, destination_id, code
    offset :offset
    limit :limit
  )
  select
    page.destination_id as "destinationId", destinations.name as "destinationName", destinations.deleted_at is not null as "destinationDeleted",
    connector_type as "connectorType", code as "errorCode", deliveries.last_error as "lastMessage", documents,
    oldest_at as "oldestAt", newest_at as "newestAt", total
  from (select count(*) as total from failure) as counted
  left join page on true
  left join destinations on destinations.id = page.destination_id
  left join deliveries on deliveries.document_id = newest_document and deliveries.destination_id = page.destination_id
  order by documents desc, page.destination_id, code
`

export const createFailures = (db: Database) => ({
  /**
   * Groups deliveries by destination and error code, the largest group first. Deliveries of acknowledged documents are left out, and
   * cancelled deliveries count only if their documents have failed.
   */
  list: async (workspaceId: string, { page, perPage, ...filter }: FailureFilter & PageRequest): Promise<Page<FailureGroup>> => {
    const { rows } = await db.raw<{ rows: (Omit<FailureGroup, 'id' | 'status'> & { total: number })[] }>(statementOf(filter), {
      workspaceId,
      destinationId: filter.destinationId ?? null,
      minAgeSeconds: filter.minAgeSeconds ?? 0,
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
