import type { DeliveryStatus, DocumentStatus } from '../domain/status.ts'
import type { Database, Transaction } from './database.ts'
import { pageOf, type Page, type PageRequest } from './page.ts'

export interface DocumentDelivery {
  destinationId: string
  destinationName: string
  status: DeliveryStatus
  deliveredAt: Date | null
  attempts: number
  path: string
}

export interface Document {
  id: string
  docId: string
  repoId: string
  compId: string
  contentType: string
  sizeBytes: number
  status: DocumentStatus
  receivedAt: Date
  erpObjectType: string | null
  erpObjectId: string | null
  arObject: string | null
  deliveries: DocumentDelivery[]
}

export interface DocumentFilter {
  repoId?: string | undefined
  status?: DocumentStatus | undefined
  /** Both inclusive. */
  dateFrom?: Date | undefined
  dateTo?: Date | undefined
}

/** What a document is about, as far as it is known; null takes it back. */
export interface MetadataChange {
  erpObjectType?: string | null | undefined
  erpObjectId?: string | null | undefined
  arObject?: string | null | undefined
}

/** Where the bytes of a document lie, and how to name them. */
export interface DocumentContent {
  compId: string
  contentType: string
  content: { id: string; sizeBytes: number; store: 'postgres' | 's3' }
}

const columns = [
  'id',
  'doc_id as docId',
  'repo_id as repoId',
  'comp_id as compId',
  'content_type as contentType',
  'size_bytes as sizeBytes',
  'status',
  'received_at as receivedAt',
  'erp_object_type as erpObjectType',
  'erp_object_id as erpObjectId',
  'ar_object as arObject',
]

/** Those of a workspace that a repository and a time of receipt are asked for. */
export const documentsOf = (
  db: Database | Transaction,
  workspaceId: string,
  { repoId, dateFrom, dateTo }: Pick<DocumentFilter, 'repoId' | 'dateFrom' | 'dateTo'>,
) => {
  const query = db('documents').where({ 'documents.workspace_id': workspaceId })
  if (repoId !== undefined) query.where({ repo_id: repoId })
  if (dateFrom) query.where('received_at', '>=', dateFrom)
  if (dateTo) query.where('received_at', '<=', dateTo)
  return query
}

export const createDocuments = (db: Database | Transaction) => {
  /** The deliveries of a whole page in one query. */
  const withDeliveries = async (documents: Omit<Document, 'deliveries'>[]): Promise<Document[]> => {
    if (documents.length === 0) return []
    const { rows } = await db.raw<{ rows: (DocumentDelivery & { documentId: string })[] }>(
      `
      select
        document_id as "documentId", destination_id as "destinationId", destinations.name as "destinationName",
        deliveries.status, delivered_at as "deliveredAt", attempts, coalesce(location, path) as path
      from deliveries
      join destinations on destinations.id = deliveries.destination_id
      where document_id = any (?)
      order by document_id, destination_id
      `,
      [documents.map(({ id }) => id)],
    )
    const byDocument = Map.groupBy(rows, (row) => row.documentId)
    return documents.map((document) => ({ ...document, deliveries: byDocument.get(document.id) ?? [] }))
  }

  return {
    /** Newest first. */
    list: async (workspaceId: string, filter: DocumentFilter & PageRequest): Promise<Page<Document>> => {
      const { status, page, perPage } = filter
      const query = documentsOf(db, workspaceId, filter)
      if (status) query.where({ status })
      query.orderBy([
        { column: 'received_at', order: 'desc' },
        { column: 'id', order: 'desc' },
      ])
      const { items, total } = await pageOf<Omit<Document, 'deliveries'>>(query, columns, { page, perPage })
      return { items: await withDeliveries(items), total }
    },

    find: async (workspaceId: string, id: string): Promise<Document | undefined> => {
      const rows = await db('documents').select<Omit<Document, 'deliveries'>[]>(columns).where({ workspace_id: workspaceId, id })
      return (await withDeliveries(rows))[0]
    },

    /**
     * Sets what a docId is about, on everything that was ever received under it: each component, and what an update has replaced, as
     * that was delivered too. @returns how many documents there are, and the values of the newest
     */
    setMetadata: async (
      workspaceId: string,
      { repoId, docId }: { repoId: string; docId: string },
      { erpObjectType, erpObjectId, arObject }: MetadataChange,
    ): Promise<({ documents: number } & Pick<Document, 'erpObjectType' | 'erpObjectId' | 'arObject'>) | undefined> => {
      const changed: Pick<Document, 'id' | 'erpObjectType' | 'erpObjectId' | 'arObject'>[] = await db('documents')
        .where({ workspace_id: workspaceId, repo_id: repoId, doc_id: docId })
        .update({
          ...(erpObjectType !== undefined && { erp_object_type: erpObjectType }),
          ...(erpObjectId !== undefined && { erp_object_id: erpObjectId }),
          ...(arObject !== undefined && { ar_object: arObject }),
        })
        .returning(['id', 'erp_object_type as erpObjectType', 'erp_object_id as erpObjectId', 'ar_object as arObject'])
      const newest = changed.toSorted((one, other) => (one.id < other.id ? 1 : -1))[0]
      return newest && { ...newest, documents: changed.length }
    },

    /** Undefined where there is no such document, or nothing was kept of it. */
    findContent: async (workspaceId: string, id: string): Promise<DocumentContent | undefined> => {
      const row = await db('documents')
        .join('contents', 'contents.id', 'documents.content_id')
        .select({
          compId: 'comp_id',
          contentType: 'content_type',
          contentId: 'contents.id',
          sizeBytes: 'contents.size_bytes',
          store: 'store',
        })
        .where({ 'documents.workspace_id': workspaceId, 'documents.id': id })
        .first()
      if (!row) return undefined
      const { compId, contentType, contentId, sizeBytes, store } = row
      return { compId, contentType, content: { id: contentId, sizeBytes, store } }
    },
  }
}
