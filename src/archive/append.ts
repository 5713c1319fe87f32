import { upsertCaptures, type Capture } from '../capture/capture.ts'
import type { AppendPlan } from '../content/segments.ts'
import type { Content, UnownedContent } from '../content/store.ts'
import { inTransaction, type Database, type Transaction } from '../db/database.ts'
import { lockArchiveDocument, type LockConfig } from './locks.ts'
import type { ReceivingRepository } from './receiving-repository.ts'

/** Bytes to append to a component. */
export interface Append {
  repository: ReceivingRepository
  docId: string
  compId: string
  /** The content of the component when the append was planned. */
  basedOn: Content
  /** Null if the request has no bytes. `isWhole`: it is the whole content from now on, and replaces the one of before. */
  segment: (AppendPlan & { content: UnownedContent; isWhole: boolean }) | null
  receivedAt: Date
  /** The captured request, if the command's transaction writes it. */
  capture: Capture | undefined
}

/** A document whose content an append has changed. */
export interface AppendedDocument {
  id: string
  repository: ReceivingRepository
  docId: string
  compId: string
  revision: number
  /** Span of the request that contained the document. Null if it was not traced. */
  traceparent: string | null
}

/**
 * Extends the content of a component by a segment. Returns `changed` if another request changed the component first; the bytes of the
 * segment are then still unowned.
 * @param redeliver plans new deliveries in the same transaction, for destinations that have received the shorter content. An attempt
 *   under way needs none: recording it compares the sizes.
 */
export const createAppend =
  (db: Database, redeliver: (trx: Transaction, document: AppendedDocument) => Promise<void>, config: LockConfig = {}) =>
  (append: Append): Promise<'appended' | 'changed'> =>
    inTransaction(db, async (trx, rollback) => {
      const { repository, docId, compId, basedOn, segment, receivedAt, capture } = append
      const archiveDocumentId = await lockArchiveDocument(trx, { repositoryId: repository.id, docId }, config)
      if (archiveDocumentId === undefined) return 'changed'
      await segment?.content.own(trx)
      const { rows } = await trx.raw<{ rows: Pick<AppendedDocument, 'id' | 'revision' | 'traceparent'>[] }>(
        `
        with document as (
          update documents
          set
            content_id = case when :isWhole then :segmentId::text else content_id end,
            size_bytes = case when :segmentId::text is null then size_bytes else :startByte::bigint + :segmentBytes::bigint end,
            modified_at = greatest(modified_at, :receivedAt::timestamptz)
          where archive_document_id = :archiveDocumentId
            and comp_id = :compId
            and superseded_at is null
            and content_id = :contentId
            and size_bytes = :sizeBytes
            and exists (select from contents where id = :contentId and appends = :appends)
          returning id, workspace_id, revision, traceparent
        ), archive_document as (
          update archive_documents
          set modified_at = greatest(modified_at, :receivedAt::timestamptz)
          from document
          where archive_documents.id = :archiveDocumentId
        ), content as (
          update contents
          set appends = appends + 1, appended_sha256 = null
          from document
          where contents.id = :contentId
            and :segmentId::text is not null
            and not :isWhole
        ), added as (
          insert into content_segments (content_id, append, start_byte, segment_id, workspace_id)
          select :contentId, :appends::integer + 1, :startByte::bigint, :segmentId, workspace_id
          from document
          where :segmentId::text is not null
            and not :isWhole
        ), waiting as (
          -- Its home may keep the new content as well, once it was delivered there.
          insert into home_waiting (document_id, repository_id, due_at)
          select id, :repositoryId, now()
          from document
          where :isWhole
          on conflict (document_id) do nothing
        ), merged as (
          delete from content_segments
          using document
          where content_id = :contentId
            and segment_id = any(:merged::text[])
        ), released as (
          -- Readers of the merged segments may finish. The job remove-orphans removes them later.
          update contents
          set owned_at = null, created_at = now()
          from document
          where contents.id = any(:released::text[])
        )
        select id, revision, traceparent
        from document
        `,
        {
          archiveDocumentId,
          compId,
          contentId: basedOn.id,
          sizeBytes: basedOn.sizeBytes,
          appends: basedOn.appends ?? 0,
          segmentId: segment?.content.id ?? null,
          segmentBytes: segment?.content.sizeBytes ?? null,
          startByte: segment?.startByte ?? null,
          isWhole: segment?.isWhole ?? false,
          merged: segment?.merged ?? [],
          released: segment?.isWhole ? [basedOn.id] : (segment?.merged ?? []),
          repositoryId: repository.id,
          receivedAt,
        },
      )
      const document = rows[0]
      if (!document) return rollback('changed')
      if (segment) await redeliver(trx, { ...document, repository, docId, compId })
      if (capture) await upsertCaptures(trx, [capture])
      return 'appended'
    })

export type AppendToDocument = ReturnType<typeof createAppend>
