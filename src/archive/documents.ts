import type { Database } from '../db/database.ts'
import { createStatement } from '../db/statement.ts'
import type { ContentStoreKind } from '../domain/content-store.ts'
import { lockArchiveDocument, supersedeDocuments, type LockConfig } from './locks.ts'
import { lockDocId, recordDeletion } from './upstream-documents.ts'

/** A component as the source system reads it. */
export interface ArchiveComponent {
  compId: string
  contentType: string
  sizeBytes: number
  createdAt: Date
  modifiedAt: Date
  /** Null after retention has removed the bytes. */
  content: { id: string; store: ContentStoreKind; sizeBytes: number; appends: number } | null
}

/** A bundle of components that the source system knows by a docId. */
export interface ArchiveDocument {
  docId: string
  createdAt: Date
  modifiedAt: Date
  /** In the order in which they were sent. */
  components: ArchiveComponent[]
}

type Row = Pick<ArchiveDocument, 'createdAt' | 'modifiedAt'> & {
  component: Omit<ArchiveComponent, 'createdAt' | 'modifiedAt'> | null
  componentCreatedAt: Date
  componentModifiedAt: Date
}

const findDocument = createStatement<Row>(
  'find-archive-document',
  `
  select
    archive_documents.created_at as "createdAt", archive_documents.modified_at as "modifiedAt",
    case when documents.id is not null then jsonb_build_object(
      'compId', comp_id, 'contentType', content_type, 'sizeBytes', documents.size_bytes,
      'content', case when content_id is not null then jsonb_build_object(
        'id', content_id, 'store', contents.store, 'sizeBytes', documents.size_bytes, 'appends', appends) end
    ) end as component,
    coalesce(component_created_at, received_at) as "componentCreatedAt", documents.modified_at as "componentModifiedAt"
  from archive_documents
  left join documents on documents.archive_document_id = archive_documents.id and superseded_at is null
  left join contents on contents.id = documents.content_id
  where archive_documents.repository_id = :repositoryId
    and archive_documents.doc_id = :docId
    and deleted_at is null
  order by position, documents.id
  `,
)

export const createArchiveDocuments = (db: Database, config: LockConfig = {}) => ({
  exists: async (repositoryId: string, docId: string): Promise<boolean> => {
    const row = await db('archive_documents')
      .select('id')
      .where({ repository_id: repositoryId, doc_id: docId })
      .whereNull('deleted_at')
      .first()
    return row !== undefined
  },

  /**
   * Finds the docProt of documents: the letters of the accesses that require a signature. It is null for a document that was created
   * without docProt. @returns a map by docId, without the documents that do not exist
   */
  findDocProts: async (repositoryId: string, docIds: string[]): Promise<Map<string, string | null>> => {
    const rows = await db('archive_documents')
      .select<{ docId: string; docProt: string | null }[]>(['doc_id as docId', 'doc_prot as docProt'])
      .where({ repository_id: repositoryId })
      .whereIn('doc_id', docIds)
      .whereNull('deleted_at')
    return new Map(rows.map(({ docId, docProt }) => [docId, docProt]))
  },

  find: async (repositoryId: string, docId: string): Promise<ArchiveDocument | undefined> => {
    const rows = await findDocument(db, { repositoryId, docId })
    const [first] = rows
    if (!first) return undefined
    // An archive document without components is a single row without a component.
    const components = rows.flatMap(({ component, componentCreatedAt, componentModifiedAt }) =>
      component ? [{ ...component, createdAt: componentCreatedAt, modifiedAt: componentModifiedAt }] : [],
    )
    return { docId, createdAt: first.createdAt, modifiedAt: first.modifiedAt, components }
  },

  /**
   * Deletes a document for reading, or one of its components. After the former, the docId can be used again. Nothing else changes:
   * open deliveries continue, and retention decides about the bytes.
   * @param hasUpstream true to remember that the document must not be fetched again
   */
  delete: (
    repositoryId: string,
    docId: string,
    compId?: string,
    hasUpstream = false,
  ): Promise<'deleted' | 'no document' | 'no component'> =>
    db.transaction(async (trx) => {
      const isForever = hasUpstream && compId === undefined
      if (isForever) await lockDocId(trx, repositoryId, docId)
      const id = await lockArchiveDocument(trx, { repositoryId, docId }, config)
      if (id === undefined) return 'no document'
      if (isForever) await recordDeletion(trx, repositoryId, docId)
      const superseded = await supersedeDocuments(trx, id, 'document.deleted', compId === undefined ? undefined : [compId])
      if (compId !== undefined && superseded === 0) return 'no component'
      await trx('archive_documents')
        .where({ id })
        .update(compId === undefined ? { deleted_at: trx.fn.now() } : { modified_at: trx.raw('greatest(modified_at, now())') })
      return 'deleted'
    }),
})

export type ArchiveDocuments = ReturnType<typeof createArchiveDocuments>
