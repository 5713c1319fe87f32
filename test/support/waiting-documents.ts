import type { Database } from '../../src/db/database.ts'

/** Copies a document that waits for an enrichment, as if many more had been received. @param waitsUntil SQL */
export const copyWaitingDocument = async (
  db: Database,
  { id, workspaceId, enrichmentId }: { id: string; workspaceId: string; enrichmentId: string },
  { copies, waitsUntil }: { copies: number; waitsUntil: string },
): Promise<void> => {
  await db.raw(
    `
    with copies as (
      insert into documents
      select (jsonb_populate_record(documents, jsonb_build_object('id', 'COPY' || lpad(number::text, 22, '0'), 'archive_document_id', null))).*
      from documents, generate_series(1, :copies::integer) as number
      where id = :id
      returning id
    )
    insert into document_enrichments (document_id, workspace_id, enrichment_id, waits_until, ends_at)
    select id, :workspaceId, :enrichmentId, ${waitsUntil}, now() + interval '1 day'
    from copies
    `,
    { id, workspaceId, enrichmentId, copies },
  )
}
