import type { HeldContent } from '../content/store.ts'
import { newId } from '../ids.ts'
import { limitedPatience, lockArchiveDocument, lockTimeoutOf, supersedeDocuments, type LockLimit } from './archive-locks.ts'
import type { Database, Transaction } from './database.ts'
import type { DocumentMessage } from './outbox.ts'
import {
  insertPlanned,
  messagesOf,
  planDocument,
  type Archive,
  type Arrival,
  type Heritage,
  type Metadata,
  type Workflow,
} from './planned-documents.ts'

/** What a create brought. */
export interface Receipt extends Arrival {
  docProt: string | null
}

/** What an update brought: one component, or the whole document anew. */
export interface Update extends Arrival {
  whole: boolean
}

// of two at the same time, the second one waits here for the first one's commit
const newArchiveDocument = ({ docProt }: Receipt, limit: LockLimit): Archive => ({
  name: 'create',
  sql: `
      insert into archive_documents (id, workspace_id, repository_id, doc_id, doc_prot, created_at, modified_at)
      select :archiveDocumentId, :workspaceId, :repositoryId, :docId, :docProt, :receivedAt::timestamptz, :receivedAt::timestamptz
      where ${limitedPatience}
      on conflict (repository_id, doc_id) where deleted_at is null do nothing
      returning id`,
  bindings: { archiveDocumentId: newId(), docProt, lockTimeout: lockTimeoutOf(limit) },
})

const withHeld = (archive: Archive, { ownedWith, bindings }: HeldContent): Archive => ({
  name: `${archive.name}-with-content`,
  sql: archive.sql,
  bindings: { ...archive.bindings, ...bindings },
  along: ownedWith('archive_document'),
})

// what is discarded has no archive document, and still must not be taken for one that was kept while something was wired
const noArchiveDocument: Archive = {
  name: 'discard',
  sql: `
      select null::text as id
      where not exists (
        select from archive_documents
        where repository_id = :repositoryId
          and doc_id = :docId
          and deleted_at is null
      )`,
  bindings: {},
}

// two updates may commit in the other order than they came in
const changedArchiveDocument = (archiveDocumentId: string): Archive => ({
  name: 'update',
  sql: `
      update archive_documents
      set modified_at = greatest(modified_at, :receivedAt::timestamptz)
      where id = :archiveDocumentId
      returning id`,
  bindings: { archiveDocumentId },
})

/** Nothing is wired to the repository: the documents are acknowledged, and nothing of them is kept. */
const isDiscarded = ({ source }: Receipt) => source.wires.length === 0

interface Present extends Metadata {
  compId: string
  contentType: string
  position: number
  createdAt: Date
}

const findPresent = async (trx: Transaction, archiveDocumentId: string): Promise<Present[]> => {
  const { rows } = await trx.raw<{ rows: Present[] }>(
    `
    select
      comp_id as "compId", content_type as "contentType", position, coalesce(component_created_at, received_at) as "createdAt",
      erp_object_type as "erpObjectType", erp_object_id as "erpObjectId", ar_object as "arObject"
    from documents
    where archive_document_id = ?
      and superseded_at is null
    order by position
    `,
    [archiveDocumentId],
  )
  return rows
}

/** What is known of the business object stays known, unless the update says otherwise. */
const inherit = (metadata: Metadata, present: Metadata[]): Metadata => ({
  erpObjectType: metadata.erpObjectType ?? present[0]?.erpObjectType ?? null,
  erpObjectId: metadata.erpObjectId ?? present[0]?.erpObjectId ?? null,
  arObject: metadata.arObject ?? present[0]?.arObject ?? null,
})

/** A component keeps its date and type; a whole document is ordered anew, in a part of one everything keeps its place. */
const heritageOf = ({ components, whole }: Update, present: Present[], index: number): Heritage => {
  const earlier = present.find(({ compId }) => compId === components[index]!.compId)
  const place = earlier?.position ?? Math.max(-1, ...present.map(({ position }) => position)) + 1
  return { position: whole ? index : place, contentType: earlier?.contentType, createdAt: earlier?.createdAt }
}

class NothingInserted extends Error {}

export const createReceipts = (db: Database, config: Workflow & LockLimit) => ({
  /**
   * Commits what a create brought: archive document, contents, documents, planned deliveries and the messages that will start
   * their workflows, all or none.
   * @returns `created: false` where the docId exists already; the contents are then still unowned
   */
  receive: async (receipt: Receipt): Promise<{ created: boolean; messages: DocumentMessage[] }> => {
    const plans = receipt.components.map((component, position) => planDocument(receipt, component, { position }, config))
    if (isDiscarded(receipt)) {
      return { created: await insertPlanned(db, receipt, plans, noArchiveDocument), messages: [] }
    }
    const archive = newArchiveDocument(receipt, config)
    const held = receipt.components.length === 1 ? receipt.components[0]!.content?.held : undefined
    // the usual case, in one round trip instead of four
    if (held) {
      const created = await insertPlanned(db, receipt, plans, withHeld(archive, held))
      if (created) held.release()
      return { created, messages: created ? messagesOf(plans) : [] }
    }
    try {
      await db.transaction(async (trx) => {
        for (const { content } of receipt.components) await content?.own(trx)
        if (!(await insertPlanned(trx, receipt, plans, archive))) throw new NothingInserted()
      })
    } catch (thrown) {
      if (thrown instanceof NothingInserted) return { created: false, messages: [] }
      throw thrown
    }
    return { created: true, messages: messagesOf(plans) }
  },

  /**
   * Commits what an update brought, like a create: new documents, which are read instead of the ones before and relayed as well.
   * What was planned for those goes on. All of it is kept, whatever is wired: a document that is read must not go back in time.
   * @returns `found: false` where there is no such document; the contents are then still unowned
   */
  update: (update: Update): Promise<{ found: boolean; messages: DocumentMessage[] }> =>
    db.transaction(async (trx) => {
      const repositoryId = update.source.repository.id
      const id = await lockArchiveDocument(trx, { repositoryId, docId: update.docId }, config)
      if (id === undefined) return { found: false, messages: [] }
      const present = await findPresent(trx, id)
      const arrival = { ...update, metadata: inherit(update.metadata, present) }
      const plans = arrival.components.map((component, index) =>
        planDocument(arrival, component, heritageOf(update, present, index), config),
      )
      for (const { content } of arrival.components) await content?.own(trx)
      await supersedeDocuments(trx, id, update.whole ? undefined : arrival.components.map(({ compId }) => compId))
      await insertPlanned(trx, arrival, plans, changedArchiveDocument(id))
      return { found: true, messages: messagesOf(plans) }
    }),
})

export type Receipts = ReturnType<typeof createReceipts>
