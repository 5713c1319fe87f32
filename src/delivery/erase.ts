import type { DocumentKey } from '../../workflows/ids.ts'
import { isOnHold, OnLegalHold, shareHolds } from '../archive/legal-holds.ts'
import { newId } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { contentIdsOf, type Piece } from '../capture/stored-body.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, type CancelDelivery } from '../db/outbox.ts'
import type { ContentStoreKind } from '../domain/content-store.ts'
import { transitions, type DeliveryEnd, type DeliveryStatus } from '../domain/delivery-states.ts'

interface ErasedContent {
  id: string
  store: ContentStoreKind
}

interface Erased {
  /** Cancel the workflows of the deliveries that were still to be made. */
  messages: CancelDelivery[]
  /** The contents that nothing refers to any more: of the document, and of captured bodies. None if they were gone before. */
  contents: ErasedContent[]
}

type Found = DocumentKey & { contentId: string | null; sizeBytes: number; isOnHold: boolean }

export const createErase =
  (db: Database) =>
  /**
   * Erases the content of a document: the document gives up its bytes, its fields and its file name, deliveries that were still to be made are cancelled, and the
   * captured bodies of every request about its docId are deleted, also those that contain other documents. The caller removes the bytes from the stores.
   * @throws `AppError` 404, or 409 if the document is on legal hold
   */
  (workspaceId: string, id: string, actor: AuditActor): Promise<Erased> =>
    db.transaction(async (trx) => {
      await shareHolds(trx, workspaceId)
      await noteErased(trx, workspaceId, id)
      const found = await lockDocument(trx, workspaceId, id)
      if (!found) throw notFound()
      const { contentId, sizeBytes, isOnHold: isHeld, ...document } = found
      if (isHeld) throw new OnLegalHold()
      const messages = await cancelOpen(trx, document)
      if (contentId !== null) await trx('documents').where({ id }).update({ content_id: null })
      await rememberErased(trx, id)
      const enrichments = await trx('document_enrichments').where({ document_id: id }).delete()
      const names = await trx('documents')
        .where({ id })
        .whereRaw('coalesce(file_name, description) is not null')
        .update({ file_name: null, description: null })
      const { repoId, docId, compId } = document
      const { rows: bodies } = await trx.raw<{ rows: { pieces: Piece[] | null }[] }>(
        `
        with about as (
          select id
          from captured_requests
          where workspace_id = :workspaceId
            and repo_id = :repoId
            and doc_id = :docId
          union
          -- An mCreate names one docId in its query, and creates documents with others.
          select request_id
          from documents
          where workspace_id = :workspaceId
            and repo_id = :repoId
            and doc_id = :docId
        )
        delete from captured_bodies
        using about
        where request_id = about.id
        returning pieces
        `,
        { workspaceId, repoId, docId },
      )
      const contents = await releaseContents(trx, contentId, contentIdsOf(bodies.flatMap(({ pieces }) => pieces ?? [])))
      if (contentId === null && messages.length === 0 && bodies.length === 0 && enrichments + names === 0) return { messages, contents }
      await trx.raw(`select add_event(workspace_id, 'document.erased', document_event_data(documents)) from documents where id = ?`, [id])
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
          captured_bodies: bodies.length,
        },
        actor,
      })
      return { messages, contents }
    })

export type Erase = ReturnType<typeof createErase>

/** Notes the component in its archive document. First, because every change of an archive document locks that before its documents. */
const noteErased = async (trx: Transaction, workspaceId: string, id: string): Promise<void> => {
  await trx.raw(
    `
    update archive_documents
    set erased_components = array_append(erased_components, comp_id)
    from documents
    where documents.workspace_id = :workspaceId
      and documents.id = :id
      and archive_documents.id = archive_document_id
      and comp_id <> all(erased_components)
    `,
    { workspaceId, id },
  )
}

/** Prevents an upstream of the repository from bringing the document back, also one that is removed for now and set again. */
const rememberErased = async (trx: Transaction, id: string): Promise<void> => {
  await trx.raw(
    `
    insert into upstream_deletions (repository_id, doc_id, by_source)
    select repository_id, doc_id, false
    from documents
    join repositories on repositories.id = repository_id
    where documents.id = ?
      and (
        upstream is not null
        or exists (
          select
          from documents as fetched
          where fetched.workspace_id = documents.workspace_id
            and fetched.repo_id = documents.repo_id
            and fetched.doc_id = documents.doc_id
            and origin = 'upstream'
        )
      )
    on conflict do nothing
    `,
    [id],
  )
}

/**
 * Disowns the content of the document, and releases the contents that the deleted captured bodies referred to.
 * @returns those that nothing refers to any more. The job remove-orphans removes the bytes that the caller cannot remove
 */
const releaseContents = async (trx: Transaction, contentId: string | null, capturedIds: string[]): Promise<ErasedContent[]> => {
  const { rows } = await trx.raw<{ rows: (ErasedContent & { isFree: boolean })[] }>(
    `
    with released as (
      -- Rows are locked in the order of their ids.
      select id
      from contents
      where id = any(:ids)
      order by id
      for no key update
    )
    update contents
    set
      captured_on = null,
      owned_at = case when contents.id = :contentId then null else owned_at end,
      created_at = case when contents.id = :contentId then now() else created_at end
    from released
    where contents.id = released.id
    returning contents.id, store, owned_at is null as "isFree"
    `,
    { ids: [...capturedIds, ...(contentId === null ? [] : [contentId])], contentId },
  )
  return rows.filter(({ isFree }) => isFree).map(({ id, store }) => ({ id, store }))
}

const lockDocument = async (trx: Transaction, workspaceId: string, id: string): Promise<Found | undefined> => {
  const { rows } = await trx.raw<{ rows: Found[] }>(
    `
    select
      documents.id as "documentId", user_slug || '/' || workspace_slug as workspace, repo_id as "repoId", doc_id as "docId",
      comp_id as "compId", content_id as "contentId", documents.size_bytes as "sizeBytes", ${isOnHold('documents')} as "isOnHold"
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
  const endedBy: DeliveryEnd = 'document_erased'
  const cancelled: { destinationId: string }[] = await trx('deliveries')
    .where({ document_id: document.documentId })
    .whereIn('status', [...from])
    .update({ status: transitions.cancel.to, ended_by: endedBy })
    .returning('destination_id as destinationId')
  const requestId = newId()
  const messages = cancelled.map((delivery): CancelDelivery => ({ kind: 'cancelDelivery', document, ...delivery, requestId }))
  await addMessages(trx, messages)
  return messages
}
