import type { Database } from '../db/database.ts'

/** A document that the source system has deleted here, or one component of a document that is here. */
export interface Deletion {
  docId: string
  /** Null if the whole document was deleted. */
  compId: string | null
  /** Time of the deletion; of a component, the time at which its document was last changed. */
  deletedAt: Date
}

/**
 * Lists what the source system has deleted here, also documents that only the upstream had, by docId: the upstream may still have it. A
 * component counts as deleted if an update of the whole document has left it out. A docId that was used again, or that was erased only, is
 * left out.
 */
export const listDeletions = async (db: Database, repositoryId: string): Promise<Deletion[]> => {
  const { rows } = await db.raw<{ rows: Deletion[] }>(
    `
    with deleted as (
      select doc_id, deleted_at
      from archive_documents
      where repository_id = :repositoryId
        and deleted_at is not null
      union all
      select doc_id, deleted_at
      from upstream_deletions
      where repository_id = :repositoryId
        and by_source
    )
    select doc_id as "docId", null as "compId", max(deleted_at) as "deletedAt"
    from deleted
    where not exists (
      select
      from archive_documents as live
      where repository_id = :repositoryId
        and live.doc_id = deleted.doc_id
        and live.deleted_at is null
    )
    group by doc_id
    union all
    select doc_id, comp_id, modified_at
    from archive_documents, unnest(deleted_components) as comp_id
    where repository_id = :repositoryId
      and deleted_at is null
    union all
    -- Of an earlier document of the docId. One that was changed since its creation may have had the component: retention removes versions. It
    -- also removes what was erased.
    select replaced.doc_id, replaced.comp_id, max(replaced.superseded_at)
    from documents as replaced
    join archive_documents as live on live.repository_id = replaced.repository_id and live.doc_id = replaced.doc_id and live.deleted_at is null
    where replaced.workspace_id = (select workspace_id from repositories where id = :repositoryId)
      and replaced.repository_id = :repositoryId
      and replaced.superseded_at is not null
      and replaced.archive_document_id <> live.id
      and live.modified_at = live.created_at
      and replaced.comp_id <> all(live.erased_components)
      and not exists (
        select
        from documents as sent
        where sent.archive_document_id = live.id
          and sent.comp_id = replaced.comp_id
          and sent.superseded_at is null
      )
    group by replaced.doc_id, replaced.comp_id
    order by 1, 2
    `,
    { repositoryId },
  )
  return rows
}
