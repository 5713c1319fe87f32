import { checkAgent } from '../../clients/check-source/src/http.ts'
import { isRefusalCode, refusals, type RefusalCode } from '../domain/refusal-codes.ts'
import type { FindConditions } from './condition.ts'
import { conditionOf, repositoryColumns, type RepositoryRow } from './repository-conditions.ts'

/** Errors that answer a request which the relay has accepted: the source system asks for what is not there, or sends what is there. */
const answers: ReadonlySet<RefusalCode> = new Set([
  'document_exists',
  'document_not_found',
  'component_not_found',
  'component_offline',
  'document_locked',
  'document_on_hold',
])

/** The codes of requests that were refused, whatever they asked for. */
export const refusedCodes = Object.keys(refusals).filter((code) => isRefusalCode(code) && !answers.has(code))

// Of these, those of a check are left out. A check makes fewer.
const requestsRead = 200

/**
 * Finds active repositories whose latest requests were all refused. The requests of a check do not count, and of a repository with fewer
 * requests nothing is known.
 */
export const findRefusedSources: FindConditions = async (trx, config) => {
  const { rows } = await trx.raw<{ rows: (RepositoryRow & { code: RefusalCode })[] }>(
    `
    select ${repositoryColumns}, latest.count, latest.since, latest.code
    from repositories
    cross join lateral (
      select
        count(*)::integer as count, min(request_at) as since, (array_agg(error_code order by id desc))[1] as code,
        bool_and(coalesce(error_code = any (:refusedCodes), false)) as are_refused
      from (
        select id, request_at, error_code
        from (
          select id, request_at, error_code, request_headers
          from captured_requests
          where captured_requests.workspace_id = repositories.workspace_id
            and captured_requests.repo_id = repositories.repo_id
          order by id desc
          limit :requestsRead
        ) as read
        where request_headers ->> 'user-agent' is distinct from :checkAgent
        order by id desc
        limit :refusedRequests
      ) as request
    ) as latest
    where repositories.workspace_id = any (:workspaceIds)
      and deleted_at is null
      and status = 'active'
      and latest.count = :refusedRequests
      and latest.are_refused
    `,
    { refusedCodes, checkAgent, requestsRead, refusedRequests: config.refusedRequests, workspaceIds: config.workspaceIds },
  )
  return rows.map(({ code, ...row }) => {
    const condition = conditionOf(row, refusals[code].remedy)
    return { ...condition, details: { ...condition.details, error: { code } } }
  })
}
