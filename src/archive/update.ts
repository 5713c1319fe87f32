import type { Database, Transaction } from '../db/database.ts'
import type { DocumentMetadata } from '../domain/template.ts'
import { writeIn } from './insert-documents.ts'
import { requireReplaceable } from './legal-holds.ts'
import { lockArchiveDocument, supersedeDocuments } from './locks.ts'
import { metadataSelection, withMetadata } from './metadata.ts'
import { insertDocuments, type CarriedOver, type InsertConfig, type Inserted, type ReceivedDocument } from './receive.ts'

/** A create's content for an existing document: one component of it, or the whole document. */
export interface Update extends ReceivedDocument {
  whole: boolean
}

interface CurrentComponent extends DocumentMetadata {
  compId: string
  contentType: string
  position: number
  createdAt: Date
}

const findCurrentComponents = async (trx: Transaction, archiveDocumentId: string): Promise<CurrentComponent[]> => {
  const { rows } = await trx.raw<{ rows: CurrentComponent[] }>(
    `
    select
      comp_id as "compId", content_type as "contentType", position, coalesce(component_created_at, received_at) as "createdAt",
      ${metadataSelection}
    from documents
    where archive_document_id = ?
      and superseded_at is null
    order by position
    `,
    [archiveDocumentId],
  )
  return rows
}

/** Keeps the known metadata, unless the update sets it. */
const mergeMetadata = (metadata: DocumentMetadata, [current]: CurrentComponent[]): DocumentMetadata =>
  current ? withMetadata(metadata, current) : metadata

/** A replaced component keeps its creation date and its type. An update of the whole document sets the order of the components. */
const carryOver = ({ components, whole }: Update, current: CurrentComponent[]): CarriedOver[] => {
  const nextPosition = Math.max(-1, ...current.map(({ position }) => position)) + 1
  return components.map(({ compId }, index) => {
    const replaced = current.find((component) => component.compId === compId)
    const position = whole ? index : (replaced?.position ?? nextPosition)
    return { position, contentType: replaced?.contentType, createdAt: replaced?.createdAt }
  })
}

/**
 * Commits an update, like a create: the new documents replace the current ones for reading and are delivered as well. Deliveries of the
 * replaced documents continue. Contents are kept even if no destination is wired any more: the source system must not read old bytes.
 * The function returns `found: false` if the document does not exist; the contents are then still unowned.
 * @throws `OnLegalHold` if the update leaves components out of a document on hold. What it replaces stays in the relay
 */
export const createUpdate =
  (db: Database, config: InsertConfig) =>
  (update: Update): Promise<Omit<Inserted, 'inserted'> & { found: boolean }> =>
    db.transaction(async (trx) => {
      const { repository, docId, components, whole } = update
      const archiveDocumentId = await lockArchiveDocument(trx, { repositoryId: repository.id, docId }, config)
      if (archiveDocumentId === undefined) return { found: false, documents: [], messages: [], atOnce: false }
      const current = await findCurrentComponents(trx, archiveDocumentId)
      const replacedBy = components.map(({ compId }) => compId)
      if (whole) await requireReplaceable(trx, repository.id, docId, current, components)
      await supersedeDocuments(trx, archiveDocumentId, 'document.superseded', { replacedBy, ...(!whole && { compIds: replacedBy }) })
      const received = { ...update, metadata: mergeMetadata(update.metadata, current) }
      const target = { mode: 'update', archiveDocumentId } as const
      const { inserted: found, ...rest } = await insertDocuments(writeIn(trx, config), target, received, carryOver(update, current), config)
      return { found, ...rest }
    })

export type UpdateDocument = ReturnType<typeof createUpdate>
