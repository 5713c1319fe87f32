import type { Database, Transaction } from './database.ts'

/** What changes a document waits for whoever else is changing it, and no longer than this. */
export interface LockLimit {
  RELAY_DOCUMENT_LOCK_TIMEOUT_MS: number
}

/** A condition that is always true: from it on, this transaction waits for locks no longer than `:lockTimeout`. */
export const limitedPatience = `set_config('lock_timeout', :lockTimeout, true) is not null`
export const lockTimeoutOf = (limit: LockLimit) => `${limit.RELAY_DOCUMENT_LOCK_TIMEOUT_MS}ms`

/**
 * The one way to change an archive document that exists: its row stays locked until the transaction ends.
 * @returns its id, or undefined where there is none (any more)
 * @throws what `isLockTimeout` knows, where somebody else holds it for too long
 */
export const lockArchiveDocument = async (
  trx: Transaction,
  { repositoryId, docId }: { repositoryId: string; docId: string },
  limit: LockLimit,
): Promise<string | undefined> => {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `
    select id
    from archive_documents
    where repository_id = :repositoryId
      and doc_id = :docId
      and deleted_at is null
      and ${limitedPatience}
    for no key update
    `,
    { repositoryId, docId, lockTimeout: lockTimeoutOf(limit) },
  )
  return rows[0]?.id
}

/**
 * Ends the reading of an archive document's components: of all, or of those named.
 * @returns how many there were
 */
export const supersedeDocuments = async (trx: Database | Transaction, archiveDocumentId: string, compIds?: string[]): Promise<number> => {
  // in the order of their ids, which is the order in which deletions of destinations come by
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    `
    with ending as (
      select id
      from documents
      where archive_document_id = :archiveDocumentId
        and superseded_at is null
        and (:compIds::text[] is null or comp_id = any(:compIds::text[]))
      order by id
      for no key update
    )
    update documents
    set superseded_at = now()
    from ending
    where documents.id = ending.id
    returning 1
    `,
    { archiveDocumentId, compIds: compIds ?? null },
  )
  return rows.length
}
