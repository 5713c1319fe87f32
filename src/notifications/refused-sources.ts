import { refusedSource } from '../capture/latest-requests.ts'
import { refusals, type RefusalCode } from '../domain/refusal-codes.ts'
import type { FindConditions } from './condition.ts'
import { conditionOf, repositoryColumns, type RepositoryRow } from './repository-conditions.ts'

/** Finds active repositories whose latest requests were all refused. */
export const findRefusedSources: FindConditions = async (trx, { workspaceIds }) => {
  const { rows } = await trx.raw<{ rows: (RepositoryRow & { code: RefusalCode })[] }>(
    `
    select ${repositoryColumns}, latest.count, latest.since, latest.code
    from repositories
    cross join lateral (${refusedSource()}) as latest
    where repositories.workspace_id = any (:workspaceIds)
      and deleted_at is null
    `,
    { workspaceIds },
  )
  return rows.map(({ code, ...row }) => {
    const condition = conditionOf(row, refusals[code].remedy)
    return { ...condition, details: { ...condition.details, error: { code } } }
  })
}
