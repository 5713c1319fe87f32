import { checkAgent } from '../../clients/check-source/src/http.ts'
import { isRefusalCode, refusals, type RefusalCode } from '../domain/refusal-codes.ts'

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

const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`

// Of these, those of a check are left out. A check makes fewer.
const readMax = 200
/** Latest requests of a source system that were all refused before that is said. */
export const refusedRequests = 5

/**
 * SQL in a query on the table repositories: since when an active repository has refused all of its latest requests, as count, since, and code,
 * that of the last one. No row if one of them was accepted, or if there were fewer. The requests of a check do not count.
 * @param range SQL, from `and` on, that says in which partitions to look
 */
export const refusedSource = (range = '') => `
  select count, since, code
  from (
    select
      count(*)::integer as count, min(request_at) as since, (array_agg(error_code order by id desc))[1] as code,
      bool_and(coalesce(error_code in (${refusedCodes.map(quoted).join(', ')}), false)) as are_refused
    from (
      select id, request_at, error_code
      from (
        select workspace_id, repo_id, id, request_at, error_code, request_headers
        from captured_requests
        -- Not two equalities: the planner could then read the requests of all repositories in the order of their ids.
        where (captured_requests.workspace_id, captured_requests.repo_id, captured_requests.id) > (repositories.workspace_id, repositories.repo_id, '')
          and (captured_requests.workspace_id, captured_requests.repo_id, captured_requests.id) < (repositories.workspace_id, repositories.repo_id, '~')
          ${range}
        order by workspace_id desc, repo_id desc, id desc
        limit ${readMax}
      ) as read
      where request_headers ->> 'user-agent' is distinct from ${quoted(checkAgent)}
      order by workspace_id desc, repo_id desc, id desc
      limit ${refusedRequests}
    ) as request
  ) as latest
  where repositories.status = 'active'
    and count = ${refusedRequests}
    and are_refused
`
