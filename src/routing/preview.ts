import { enrichedData } from '../archive/enriched-data.ts'
import { metadataSelection } from '../archive/metadata.ts'
import type { Database } from '../db/database.ts'
import type { ConnectionSettings } from '../domain/connection-settings.ts'
import { pathOf, unmetCondition, type RoutedDocument } from '../domain/fan-out.ts'

/** Documents that a preview reads, at most. */
export const previewMaxDocuments = 50

/** Returns what a connection with these settings would do with the newest documents of repositories, newest first. */
export const previewDocuments = async (db: Database, workspaceId: string, repositoryIds: string[], settings: ConnectionSettings) => {
  // The index documents_by_repository has the newest documents of each repository together.
  const { rows } = await db.raw<{ rows: (RoutedDocument & { documentId: string; repositoryName: string })[] }>(
    `
      select
        repository.repo_id as "repoId", repository.name as "repositoryName", newest.*, fields
      from repositories as repository
      cross join lateral (
        select
          id as "documentId", doc_id as "docId", comp_id as "compId", content_type as "contentType", size_bytes as "sizeBytes",
          ${metadataSelection}, received_at as "receivedAt"
        from documents
        where workspace_id = :workspaceId
          and documents.repo_id = repository.repo_id
        order by received_at desc, id desc
        limit :limit
      ) as newest
      cross join lateral (select newest."documentId" as id) as documents
      ${enrichedData}
      where repository.workspace_id = :workspaceId
        and repository.id = any (:repositoryIds)
      order by newest."receivedAt" desc, newest."documentId" desc
      limit :limit
      `,
    { workspaceId, repositoryIds, limit: previewMaxDocuments },
  )
  return rows.map(({ erpObjectType, erpObjectId, arObject, fileName, description, fields, ...document }) => {
    const metadata = { erpObjectType, erpObjectId, arObject }
    const planned = { ...document, ...metadata, fileName, description, fields }
    const unmet = unmetCondition(settings, planned) ?? null
    return { ...document, metadata, unmetCondition: unmet, path: unmet === null ? pathOf(settings, planned) : null }
  })
}
