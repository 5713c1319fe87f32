import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { dayMs } from '../base/day.ts'
import { remedyFor, type FailedThing } from '../connectors/error-codes.ts'
import { presentCounts } from '../db/counters.ts'
import { inFailureGroup } from '../delivery/failure-group.ts'
import { noErrorCode } from '../domain/delivery-states.ts'
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
    with present as (
      select destination_id, detail as code, least(sum(count), :maxCount)::integer as count
      from (
        ${presentCounts('failures', `and status = 'failed'`, 'any (:workspaceIds)')}
      ) as counted
      group by destination_id, detail
      having sum(count) > 0
    )
    select
      ${destinationColumns}, present.count, oldest.status_since as since, nullif(code, '${noErrorCode}') as "errorCode",
      newest.last_error as "errorMessage", ${documentColumn}
    from present
    join destinations on destinations.id = destination_id
    join workspaces on workspaces.id = destinations.workspace_id
    join lateral (
      select status_since
      from deliveries
      where ${inFailureGroup('failed')}
      order by status_since
      limit 1
    ) as oldest on true
    join lateral (
      select document_id, last_error
      from deliveries
      where ${inFailureGroup('failed')}
      order by status_since desc
      limit 1
    ) as newest on true
    join documents on documents.id = newest.document_id
    where deleted_at is null
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
