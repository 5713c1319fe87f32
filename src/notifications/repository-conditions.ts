import { dayMs } from '../base/day.ts'
import { failingUpstream } from '../migration/failures.ts'
import { isConnected } from '../routing/repository-warnings.ts'
import type { Condition, FindConditions } from './condition.ts'

export interface RepositoryRow {
  workspaceId: string
  repository: { id: string; repoId: string }
  count: number
  since: Date
}

export const repositoryColumns = `
  repositories.workspace_id as "workspaceId",
  jsonb_build_object('id', repositories.id, 'repoId', repositories.repo_id) as repository
`

export const conditionOf = ({ workspaceId, repository, count, since }: RepositoryRow, remedy: string): Condition => ({
  workspaceId,
  subject: repository.id,
  count,
  since,
  details: { repository, remedy },
})

const silentRemedy =
  'Check that the source system runs, that its HTTP script and its certificate still fit, and that it reaches the relay; ' +
  'the captured requests show the latest ones, also those that were refused.'

/**
 * Finds sources that have sent nothing for as long as the least patient notification waits. A more patient one announces them later. Known
 * from captured requests and, as retention may remove these sooner, from documents. A source that never sent anything is not silent.
 */
export const findSilentSources: FindConditions = async (trx, { workspaceIds, operatorWorkspaceId }, now) => {
  const { rows } = await trx.raw<{ rows: RepositoryRow[] }>(
    `
    select ${repositoryColumns}, 1 as count, last_request_at as since
    from (
      select workspaces.id as workspace_id, min(silence_hours) as silence_hours
      from workspaces
      join notifications on notifications.workspace_id in (workspaces.id, :operatorWorkspaceId)
      where workspaces.id = any (:workspaceIds)
        and is_active
        and 'source.silent' = any (events)
      group by workspaces.id
    ) as watched
    join repositories using (workspace_id)
    left join lateral (
      select request_at
      from captured_requests
      where captured_requests.workspace_id = repositories.workspace_id
        and captured_requests.repo_id = repositories.repo_id
      order by id desc
      limit 1
    ) as captured on true
    left join lateral (
      select received_at
      from documents
      where documents.workspace_id = repositories.workspace_id
        and documents.repo_id = repositories.repo_id
      order by received_at desc, id desc
      limit 1
    ) as received on true
    cross join lateral (select greatest(request_at, received_at) as last_request_at) as last
    where deleted_at is null
      and status = 'active'
      and last_request_at <= :now::timestamptz - silence_hours * interval '1 hour'
    `,
    { now, workspaceIds, operatorWorkspaceId },
  )
  return rows.map((row) => {
    const condition = conditionOf(row, silentRemedy)
    return { ...condition, details: { ...condition.details, lastRequestAt: row.since.toISOString() } }
  })
}

const certificateRemedy = 'Let the source system send its new certificate, compare the fingerprint and activate it.'

export const findExpiringCertificates: FindConditions = async (trx, config, now) => {
  interface Row extends RepositoryRow {
    certificate: { id: string; authId: string }
    validTo: Date
  }
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `
    select
      ${repositoryColumns}, 1 as count, valid_to as "validTo",
      greatest(certificates.received_at, valid_to - :days * interval '1 day') as since,
      jsonb_build_object('id', certificates.id, 'authId', auth_id) as certificate
    from repositories
    join certificates on repository_id = repositories.id
    where repositories.workspace_id = any (:workspaceIds)
      and deleted_at is null
      and status = 'active'
      and signature_verification
      and is_active
      and valid_to < :before
      and not exists (
        select
        from certificates as newer
        where newer.repository_id = repositories.id
          and newer.auth_id = certificates.auth_id
          and newer.is_active
          and newer.valid_to >= :before
      )
    `,
    {
      days: config.certificateDays,
      before: new Date(now.getTime() + config.certificateDays * dayMs),
      workspaceIds: config.workspaceIds,
    },
  )
  return rows.map(({ workspaceId, repository, certificate, validTo, count, since }) => ({
    workspaceId,
    subject: certificate.id,
    count,
    since,
    details: { repository, certificate: { ...certificate, validTo: validTo.toISOString() }, remedy: certificateRemedy },
  }))
}

const notConnectedRemedy =
  'Create a connection from the repository to a destination, then replay the requests of the discarded documents; ' +
  'or set the repository inactive, so that the source system gets an error instead of an acknowledgement.'

export const findNotConnected: FindConditions = async (trx, config) => {
  const { rows } = await trx.raw<{ rows: RepositoryRow[] }>(
    `
    select ${repositoryColumns}, discarded.count, discarded.since
    from repositories
    join lateral (
      select count(*) as count, min(received_at) as since
      from (
        select received_at
        from documents
        where documents.workspace_id = repositories.workspace_id
          and documents.repo_id = repositories.repo_id
          and is_unconnected
          and acknowledged_at is null
          and received_at >= repositories.created_at
        limit :maxCount
      ) as first
    ) as discarded on discarded.count > 0
    where repositories.workspace_id = any (:workspaceIds)
      and deleted_at is null
      and repositories.status = 'active'
      and not ${isConnected}
    `,
    { maxCount: config.maxCount, workspaceIds: config.workspaceIds },
  )
  return rows.map((row) => conditionOf(row, notConnectedRemedy))
}

const upstreamRemedy =
  'Restore the earlier content server, its certificate or the way to it. To go on without it, set upstream of the repository to null: ' +
  'documents that only it has are then answered with 404.'

/** Finds repositories whose upstream has failed for some time. */
export const findFailingUpstreams: FindConditions = async (trx, { workspaceIds }) => {
  const { rows } = await trx.raw<{ rows: (RepositoryRow & { error: string })[] }>(
    `
    select ${repositoryColumns}, 1 as count, failing_since as since, last_error as error
    from repositories
    cross join lateral (${failingUpstream}) as failing
    where repositories.workspace_id = any (:workspaceIds)
      and deleted_at is null
      and status = 'active'
    `,
    { workspaceIds },
  )
  return rows.map(({ error, ...row }) => {
    const condition = conditionOf(row, upstreamRemedy)
    return { ...condition, details: { ...condition.details, error: { message: error } } }
  })
}
