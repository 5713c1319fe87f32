import type { Transaction } from '../db/database.ts'

/** Bounds how long a command waits for another command that is changing the same document. */
// A command that waits longer for another one on the same document is answered 409. Source systems then repeat it.
export const documentLockTimeoutMs = 5_000

export interface LockConfig {
  lockTimeoutMs?: number
}

/** Returns a value for PostgreSQL's `lock_timeout`. */
export const lockTimeout = ({ lockTimeoutMs = documentLockTimeoutMs }: LockConfig): string => `${lockTimeoutMs}ms`

/**
 * Locks an archive document until the transaction ends. Every change of an existing archive document starts with this lock.
 * @returns its id, or undefined if it does not exist
 * @throws an error that `isLockTimeout` recognises, if another transaction holds the lock for too long
 */
export const lockArchiveDocument = async (
  trx: Transaction,
  { repositoryId, docId }: { repositoryId: string; docId: string },
  config: LockConfig,
): Promise<string | undefined> => {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `
    select id
    from archive_documents
    where repository_id = :repositoryId
      and doc_id = :docId
      and deleted_at is null
      and set_config('lock_timeout', :lockTimeout, true) is not null
    for no key update
    `,
    { repositoryId, docId, lockTimeout: lockTimeout(config) },
  )
  return rows[0]?.id
}

/**
 * Marks components of an archive document as superseded, so that they are no longer read: all of them, or those named.
 * @param replacedBy the components that the source system sends instead; those that it leaves out are noted as deleted. Undefined if the
 * change is not one of the source system
 * @returns how many were marked
 */
export const supersedeDocuments = async (
  trx: Transaction,
  archiveDocumentId: string,
  event: 'document.superseded' | 'document.deleted',
  { compIds, replacedBy }: { compIds?: string[]; replacedBy?: string[] } = {},
): Promise<number> => {
  // Rows are locked in the order of their ids, as by every statement that locks several documents: see test/db/lock-order.db.test.ts.
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    `
    with current as (
      select id
      from documents
      where archive_document_id = :archiveDocumentId
        and superseded_at is null
        and (:compIds::text[] is null or comp_id = any(:compIds::text[]))
      order by id
      for no key update
    ), moment as materialized (
      select time_in_manifest((select workspace_id from documents join current using (id) limit 1)) as superseded_at
    ), superseded as (
      update documents
      set superseded_at = moment.superseded_at,
        superseded_by = case when :event = 'document.deleted' or comp_id <> all(:replacedBy::text[]) then 'delete' else 'update' end
      from current, moment
      where documents.id = current.id
      returning documents.id, workspace_id, comp_id, document_event_data(documents) as data
    ), noted as (
      update archive_documents
      set deleted_components = array(
        (select unnest(deleted_components) union select comp_id from superseded)
        except
        select unnest(:replacedBy::text[])
        order by 1
      )
      where id = :archiveDocumentId
        and :replacedBy::text[] is not null
        and (deleted_components && :replacedBy::text[] or exists (select from superseded where comp_id <> all(:replacedBy::text[])))
    )
    select add_event(workspace_id, :event, data)
    from superseded
    order by id
    `,
    { archiveDocumentId, compIds: compIds ?? null, replacedBy: replacedBy ?? null, event },
  )
  return rows.length
}
