import type { DocumentKey } from '../../workflows/ids.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, type CancelDelivery } from '../db/outbox.ts'
import { transitions, type DeliveryStatus } from '../domain/delivery-states.ts'

interface ErasedContent {
  id: string
  store: 'postgres' | 's3'
}

interface Erased {
  /** Cancel the workflows of the deliveries that were still to be made. */
  messages: CancelDelivery[]
  /** The content that no document owns any more; none if it was gone before. */
  content: ErasedContent | undefined
}

type Found = DocumentKey & { contentId: string | null; store: ErasedContent['store'] | null; sizeBytes: number }

export const createErase =
  (db: Database) =>
  /**
   * Erases the content of a document: the document gives up its bytes, deliveries that were still to be made are cancelled, and the
   * captured bodies of every request about its docId are deleted. The caller removes the bytes from the store.
   * @returns undefined if the document does not exist
   */
  (workspaceId: string, id: string, actor: AuditActor): Promise<Erased | undefined> =>
    db.transaction(async (trx) => {
      const found = await lockDocument(trx, workspaceId, id)
      if (!found) return undefined
      const { contentId, store, sizeBytes, ...document } = found
      const content = contentId === null || store === null ? undefined : { id: contentId, store }
      const messages = await cancelOpen(trx, document)
      if (content) {
        await trx('documents').where({ id }).update({ content_id: null })
        // The orphan sweep removes the bytes if the caller cannot.
        await trx('contents').where({ id: content.id }).update({ owned_at: null, created_at: trx.fn.now() })
      }
      const { repoId, docId, compId } = document
      const { rowCount } = await trx.raw<{ rowCount: number }>(
        `
        delete from captured_bodies
        using captured_requests
        where captured_bodies.request_id = captured_requests.id
          and captured_requests.workspace_id = :workspaceId
          and captured_requests.repo_id = :repoId
          and captured_requests.doc_id = :docId
        `,
        { workspaceId, repoId, docId },
      )
      if (!content && messages.length === 0 && rowCount === 0) return { messages, content }
      await record(trx, {
        workspaceId,
        event: 'document.erased',
        subjectId: id,
        description: `The content of document ${repoId}/${docId}/${compId} was erased.`,
        metadata: {
          repo_id: repoId,
          doc_id: docId,
          comp_id: compId,
          size_bytes: sizeBytes,
          cancelled_destination_ids: messages.map(({ destinationId }) => destinationId),
          captured_bodies: rowCount,
        },
        actor,
      })
      return { messages, content }
    })

export type Erase = ReturnType<typeof createErase>

const lockDocument = async (trx: Transaction, workspaceId: string, id: string): Promise<Found | undefined> => {
  const { rows } = await trx.raw<{ rows: Found[] }>(
    `
    select
      documents.id as "documentId", user_slug || '/' || workspace_slug as workspace, repo_id as "repoId", doc_id as "docId",
      comp_id as "compId", content_id as "contentId", documents.size_bytes as "sizeBytes",
      (select store from contents where contents.id = content_id) as store
    from documents
    join workspaces on workspaces.id = documents.workspace_id
    where documents.workspace_id = :workspaceId
      and documents.id = :id
    for no key update of documents
    `,
    { workspaceId, id },
  )
  return rows[0]
}

/** Cancels what is still to be delivered. @returns a message for each, which is without effect for a delivery that has no workflow */
const cancelOpen = async (trx: Transaction, document: DocumentKey): Promise<CancelDelivery[]> => {
  const from: readonly DeliveryStatus[] = transitions.cancel.from
  const cancelled: { destination_id: string }[] = await trx('deliveries')
    .where({ document_id: document.documentId })
    .whereIn('status', [...from])
    .update({ status: transitions.cancel.to })
    .returning(['destination_id'])
  const messages = cancelled.map(({ destination_id }): CancelDelivery => ({
    kind: 'cancelDelivery',
    document,
    destinationId: destination_id,
  }))
  await addMessages(trx, messages)
  return messages
}
