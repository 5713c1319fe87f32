import { currentTerms, traceOf, workspaceColumn, type DeliveryTermsConfig, type StoredWorkspace } from '../archive/delivery-input.ts'
import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database } from '../db/database.ts'
import { addMessages, type StartEnrichment } from '../db/outbox.ts'

const dayMs = 86_400_000

interface Found {
  repoId: string
  docId: string
  compId: string
  traceparent: string | null
  workspace: StoredWorkspace
  isContentKept: boolean
  /** Null if no active enrichment serves the repository. */
  enrichmentId: string | null
  lateDays: number | null
}

/**
 * Creates the function that has the calls for a document made again, also if its enrichment has ended, or if it arrived before there was one.
 * A document that is being enriched is tried at once. What was found stays until a call finds something else.
 */
export const createRunAgain =
  (db: Database, config: DeliveryTermsConfig) =>
  /** @returns the committed messages @throws `AppError` 404, or 409 */
  ({ workspaceId, documentId, actor }: { workspaceId: string; documentId: string; actor: AuditActor }): Promise<StartEnrichment[]> =>
    db.transaction(async (trx) => {
      const { rows } = await trx.raw<{ rows: Found[] }>(
        `
        select
          documents.repo_id as "repoId", doc_id as "docId", comp_id as "compId", traceparent, content_id is not null as "isContentKept",
          enrichments.id as "enrichmentId", late_days as "lateDays",${workspaceColumn}
        from documents
        join workspaces on workspaces.id = documents.workspace_id
        left join enrichment_repositories on enrichment_repositories.repository_id = documents.repository_id
        left join enrichments on enrichments.id = enrichment_id and is_active
        where documents.workspace_id = :workspaceId
          and documents.id = :documentId
        for no key update of documents
        `,
        { workspaceId, documentId },
      )
      const [found] = rows
      if (!found) throw notFound()
      const { enrichmentId, lateDays, isContentKept, traceparent, workspace, ...document } = found
      if (enrichmentId === null) throw new AppError('conflict', 'The repository of the document has no active enrichment.')
      // An erasure has removed its fields, too.
      if (!isContentKept)
        throw new AppError('conflict', 'The content of the document is no longer kept, so its business data is not fetched again.')
      await trx.raw(
        `
        insert into document_enrichments (document_id, workspace_id, enrichment_id, waits_until, ends_at)
        values (:documentId, :workspaceId, :enrichmentId, now(), now() + :lateDays::integer * interval '1 day')
        on conflict (document_id) do update
        set
          enrichment_id = excluded.enrichment_id, status = 'pending', steps = '[]', attempts = 0,
          ends_at = greatest(document_enrichments.ends_at, excluded.ends_at), updated_at = now()
        where document_enrichments.status <> 'pending'
        `,
        { documentId, workspaceId, enrichmentId, lateDays },
      )
      const input = {
        documentId,
        ...document,
        ...traceOf({ traceparent }),
        ...currentTerms(workspace, config),
        destinations: [],
        enrichment: { waitMs: 0, lateMs: lateDays! * dayMs },
      }
      const messages: StartEnrichment[] = [{ kind: 'startEnrichment', requestId: newId(), input }]
      await addMessages(trx, messages)
      await record(trx, {
        workspaceId,
        event: 'document.enriched',
        subjectId: documentId,
        description: `Business data of document ${document.repoId}/${document.docId}/${document.compId} was asked for again.`,
        metadata: { enrichment_id: enrichmentId },
        actor,
      })
      return messages
    })

export type RunAgain = ReturnType<typeof createRunAgain>
