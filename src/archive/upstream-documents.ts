import { newId } from '../base/ids.ts'
import { inTransaction, type Database, type Transaction } from '../db/database.ts'
import { writeIn } from './insert-documents.ts'
import { requireReplaceable } from './legal-holds.ts'
import { lockArchiveDocument, lockTimeout, supersedeDocuments, type LockConfig } from './locks.ts'
import { insertDocuments, type InsertConfig, type Inserted, type ReceivedDocument, type Target } from './receive.ts'

/**
 * Locks a docId until the transaction ends, whether or not a document has it: a document that is deleted while it is fetched from the
 * upstream must not come back.
 */
export const lockDocId = async (trx: Transaction, repositoryId: string, docId: string, config: LockConfig): Promise<void> => {
  await trx.raw(`select set_config('lock_timeout', :timeout, true), pg_advisory_xact_lock(hashtextextended(:key, 0))`, {
    timeout: lockTimeout(config),
    key: `${repositoryId}/${docId}`,
  })
}

/** Remembers that the source system has deleted a document: it must never be fetched from the upstream again. */
export const recordDeletion = async (trx: Transaction, repositoryId: string, docId: string): Promise<void> => {
  await trx('upstream_deletions')
    .insert({ repository_id: repositoryId, doc_id: docId, by_source: true })
    .onConflict(['repository_id', 'doc_id'])
    .merge(['by_source'])
}

/** Does so if the document has ever been fetched from an upstream and kept, even if it was changed here since. */
export const recordDeletionOfFetched = async (trx: Transaction, repositoryId: string, docId: string): Promise<void> => {
  await trx.raw(
    `
    insert into upstream_deletions (repository_id, doc_id, by_source)
    select id, :docId, true
    from repositories
    where id = :repositoryId
      and exists (
        select
        from documents
        where documents.workspace_id = repositories.workspace_id
          and documents.repo_id = repositories.repo_id
          and doc_id = :docId
          and origin = 'upstream'
      )
    on conflict (repository_id, doc_id) do update
    set by_source = true
    `,
    { repositoryId, docId },
  )
}

const isDeleted = async (db: Database | Transaction, repositoryId: string, docId: string): Promise<boolean> =>
  (await db('upstream_deletions').select('doc_id').where({ repository_id: repositoryId, doc_id: docId }).first()) !== undefined

type ReceivedUpstream = ReceivedDocument & Required<Pick<ReceivedDocument, 'upstream'>>

/**
 * SQL: the source system has changed a document since it was fetched: by an update, by an append, or by deleting a component. Of
 * `archive_documents`, `documents` and `contents`.
 */
export const isChangedSinceFetch = `(origin = 'source' or coalesce(appends, 0) > 0 or deleted_components <> '{}')`

const isChangedHere = async (trx: Transaction, archiveDocumentId: string): Promise<boolean> => {
  const changed = await trx('archive_documents')
    .join('documents', 'documents.archive_document_id', 'archive_documents.id')
    .leftJoin('contents', 'contents.id', 'content_id')
    .where({ 'archive_documents.id': archiveDocumentId })
    .whereNull('superseded_at')
    .whereRaw(isChangedSinceFetch)
    .first('documents.id')
  return changed !== undefined
}

// Read in a few milliseconds.
const newestDocuments = 1_000

type Kept = Omit<Inserted, 'inserted'> & { kept: boolean }

const nothing: Kept = { kept: false, documents: [], messages: [], atOnce: false }

const insertIn = async (trx: Transaction, target: Target, received: ReceivedUpstream, config: InsertConfig): Promise<Kept> => {
  const positions = received.components.map((_, position) => ({ position }))
  const { inserted: kept, ...rest } = await insertDocuments(writeIn(trx, config), target, received, positions, config)
  return { kept, ...rest }
}

/** What the relay knows of the documents of an upstream. */
export const createUpstreamDocuments = (db: Database, config: InsertConfig) => ({
  /** Returns true if a document was deleted here, and so must not be fetched. */
  isDeleted: (repositoryId: string, docId: string): Promise<boolean> => isDeleted(db, repositoryId, docId),

  /** Finds a docId that was fetched from the upstream, if one of the newest documents was. */
  findLastFetched: async (workspaceId: string, repoId: string): Promise<string | undefined> => {
    const { rows } = await db.raw<{ rows: { docId: string }[] }>(
      `
      select doc_id as "docId"
      from (
        select doc_id, origin
        from documents
        where workspace_id = :workspaceId
          and repo_id = :repoId
        order by received_at desc, id desc
        limit :newest
      ) as newest
      where origin = 'upstream'
      limit 1
      `,
      { workspaceId, repoId, newest: newestDocuments },
    )
    return rows[0]?.docId
  },

  /**
   * Commits a document that was fetched whole, like a create.
   * @returns `kept: false` if it exists by now, or has been deleted; the contents are then still unowned
   */
  keep: (received: ReceivedUpstream): Promise<Kept> =>
    inTransaction(db, async (trx, rollback) => {
      const { repository, docId } = received
      await lockDocId(trx, repository.id, docId, config)
      if (await isDeleted(trx, repository.id, docId)) return rollback(nothing)
      const outcome = await insertIn(trx, { mode: 'create', archiveDocumentId: newId() }, received, config)
      return outcome.kept ? outcome : rollback(nothing)
    }),

  /**
   * Commits a document in place of the one that was fetched earlier.
   * @returns `kept: false` if the source system has changed or deleted it here, or if it was erased; the contents are then still unowned
   * @throws `OnLegalHold` if it leaves components out of a document on hold. What it replaces stays in the relay
   */
  replace: (received: ReceivedUpstream): Promise<Kept> =>
    inTransaction(db, async (trx, rollback) => {
      const { repository, docId, upstream, components } = received
      const archiveDocumentId = await lockArchiveDocument(trx, { repositoryId: repository.id, docId }, config)
      if (archiveDocumentId === undefined || (await isChangedHere(trx, archiveDocumentId))) return rollback(nothing)
      const current = await trx('documents')
        .where({ archive_document_id: archiveDocumentId })
        .whereNull('superseded_at')
        .select<{ compId: string }[]>('comp_id as compId')
      await requireReplaceable(trx, repository.id, docId, current, components)
      // This locks the documents, so that one which is being erased is recorded by now.
      await supersedeDocuments(trx, archiveDocumentId, 'document.superseded')
      if (await isDeleted(trx, repository.id, docId)) return rollback(nothing)
      const outcome = await insertIn(trx, { mode: 'update', archiveDocumentId }, received, config)
      await trx('archive_documents').where({ id: archiveDocumentId }).update({ modified_at: upstream.modifiedAt })
      return outcome.kept ? outcome : rollback(nothing)
    }),
})

export type UpstreamDocuments = ReturnType<typeof createUpstreamDocuments>
