import { AppError } from '../base/errors.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { noMetadata, type DocumentMetadata } from '../domain/template.ts'
import { fieldsOf, metadataColumns, metadataFields, valuesOf, type DocIdOf, type MetadataChange, type SetMetadata } from './metadata.ts'

// What is told about a docId before its document arrives. The statement of a create looks for it, and the create is planned again with what it
// finds: see `later` in insert-documents.ts. A create that runs at the same moment may miss it. A job looks for such documents.

/** What was told about a docId before its document has arrived. */
export interface EarlyMetadata extends DocumentMetadata {
  /** Seconds since 1970, with microseconds. */
  changedAt: string
}

/** SQL: when early metadata were changed, for comparison. */
export const changedAtText = 'extract(epoch from changed_at)::text'

/** SQL: the metadata as arguments of `jsonb_build_object`, of `early_metadata`. */
export const metadataPairs = metadataFields.map((field) => `'${field}', ${metadataColumns[field]}`).join(', ')

const earlySelection = metadataFields.map((field) => `${metadataColumns[field]} as "${field}"`).join(', ')

/** Docids of a workspace about which something may be known before their documents arrive. There may be up to `partMax` in each part. */
export const earlyMax = 100_000

// The docids of a workspace are counted in 256 parts, by their MD5, so that a count reads one part, however many wait. With 100,000 docids, a
// part has 391, with a standard deviation of 20.
const partMax = 512
const partOf = 'left(md5(doc_id), 2)'

/** How long that is kept. */
export const earlyDays = 30

/** Finds those of some repositories of a workspace that do not exist. */
export const findUnknownRepositories = async (db: Database, workspaceId: string, repoIds: string[]): Promise<Set<string>> => {
  const known: { repoId: string }[] = await db('repositories')
    .select('repo_id as repoId')
    .where({ workspace_id: workspaceId })
    .whereIn('repo_id', repoIds)
    .whereNull('deleted_at')
  return new Set(repoIds.filter((repoId) => !known.some((each) => each.repoId === repoId)))
}

/** Returns a query for a row, if a part of the workspace has more than `partMax`. */
export const beyondPart = (db: Database | Transaction, workspaceId: string, docId: string) =>
  db('early_metadata')
    .select(db.raw('1'))
    .where({ workspace_id: workspaceId })
    .whereRaw(`${partOf} = left(md5(?::text), 2)`, [docId])
    .offset(partMax)
    .limit(1)

const requirePlace = async (trx: Transaction, workspaceId: string, docId: string): Promise<void> => {
  if ((await beyondPart(trx, workspaceId, docId)).length === 0) return
  throw new AppError(
    'conflict',
    `The metadata of more than ${earlyMax} documents that have not arrived are kept already. Send others when their documents have arrived.`,
  )
}

/**
 * Keeps what is told about a docId until its document arrives.
 * @throws `AppError` 404 if there is no such repository, 409 if too much is kept
 */
export const keepEarly = async (
  trx: Transaction,
  workspaceId: string,
  { repoId, docId }: DocIdOf,
  change: MetadataChange,
  actor: AuditActor,
): Promise<SetMetadata> => {
  const repository = await trx('repositories')
    .select('id')
    .where({ workspace_id: workspaceId, repo_id: repoId })
    .whereNull('deleted_at')
    .first()
  if (!repository) throw notFound()
  const fields = fieldsOf(change)
  const values = valuesOf(change, fields)
  const changedAt = trx.raw('clock_timestamp()')
  const [kept] = await trx('early_metadata')
    .insert({ workspace_id: workspaceId, repo_id: repoId, doc_id: docId, ...values, changed_at: changedAt })
    .onConflict(['workspace_id', 'repo_id', 'doc_id'])
    .merge({ ...values, changed_at: changedAt, is_checked: false })
    .returning<DocumentMetadata[]>(trx.raw(earlySelection))
  await requirePlace(trx, workspaceId, docId)
  await record(trx, {
    workspaceId,
    event: 'document.metadata_updated',
    subjectId: docId,
    description: `The metadata of document ${repoId}/${docId}, which has not arrived, was set: ${fields.map((field) => metadataColumns[field]).join(', ')}.`,
    metadata: { repo_id: repoId, doc_id: docId, documents: 0 },
    actor,
  })
  return { ...noMetadata, ...kept, documents: 0 }
}

/** Early metadata whose document is here, without them. */
export interface MissedMetadata extends DocIdOf {
  workspaceId: string
  metadata: DocumentMetadata
  /** Removes them, unless they have changed since. */
  remove(): Promise<void>
}

// A create that has missed them has ended by then.
const checkAfterSeconds = 60

/**
 * Looks once at early metadata that no create can miss any more, and removes what no document has taken in time.
 * @returns those whose documents were created at the same moment, without them
 */
export const checkEarly = async (db: Database, limit: number): Promise<MissedMetadata[]> => {
  await db.raw(
    `
    delete from early_metadata
    where (workspace_id, repo_id, doc_id) in (
      select workspace_id, repo_id, doc_id
      from early_metadata
      where changed_at < now() - :days * interval '1 day'
      order by changed_at
      limit :limit
    )
    `,
    { days: earlyDays, limit },
  )
  const { rows } = await db.raw<{ rows: (EarlyMetadata & DocIdOf & { workspaceId: string })[] }>(
    `
    with unchecked as (
      select workspace_id, repo_id, doc_id, changed_at as seen_at
      from early_metadata
      where not is_checked
        and changed_at < now() - :seconds * interval '1 second'
      order by changed_at
      limit :limit
    ), checked as (
      update early_metadata
      set is_checked = not exists (
        select
        from documents
        where documents.workspace_id = unchecked.workspace_id
          and documents.repo_id = unchecked.repo_id
          and documents.doc_id = unchecked.doc_id
      )
      from unchecked
      where early_metadata.workspace_id = unchecked.workspace_id
        and early_metadata.repo_id = unchecked.repo_id
        and early_metadata.doc_id = unchecked.doc_id
        and changed_at = seen_at
      returning early_metadata.*
    )
    select workspace_id as "workspaceId", repo_id as "repoId", doc_id as "docId", ${changedAtText} as "changedAt", ${earlySelection}
    from checked
    where not is_checked
    order by workspace_id, repo_id, doc_id
    `,
    { limit, seconds: checkAfterSeconds },
  )
  return rows.map(({ workspaceId, repoId, docId, changedAt, ...metadata }) => ({
    workspaceId,
    repoId,
    docId,
    metadata,
    remove: async () =>
      void (await db('early_metadata')
        .where({ workspace_id: workspaceId, repo_id: repoId, doc_id: docId })
        .whereRaw(`${changedAtText} = ?`, [changedAt])
        .delete()),
  }))
}
