import { z } from 'zod'
import { presentCounts } from '../db/counters.ts'
import type { Database } from '../db/database.ts'
import type { Page, PageRequest } from '../db/page.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { timestamp } from '../domain/date-range.ts'
import { isConnected } from '../routing/repository-warnings.ts'

export const discardedFields = z.object({
  repo_id: z.string(),
  repository_id: z.string().nullable().describe('Null if the repository was deleted.'),
  is_connected: z.boolean().describe('Whether a connection, active or not, leads from the repository to a destination now.'),
  documents: z.int(),
  newest_at: timestamp.describe('When the last of these documents was received.'),
})

/** Documents of one repository that were discarded for lack of a connection, and were neither acknowledged nor replayed. */
type DiscardedGroup = CamelCasedOutput<typeof discardedFields> & { id: string }

const statement = `
  with present as (
    select repo_id, sum(count)::bigint as documents
    from (
      ${presentCounts('documents', `and status = 'discarded' and detail = 'unconnected'`)}
    ) as counted
    group by repo_id
    having sum(count) > 0
  ), page as (
    select *
    from present
    order by documents desc, repo_id
    offset :offset
    limit :limit
  )
  select
    page.repo_id as id, page.repo_id as "repoId", repositories.id as "repositoryId", documents, newest.received_at as "newestAt", total,
    ${isConnected} as "isConnected"
  from (select count(*) as total from present) as counted
  left join page on true
  left join repositories
    on repositories.workspace_id = :workspaceId
    -- Counters have another collation than the index.
    and repositories.repo_id = page.repo_id collate "default"
    and repositories.deleted_at is null
  left join lateral (
    select received_at
    from documents
    where documents.workspace_id = :workspaceId
      and documents.repo_id = page.repo_id collate "default"
      and is_unconnected
      and acknowledged_at is null
    order by id desc
    limit 1
  ) as newest on true
  order by documents desc, page.repo_id
`

export const createDiscarded = (db: Database) => ({
  /** Groups the documents by repository, the largest group first. They are counted by counters, not read. */
  list: async (workspaceId: string, { page, perPage }: PageRequest): Promise<Page<DiscardedGroup>> => {
    const { rows } = await db.raw<{ rows: (DiscardedGroup & { total: number })[] }>(statement, {
      workspaceId,
      offset: (page - 1) * perPage,
      limit: perPage,
    })
    // A page beyond the end has one row, with the total alone. A counter may be ahead of the last row that is read.
    return { items: rows.filter(({ repoId, newestAt }) => repoId !== null && newestAt !== null), total: rows[0]!.total }
  },

  /** Returns true if a connection, active or not, leads from the repository to a destination. */
  isConnected: async (workspaceId: string, repoId: string): Promise<boolean> => {
    const row = await db('repositories')
      .where({ workspace_id: workspaceId, repo_id: repoId, deleted_at: null })
      .whereRaw(isConnected)
      .first<{ id: string } | undefined>('id')
    return row !== undefined
  },
})

export type Discarded = ReturnType<typeof createDiscarded>
