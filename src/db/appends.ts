import type { Config } from '../config.ts'
import type { UnownedContent } from '../content/store.ts'
import { documentWorkflowId, type DestinationRef } from '../../workflows/messages.ts'
import { lockArchiveDocument, type LockLimit } from './archive-locks.ts'
import { insertCapture, type Capture } from './captures.ts'
import type { Database, Transaction } from './database.ts'
import { keyOf, type DocumentMessage } from './outbox.ts'
import { pinnedOf, type Workflow } from './planned-documents.ts'
import type { Source } from './sources.ts'

/** A component with more bytes than before. */
export interface Append {
  source: Source
  docId: string
  compId: string
  /** The bytes that `content` begins with: what was there when it was put together. */
  basedOn: string
  content: UnownedContent
  receivedAt: Date
  /** The request that brought it. */
  captured?: Capture | undefined
}

export type AppendConfig = Workflow & LockLimit & Pick<Config, 'RELAY_APPEND_QUIET_MS'>

export const createAppends = (db: Database, config: AppendConfig) => ({
  /**
   * Puts the longer content in the place of the one before. Every destination that has the document gets it again, once no append
   * has come for a while; one that it is still on its way to gets the newest bytes anyway, as every attempt reads them anew.
   * @returns `changed` where somebody else was faster; the content is then still unowned
   */
  append: (append: Append): Promise<'appended' | 'changed'> =>
    db
      .transaction(async (trx) => {
        const { source, docId, compId, basedOn, content, receivedAt } = append
        const archiveId = await lockArchiveDocument(trx, { repositoryId: source.repository.id, docId }, config)
        if (archiveId === undefined) return 'changed'
        await content.own(trx)
        // whoever still reads the bytes before may finish; the sweep removes them after that
        const { rows } = await trx.raw<{ rows: { id: string; revision: number }[] }>(
          `
        with document as (
          update documents
          set content_id = :contentId, size_bytes = :sizeBytes, modified_at = greatest(modified_at, :receivedAt::timestamptz)
          where archive_document_id = :archiveId
            and comp_id = :compId
            and superseded_at is null
            and content_id = :basedOn
          returning id, revision
        ), archive_document as (
          update archive_documents
          set modified_at = greatest(modified_at, :receivedAt::timestamptz)
          from document
          where archive_documents.id = :archiveId
        ), let_go as (
          update contents
          set owned_at = null, created_at = now()
          from document
          where contents.id = :basedOn
        )
        select id, revision
        from document
        `,
          { contentId: content.id, sizeBytes: content.sizeBytes, receivedAt, archiveId, compId, basedOn },
        )
        const document = rows[0]
        if (!document) throw new Changed()
        await planRelay(trx, append, document, await reopenDeliveries(trx, document.id), config)
        if (append.captured) await insertCapture(trx, append.captured)
        return 'appended' as const
      })
      .catch((thrown: unknown) => {
        if (thrown instanceof Changed) return 'changed' as const
        throw thrown
      }),
})

export type Appends = ReturnType<typeof createAppends>

class Changed extends Error {}

/** What has been delivered is to be delivered again. */
const reopenDeliveries = async (trx: Transaction, documentId: string): Promise<DestinationRef[]> => {
  const { rows } = await trx.raw<{ rows: DestinationRef[] }>(
    `
    update deliveries
    set status = 'pending', delivered_at = null
    from destinations
    where document_id = ?
      and deliveries.status = 'delivered'
      and destinations.id = deliveries.destination_id
      and deleted_at is null
    returning destinations.id, name, connector_type as connector
    `,
    [documentId],
  )
  return rows
}

/** One message for all appends that follow each other: each moves it further away. */
const planRelay = async (
  trx: Transaction,
  { source, docId, compId }: Append,
  document: { id: string; revision: number },
  reopened: DestinationRef[],
  config: AppendConfig,
) => {
  const dueAt = trx.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [config.RELAY_APPEND_QUIET_MS])
  // the first relay, of the document as it was received, is none of an append's
  const waiting =
    document.revision > 1 &&
    (await trx('outbox')
      .where({ key: documentWorkflowId(document.id, document.revision) })
      // one that is due may be being sent at this moment
      .where('due_at', '>', trx.raw('clock_timestamp()'))
      .forUpdate()
      .first<{ message: DocumentMessage } | undefined>('message'))
  if (waiting) {
    const message = { ...waiting.message, destinations: [...waiting.message.destinations, ...reopened] }
    await trx('outbox')
      .where({ key: keyOf(message) })
      .update({ due_at: dueAt, message: JSON.stringify(message) })
    return
  }
  if (reopened.length === 0) return

  const revision = document.revision + 1
  const message: DocumentMessage = {
    kind: 'document',
    documentId: document.id,
    revision,
    repoId: source.repository.repoId,
    docId,
    compId,
    destinations: reopened,
    ...pinnedOf(source.workspace, config),
  }
  await trx('documents').where({ id: document.id }).update({ revision })
  await trx('outbox').insert({ key: keyOf(message), message: JSON.stringify(message), due_at: dueAt })
}
