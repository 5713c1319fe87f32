import { enrichedData } from '../archive/enriched-data.ts'
import type { Database } from '../db/database.ts'
import type { ConnectionSettings } from '../domain/connection-settings.ts'
import { pathOf, unmetCondition, type FilterCondition, type RoutedDocument } from '../domain/fan-out.ts'
import type { BusinessMetadata } from '../domain/template.ts'

/** The effect that a connection would have on a document. */
export interface PreviewedDocument extends Omit<RoutedDocument, 'fields' | keyof BusinessMetadata> {
  repositoryName: string
  metadata: BusinessMetadata
  documentId: string
  /** The path at the destinations; null if the filter passes the document over. */
  path: string | null
  /** The first condition of the filter that the document does not meet. */
  unmetCondition: FilterCondition | null
}

/** Documents that a preview reads, at most. */
export const previewMaxDocuments = 50

/** Returns what a connection with these settings would do with the newest documents of repositories, newest first. */
export const previewDocuments = async (
  db: Database,
  workspaceId: string,
  repositoryIds: string[],
  settings: ConnectionSettings,
): Promise<PreviewedDocument[]> => {
  // The index documents_by_repository has the newest documents of each repository together.
  const { rows } = await db.raw<{ rows: (RoutedDocument & { documentId: string; repositoryName: string })[] }>(
    `
      select
        newest.id as "documentId", newest.doc_id as "docId", repository.repo_id as "repoId", repository.name as "repositoryName", newest.comp_id as "compId",
        newest.content_type as "contentType", newest.size_bytes as "sizeBytes", newest.erp_object_type as "erpObjectType",
        newest.erp_object_id as "erpObjectId", newest.ar_object as "arObject", newest.received_at as "receivedAt",
        fields
      from repositories as repository
      cross join lateral (
        select id, doc_id, comp_id, content_type, size_bytes, erp_object_type, erp_object_id, ar_object, received_at
        from documents
        where workspace_id = :workspaceId
          and documents.repo_id = repository.repo_id
        order by received_at desc, id desc
        limit :limit
      ) as newest
      cross join lateral (select newest.id) as documents
      ${enrichedData}
      where repository.workspace_id = :workspaceId
        and repository.id = any (:repositoryIds)
      order by newest.received_at desc, newest.id desc
      limit :limit
      `,
    { workspaceId, repositoryIds, limit: previewMaxDocuments },
  )
  return rows.map(({ erpObjectType, erpObjectId, arObject, fields, ...document }) => {
    const metadata = { erpObjectType, erpObjectId, arObject }
    const planned = { ...document, ...metadata, fields }
    const unmet = unmetCondition(settings, planned) ?? null
    return { ...document, metadata, unmetCondition: unmet, path: unmet === null ? pathOf(settings, planned) : null }
  })
}
