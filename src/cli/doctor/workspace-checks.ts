import type { Database } from '../../db/database.ts'

/** Lists destinations whose last delivery failed. Reads the table of destinations, which is small. */
export const listFailingDestinations = async (db: Database): Promise<{ id: string; name: string; workspace: string }[]> => {
  const { rows } = await db.raw<{ rows: { id: string; name: string; workspace: string }[] }>(
    `
    select
      destination.id,
      destination.name,
      workspace.user_slug || '/' || workspace.workspace_slug as workspace
    from destinations as destination
    join workspaces as workspace on workspace.id = destination.workspace_id
    where destination.status = 'failing'
      and destination.deleted_at is null
    order by destination.id
    `,
  )
  return rows
}

const maxCounted = 1_000

/** Counts the failed documents of each workspace, up to a limit. The index documents_by_status serves it. */
export const countFailedDocuments = async (db: Database): Promise<{ workspace: string; count: number; more: boolean }[]> => {
  const { rows } = await db.raw<{ rows: { workspace: string; count: number }[] }>(
    `
    select
      workspace.user_slug || '/' || workspace.workspace_slug as workspace,
      failed.count
    from workspaces as workspace
    cross join lateral (
      select count(*)::integer as count
      from (
        select
        from documents
        where workspace_id = workspace.id
          and status = 'failed'
        limit :limit
      ) as document
    ) as failed
    where failed.count > 0
    order by workspace
    `,
    { limit: maxCounted + 1 },
  )
  return rows.map(({ workspace, count }) => ({ workspace, count: Math.min(count, maxCounted), more: count > maxCounted }))
}
