import { AppError } from '../base/errors.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { openQueue } from '../db/side-work.ts'

interface Found {
  repoId: string
  docId: string
  compId: string
  isContentKept: boolean
  /** The active enrichments of the repository. */
  enrichments: { id: string; lateDays: number }[]
}

/**
 * Creates the function that makes the calls for a document again, even if its enrichment has ended, or if it arrived before there was one.
 * A document that is being enriched is tried at once. What was found stays until a call finds something else.
 */
export const createRunAgain =
  (db: Database) =>
  /** @throws `AppError` 404, or 409 */
  ({ workspaceId, documentId, actor }: { workspaceId: string; documentId: string; actor: AuditActor }): Promise<void> =>
    db.transaction(async (trx) => {
      const { rows } = await trx.raw<{ rows: Found[] }>(
        `
        select
          documents.repo_id as "repoId", doc_id as "docId", comp_id as "compId", content_id is not null as "isContentKept",
          array(
            select jsonb_build_object('id', enrichments.id, 'lateDays', late_days)
            from enrichment_repositories
            join enrichments on enrichments.id = enrichment_id
            where enrichment_repositories.repository_id = documents.repository_id
              and is_active
            order by enrichments.id
          ) as enrichments
        from documents
        where documents.workspace_id = :workspaceId
          and documents.id = :documentId
        for no key update of documents
        `,
        { workspaceId, documentId },
      )
      const [found] = rows
      if (!found) throw notFound()
      const { enrichments, isContentKept, ...document } = found
      if (enrichments.length === 0) throw new AppError('conflict', 'The repository of the document has no active enrichment.')
      // An erasure has also removed its fields.
      if (!isContentKept)
        throw new AppError('conflict', 'The content of the document is no longer kept, so its business data is not fetched again.')
      // Before the others, and also if the system has failed.
      await trx.raw(
        `
        insert into document_enrichments as asked (document_id, workspace_id, enrichment_id, waits_until, ends_at, next_try_at)
        select :documentId, :workspaceId, id, now(), now() + "lateDays" * interval '1 day', '-infinity'
        from jsonb_to_recordset(:enrichments::jsonb) as enrichments (id text, "lateDays" integer)
        on conflict (document_id, enrichment_id) do update
        set
          status = 'pending',
          steps = case when asked.status = 'pending' then asked.steps else '[]' end,
          attempts = case when asked.status = 'pending' then asked.attempts else 0 end,
          ends_at = case when asked.status = 'pending' then asked.ends_at else greatest(asked.ends_at, excluded.ends_at) end,
          next_try_at = '-infinity',
          updated_at = now()
        `,
        { documentId, workspaceId, enrichments: JSON.stringify(enrichments) },
      )
      for (const { id } of enrichments) await openQueue(trx, 'enrichment', id)
      await record(trx, {
        workspaceId,
        event: 'document.enriched',
        subjectId: documentId,
        description: `Business data of document ${document.repoId}/${document.docId}/${document.compId} was asked for again.`,
        metadata: { enrichment_ids: enrichments.map(({ id }) => id) },
        actor,
      })
    })

export type RunAgain = ReturnType<typeof createRunAgain>
