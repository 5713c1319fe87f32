import { lockArchiveDocument, supersedeDocuments, type LockLimit } from './archive-locks.ts'
import type { Database } from './database.ts'

/** A component as the source system reads it. */
export interface ArchivedComponent {
  compId: string
  contentType: string
  sizeBytes: number
  createdAt: Date
  modifiedAt: Date
  /** Null once the bytes are no longer kept. */
  content: { id: string; store: 'postgres' | 's3'; sizeBytes: number } | null
}

/** What the source system knows by a docId. */
export interface ArchiveDocument {
  docId: string
  createdAt: Date
  modifiedAt: Date
  /** In the order in which they were sent. */
  components: ArchivedComponent[]
}

interface Row {
  created_at: Date
  modified_at: Date
  comp_id: string | null
  content_type: string
  size_bytes: number
  component_created_at: Date
  component_modified_at: Date
  content_id: string | null
  store: 'postgres' | 's3'
}

export const createArchiveDocuments = (db: Database, limit: LockLimit) => ({
  exists: async (repositoryId: string, docId: string): Promise<boolean> => {
    const row = await db('archive_documents')
      .select('id')
      .where({ repository_id: repositoryId, doc_id: docId })
      .whereNull('deleted_at')
      .first()
    return row !== undefined
  },

  /** The letters of the accesses that need a signature; null where its create did not say, undefined where there is no such document. */
  findDocProt: async (repositoryId: string, docId: string): Promise<string | null | undefined> => {
    const row = await db('archive_documents')
      .select<{ doc_prot: string | null } | undefined>('doc_prot')
      .where({ repository_id: repositoryId, doc_id: docId })
      .whereNull('deleted_at')
      .first()
    return row?.doc_prot
  },

  find: async (repositoryId: string, docId: string): Promise<ArchiveDocument | undefined> => {
    const { rows } = await db.raw<{ rows: Row[] }>(
      `
      select
        archive_documents.created_at, archive_documents.modified_at,
        comp_id, content_type, documents.size_bytes,
        coalesce(component_created_at, received_at) as component_created_at, documents.modified_at as component_modified_at,
        content_id, contents.store
      from archive_documents
      left join documents on documents.archive_document_id = archive_documents.id and superseded_at is null
      left join contents on contents.id = documents.content_id
      where archive_documents.repository_id = ?
        and archive_documents.doc_id = ?
        and deleted_at is null
      order by position, documents.id
      `,
      [repositoryId, docId],
    )
    const [first] = rows
    if (!first) return undefined
    return { docId, createdAt: first.created_at, modifiedAt: first.modified_at, components: rows.flatMap(toComponent) }
  },

  /**
   * Ends a document for reading, or one component of it, at once; the docId is free again after the former. Nothing else is touched:
   * deliveries under way go on, and bytes stay as long as retention has it.
   */
  end: (repositoryId: string, docId: string, compId?: string): Promise<'ended' | 'no document' | 'no component'> =>
    db.transaction(async (trx) => {
      const id = await lockArchiveDocument(trx, { repositoryId, docId }, limit)
      if (id === undefined) return 'no document'
      const ended = await supersedeDocuments(trx, id, compId === undefined ? undefined : [compId])
      if (compId !== undefined && ended === 0) return 'no component'
      await trx('archive_documents')
        .where({ id })
        .update(compId === undefined ? { deleted_at: trx.fn.now() } : { modified_at: trx.raw('greatest(modified_at, now())') })
      return 'ended'
    }),
})

export type ArchiveDocuments = ReturnType<typeof createArchiveDocuments>

const toComponent = (row: Row): ArchivedComponent[] => {
  // an empty document is a row without a component
  if (row.comp_id === null) return []
  return [
    {
      compId: row.comp_id,
      contentType: row.content_type,
      sizeBytes: row.size_bytes,
      createdAt: row.component_created_at,
      modifiedAt: row.component_modified_at,
      content: row.content_id === null ? null : { id: row.content_id, store: row.store, sizeBytes: row.size_bytes },
    },
  ]
}
