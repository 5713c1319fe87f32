import { createBatches, readLimits } from '../db/batches.ts'
import { createStatement, type Database } from '../db/database.ts'
import type { ContentStoreKind } from '../domain/content-store.ts'
import { requireRemovable } from './legal-holds.ts'
import { lockArchiveDocument, supersedeDocuments, type LockConfig } from './locks.ts'
import { lockDocId, recordDeletion, recordDeletionOfFetched } from './upstream-documents.ts'

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
  /** The components, in the order in which they were sent. */
  components: ArchiveComponent[]
}

interface Row {
  /** Position of the document among those that are asked for, from 1. */
  n: number
  createdAt: Date
  modifiedAt: Date
  /** Null if the document has no component. */
  compId: string | null
  contentType: string
  sizeBytes: number
  componentCreatedAt: Date
  componentModifiedAt: Date
  contentId: string | null
  store: ContentStoreKind
  appends: number
}

// `offset 0` keeps the planner from joining whole tables: it takes an array for ten rows, and looks each of them up. With the subqueries,
// it does so for every array, and does not plan each execution again.
const findDocuments = createStatement<Row>(
  'find-archive-documents',
  `
  select
    n, archive_document.created_at as "createdAt", archive_document.modified_at as "modifiedAt", comp_id as "compId",
    content_type as "contentType", size_bytes as "sizeBytes", component_created_at as "componentCreatedAt",
    component_modified_at as "componentModifiedAt", content_id as "contentId", store, appends
  from unnest((select :repositoryIds::text[]), (select :docIds::text[])) with ordinality as wanted (repository_id, doc_id, n)
  cross join lateral (
    select id, created_at, modified_at
    from archive_documents
    where archive_documents.repository_id = wanted.repository_id
      and archive_documents.doc_id = wanted.doc_id
      and deleted_at is null
    offset 0
  ) as archive_document
  left join lateral (
    select
      documents.id, comp_id, content_type, documents.size_bytes, position, content_id, store, appends,
      coalesce(component_created_at, received_at) as component_created_at, documents.modified_at as component_modified_at
    from documents
    left join contents on contents.id = documents.content_id
    where documents.archive_document_id = archive_document.id
      and superseded_at is null
    offset 0
  ) as component on true
  order by n, position, component.id
  `,
)

interface Wanted {
  repositoryId: string
  docId: string
}

/** Returns a document by its rows, one for each component. @returns undefined without rows */
const documentOf = (docId: string, rows: Row[]): ArchiveDocument | undefined => {
  const [first] = rows
  if (!first) return undefined
  const components = rows.flatMap(({ compId, contentType, sizeBytes, contentId, store, appends, ...times }) => {
    if (compId === null) return []
    const content = contentId === null ? null : { id: contentId, store, sizeBytes, appends }
    return { compId, contentType, sizeBytes, createdAt: times.componentCreatedAt, modifiedAt: times.componentModifiedAt, content }
  })
  return { docId, createdAt: first.createdAt, modifiedAt: first.modifiedAt, components }
}

/** Creates a function that finds a document. Requests that arrive together share a query. */
const createFind = (db: Database) => {
  const findTogether = createBatches((wanted: Wanted[]) => {
    const finding = findDocuments(db, {
      repositoryIds: wanted.map(({ repositoryId }) => repositoryId),
      docIds: wanted.map(({ docId }) => docId),
    }).then((rows) => Map.groupBy(rows, ({ n }) => n))
    return wanted.map(async ({ docId }, index) => documentOf(docId, (await finding).get(index + 1) ?? []))
  }, readLimits)
  return (repositoryId: string, docId: string): Promise<ArchiveDocument | undefined> => findTogether({ repositoryId, docId })
}

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

  find: createFind(db),

  /**
   * Deletes a document for reading, or one of its components. After the former, the docId can be used again. Nothing else changes:
   * open deliveries continue, and retention decides about the bytes. A document that an upstream has, or may have, is remembered, so that
   * it is never fetched again.
   * @throws `OnLegalHold` if the document, or one of its components, is on hold
   * @param upstream `has it` to remember the document even if it is not here: `no document` is then no failure
   */
  delete: (
    repositoryId: string,
    docId: string,
    compId?: string,
    upstream: 'none' | 'may have it' | 'has it' = 'none',
  ): Promise<'deleted' | 'no document' | 'no component'> =>
    db.transaction(async (trx) => {
      const isWhole = compId === undefined
      if (isWhole && upstream !== 'none') await lockDocId(trx, repositoryId, docId, config)
      const id = await lockArchiveDocument(trx, { repositoryId, docId }, config)
      if (id === undefined) {
        if (upstream === 'has it') {
          await requireRemovable(trx, repositoryId, docId)
          await recordDeletion(trx, repositoryId, docId)
        }
        return 'no document'
      }
      await requireRemovable(trx, repositoryId, docId)
      const superseded = await supersedeDocuments(trx, id, 'document.deleted', isWhole ? {} : { compIds: [compId], replacedBy: [] })
      if (!isWhole && superseded === 0) return 'no component'
      // After the documents are locked, as by an erasure: see test/db/lock-order.db.test.ts.
      if (isWhole) await (upstream === 'none' ? recordDeletionOfFetched : recordDeletion)(trx, repositoryId, docId)
      await trx('archive_documents')
        .where({ id })
        .update(isWhole ? { deleted_at: trx.fn.now() } : { modified_at: trx.raw('greatest(modified_at, now())') })
      return 'deleted'
    }),
})

export type ArchiveDocuments = ReturnType<typeof createArchiveDocuments>
