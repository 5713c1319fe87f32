import type { Database } from '../db/database.ts'

/** A document that the source system has deleted here, or one component of a document that is here. */
export interface Deletion {
  docId: string
  /** Null if the whole document was deleted. */
  compId: string | null
  deletedAt: Date
}

/**
 * Lists what the source system has deleted here, also documents that only the upstream had, by docId: the upstream may still have it. A
 * component counts as deleted if an update of the whole document has left it out. A docId that was used again, or that was erased only, is
 * left out.
 */
export const listDeletions = async (
  db: Database,
  { id, workspaceId, repoId }: { id: string; workspaceId: string; repoId: string },
): Promise<Deletion[]> => {
  const { rows } = await db.raw<{ rows: Deletion[] }>(
    `
    with deleted as (
      select doc_id, null as comp_id, deleted_at
      from archive_documents
      where repository_id = :id
        and deleted_at is not null
      union all
      select doc_id, null, deleted_at
      from upstream_deletions
      where repository_id = :id
        and by_source
    ), replaced as (
      select doc_id, comp_id, superseded_at
      from documents
      where workspace_id = :workspaceId
        and repo_id = :repoId
        and repository_id = :id
        and superseded_at is not null
    ), live as (
      select id, doc_id
      from archive_documents
      where repository_id = :id
        and deleted_at is null
    )
    select doc_id as "docId", comp_id as "compId", max(deleted_at) as "deletedAt"
    from deleted
    where doc_id not in (select doc_id from live)
    group by doc_id, comp_id
    union all
    select doc_id, comp_id, max(superseded_at)
    from replaced
    join live using (doc_id)
    where not exists (
      select
      from documents
      where archive_document_id = live.id
        and documents.comp_id = replaced.comp_id
        and documents.superseded_at is null
    )
    group by doc_id, comp_id
    order by 1, 2
    `,
    { id, workspaceId, repoId },
  )
  return rows
}
