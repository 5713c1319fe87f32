import type { DocumentDelivery } from '../../src/archive/document-list.ts'
import { newId } from '../../src/base/ids.ts'
import type { Database } from '../../src/db/database.ts'
import type { DocumentStatus } from '../../src/domain/delivery-states.ts'

export interface DocumentRow {
  workspaceId: string
  repositoryId: string
  repoId: string
  docId?: string
  status?: DocumentStatus
  receivedAt?: Date
  contentId?: string
  contentType?: string
  compId?: string
  deliveries?: { destinationId: string; connectionId: string; status: DocumentDelivery['status']; deliveredAt?: Date }[]
}

/** Inserts a document as the receiver does, with a content unless it is discarded. @returns its id */
export const insertDocument = async (db: Database, row: DocumentRow): Promise<string> => {
  const id = newId()
  const receivedAt = row.receivedAt ?? new Date()
  let contentId = row.contentId ?? null
  if (contentId === null && row.status !== 'discarded') {
    contentId = newId()
    const content = { store: 'postgres', size_bytes: 5, sha256: Buffer.alloc(32), owned_at: new Date() }
    await db('contents').insert({ id: contentId, workspace_id: row.workspaceId, ...content })
  }
  await db('documents').insert({
    id,
    workspace_id: row.workspaceId,
    repository_id: row.repositoryId,
    content_id: contentId,
    repo_id: row.repoId,
    doc_id: row.docId ?? `DOC${id}`,
    comp_id: row.compId ?? 'data',
    content_type: row.contentType ?? 'application/pdf',
    size_bytes: 5,
    status: row.status ?? 'pending',
    ar_object: 'ZINVOICE',
    received_at: receivedAt,
    modified_at: receivedAt,
    request_id: id,
  })
  for (const delivery of row.deliveries ?? []) {
    await db('deliveries').insert({
      document_id: id,
      destination_id: delivery.destinationId,
      workspace_id: row.workspaceId,
      connection_id: delivery.connectionId,
      status: delivery.status,
      path: `${row.repoId}/${id}/data`,
      attempts: delivery.status === 'pending' ? 0 : 1,
      delivered_at: delivery.deliveredAt ?? null,
    })
  }
  return id
}
