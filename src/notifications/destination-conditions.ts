import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { dayMs } from '../base/day.ts'
import { remedyFor, type FailedThing } from '../connectors/error-codes.ts'
import type { ConditionConfig, FindConditions, IncidentDetails } from './condition.ts'
import { documentColumn, noticeDocument, type IncidentDocument } from './incident-document.ts'

interface DestinationRow {
  workspaceId: string
  workspace: string
  destination: { id: string; name: string; type: string }
  errorCode: string | null
  errorMessage: string | null
  /** Null if the incident has no delivery to show. */
  document: IncidentDocument | null
  count: number
  since: Date | null
}

const destinationColumns = `
  destinations.workspace_id as "workspaceId", user_slug || '/' || workspace_slug as workspace,
  jsonb_build_object('id', destinations.id, 'name', destinations.name, 'type', connector_type) as destination
`

const detailsOf = (
  { workspace, destination, errorCode, errorMessage, document }: DestinationRow,
  failed: FailedThing,
  config: ConditionConfig,
): IncidentDetails => ({
  destination,
  remedy: remedyFor(errorCode, destination.name, failed),
  ...((errorCode ?? errorMessage) !== null && {
    error: { code: errorCode ?? undefined, message: errorMessage ?? undefined },
  }),
  ...(document && {
    document: noticeDocument(
      document,
      workspace,
      deliveryWorkflowId({ ...document, documentId: document.id, workspace }, destination.id),
      config,
    ),
  }),
})

export const findFailingDestinations: FindConditions = async (trx, config) => {
  const { rows } = await trx.raw<{ rows: DestinationRow[] }>(
    `
    select
      ${destinationColumns}, greatest(failures, 1) as count, failing_since as since, example.last_error_code as "errorCode",
      example.last_error as "errorMessage", ${documentColumn}
    from destinations
    join destination_gates on destination_id = destinations.id
    join workspaces on workspaces.id = destinations.workspace_id
    left join lateral (
      -- Among the oldest open deliveries, because those have been attempted.
      select document_id, last_error, last_error_code
      from (
        select document_id, status, last_error, last_error_code
        from deliveries
        where deliveries.destination_id = destinations.id
          and status in ('pending', 'held', 'retrying', 'failed')
        order by document_id
        limit :maxCount
      ) as oldest
      where status = 'retrying'
        and last_error_code is not null
      limit 1
    ) as example on true
    left join documents on documents.id = document_id
    where destinations.workspace_id = any (:workspaceIds)
      and deleted_at is null
      and (circuit <> 'closed' or failures >= :failures)
    `,
    { failures: config.destinationFailures, maxCount: config.maxCount, workspaceIds: config.workspaceIds },
  )
  return rows.map((row) => ({ ...row, subject: row.destination.id, details: detailsOf(row, 'retried', config) }))
}

export const findFailedDeliveries: FindConditions = async (trx, config) => {
  const { rows } = await trx.raw<{ rows: DestinationRow[] }>(
    `
    with recursive failed as (
      -- Each step reads one entry of the index: the first error code of a destination, then the one after it.
      select id as destination_id, (
        select min(coalesce(last_error_code, ''))
        from deliveries
        where deliveries.destination_id = destinations.id
          and status = 'failed'
      ) as code
      from destinations
      where workspace_id = any (:workspaceIds)
        and deleted_at is null
      union all
      select destination_id, (
        select min(coalesce(last_error_code, ''))
        from deliveries
        where deliveries.destination_id = failed.destination_id
          and status = 'failed'
          and coalesce(last_error_code, '') > code
      )
      from failed
      where code is not null
    )
    select
      ${destinationColumns}, newest.count, newest.since, nullif(code, '') as "errorCode", deliveries.last_error as "errorMessage", ${documentColumn}
    from failed
    join destinations on destinations.id = failed.destination_id
    join workspaces on workspaces.id = destinations.workspace_id
    join lateral (
      -- Of the newest failures only: a group can be as large as the table.
      select count(*) as count, max(document_id) as document_id, min(status_since) as since
      from (
        select document_id, status_since
        from deliveries
        where deliveries.destination_id = failed.destination_id
          and status = 'failed'
          and coalesce(last_error_code, '') = code
        order by status_since desc
        limit :maxCount
      ) as latest
      join documents on documents.id = document_id
      where acknowledged_at is null
    ) as newest on newest.count > 0
    join documents on documents.id = newest.document_id
    join deliveries on deliveries.document_id = newest.document_id and deliveries.destination_id = failed.destination_id
    `,
    { maxCount: config.maxCount, workspaceIds: config.workspaceIds },
  )
  return rows.map((row) => ({ ...row, subject: `${row.destination.id}/${row.errorCode ?? ''}`, details: detailsOf(row, 'group', config) }))
}

const expiringRemedy = (name: string) =>
  `Save the credentials of destination ${name} with a new client certificate and its key, and test the destination.`

export const findExpiringCredentials: FindConditions = async (trx, config, now) => {
  type Row = Pick<DestinationRow, 'workspaceId' | 'destination' | 'since'> & { expireAt: Date }
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `
    select
      ${destinationColumns}, credentials_expire_at as "expireAt",
      greatest(destinations.created_at, credentials_expire_at - :days * interval '1 day') as since
    from destinations
    join workspaces on workspaces.id = destinations.workspace_id
    where destinations.workspace_id = any (:workspaceIds)
      and deleted_at is null
      and credentials_expire_at < :before
    `,
    {
      days: config.certificateDays,
      before: new Date(now.getTime() + config.certificateDays * dayMs),
      workspaceIds: config.workspaceIds,
    },
  )
  return rows.map(({ workspaceId, destination, since, expireAt }) => ({
    workspaceId,
    subject: destination.id,
    count: 1,
    since,
    details: { destination, credentialsExpireAt: expireAt.toISOString(), remedy: expiringRemedy(destination.name) },
  }))
}
