import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import { countDocuments } from '../db/counters.ts'
import type { Database, Transaction } from '../db/database.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { asColumns, columnsAs } from '../domain/casing.ts'

export const legalHoldScopes = ['document', 'business_object', 'repository'] as const

type Scope = (typeof legalHoldScopes)[number]

const subjectFields = ['repoId', 'docId', 'erpObjectType', 'erpObjectId'] as const

/** What a hold applies to: a document with all its components and versions, the documents of a business object, or those of a repository. */
export type HoldSubject = { [Field in (typeof subjectFields)[number]]?: string | null | undefined }

const scopes: Readonly<Record<string, Scope>> = {
  repoId: 'repository',
  'repoId,docId': 'document',
  'erpObjectType,erpObjectId': 'business_object',
}

/** Returns the scope of what is named, or undefined if it is not one thing: see `subjectRule`. */
export const scopeOf = (subject: HoldSubject): Scope | undefined =>
  scopes[subjectFields.filter((field) => (subject[field] ?? null) !== null).join()]

export const subjectRule =
  'must name a repository by repo_id, a document by repo_id and doc_id, or a business object by erp_object_type and erp_object_id'

/** A hold that is set. The fields of the other scopes are null. */
export interface LegalHold {
  id: string
  scope: Scope
  repoId: string | null
  docId: string | null
  erpObjectType: string | null
  erpObjectId: string | null
  reason: string
  /** Documents to which it applied when it was set. */
  documents: number
  /** Null if it was set on the command line. */
  setBy: string | null
  createdAt: Date
}

const columns = columnsAs('id, scope, repo_id, doc_id, erp_object_type, erp_object_id, reason, documents, set_by, created_at')

/**
 * SQL: the holds that apply to a document, as rows of `legal_hold_keys`. Each of its keys is looked up by itself: with `key = any (...)`, a
 * planner without statistics reads all holds of the workspace for each document. A thousand documents beside 2,000 holds have taken 21 s.
 * @param document the name of a row of `documents`
 */
export const holdsOf = (document: string) => `
      select hold_id
      from unnest(legal_hold_keys_of(${document}.repo_id, ${document}.doc_id, ${document}.erp_object_type, ${document}.erp_object_id)) as own (key)
      cross join lateral (
        select hold_id
        from legal_hold_keys
        where legal_hold_keys.workspace_id = ${document}.workspace_id
          and legal_hold_keys.key = own.key
        offset 0
      ) as found`

/**
 * SQL: the documents on hold, by the keys of the holds, each from its own index. The last columns of these indexes are the time of receipt and
 * the id.
 * @param keys a condition on `held`, a row of `legal_hold_keys`
 * @param range a further condition on a document
 * @param latest order and limit of those of a repository or a business object. Those of a docId are few, and with a limit, the planner would
 *   look for them in the whole repository
 */
export const documentsOnHold = (keys: string, range = 'true', latest = '') => {
  const found = 'select documents.id, received_at from documents where documents.workspace_id = held.workspace_id'
  return `
      select found.id, received_at
      from legal_hold_keys as held
      cross join lateral (
        (${found} and held.doc_id is null and documents.repo_id = held.repo_id and ${range} ${latest})
        union all
        (${found} and documents.repo_id = held.repo_id and documents.doc_id = held.doc_id and ${range})
        union all
        (${found} and held.repo_id is null and erp_object_id is not null and object_key_of(erp_object_type, erp_object_id) = held.key and ${range} ${latest})
      ) as found
      where ${keys}`
}

/** SQL: nothing may remove the document. The only place that says so. */
export const isOnHold = (document: string) => `exists (${holdsOf(document)})`

/** Has a new hold wait for the end of the transaction. Its next statement sees the holds that are set. */
export const shareHolds = async (trx: Transaction, workspaceId: string): Promise<void> => {
  await trx.raw('select share_legal_holds(?)', [workspaceId])
}

/** Refusal of what would remove something on hold. */
export class OnLegalHold extends AppError {
  constructor(what = 'document') {
    super('conflict', `The ${what} is on legal hold, which has to be lifted first.`)
  }
}

/** Returns true if a docId is on hold, as a whole or one of the documents that were received under it. */
export const isDocIdOnHold = async (db: Database | Transaction, repositoryId: string, docId: string): Promise<boolean> => {
  const { rows } = await db.raw<{ rows: { isOnHold: boolean }[] }>(
    `
    with repository as (
      select workspace_id, repo_id
      from repositories
      where id = :repositoryId
    ), subject as (
      select workspace_id, repo_id, :docId::text as doc_id, null::text as erp_object_type, null::text as erp_object_id
      from repository
      union all
      select workspace_id, repo_id, doc_id, erp_object_type, erp_object_id
      from documents
      join repository using (workspace_id, repo_id)
      where doc_id = :docId
        and erp_object_id is not null
    )
    select exists (select from subject where ${isOnHold('subject')}) as "isOnHold"
    `,
    { repositoryId, docId },
  )
  return rows[0]!.isOnHold
}

/** Has new holds wait for the end of the transaction, which removes something of a docId. @throws `OnLegalHold` */
export const requireRemovable = async (trx: Transaction, repositoryId: string, docId: string): Promise<void> => {
  await trx.raw('select share_legal_holds(workspace_id) from repositories where id = ?', [repositoryId])
  if (await isDocIdOnHold(trx, repositoryId, docId)) throw new OnLegalHold()
}

/** Does so if what takes the place of the components of a docId leaves one of them out. @throws `OnLegalHold` */
export const requireReplaceable = async (
  trx: Transaction,
  repositoryId: string,
  docId: string,
  current: { compId: string }[],
  replacing: { compId: string }[],
): Promise<void> => {
  const replacedBy = new Set(replacing.map(({ compId }) => compId))
  if (current.some(({ compId }) => !replacedBy.has(compId))) await requireRemovable(trx, repositoryId, docId)
}

type Row = Pick<LegalHold, 'scope' | (typeof subjectFields)[number]>

/** Names the subject of a hold. */
export const subjectText = ({ scope, repoId, docId, erpObjectType, erpObjectId }: Row): string => {
  if (scope === 'business_object') return `business object ${erpObjectType} ${erpObjectId}`
  return scope === 'document' ? `document ${repoId}/${docId}` : `repository ${repoId}`
}

const refused = (path: string, message: string) =>
  new AppError('validation_failed', `The subject of a hold ${message}.`, { details: [{ path, message }] })

/** @throws `AppError` 422 if the subject is not one thing */
const rowOf = (subject: HoldSubject): Row => {
  const scope = scopeOf(subject)
  if (scope === undefined) throw refused('repo_id', subjectRule)
  const { repoId = null, docId = null, erpObjectType = null, erpObjectId = null } = subject
  return { scope, repoId, docId, erpObjectType, erpObjectId }
}

/** @throws `AppError` 422 if there is nothing of the name. A business object may get its first document later */
const requireSubject = async (trx: Transaction, workspaceId: string, { repoId, docId }: Row): Promise<void> => {
  if (repoId === null) return
  const { rows } = await trx.raw<{ rows: { isKnown: boolean }[] }>(
    `
    select case when :docId::text is null
      then exists (select from repositories where workspace_id = :workspaceId and repo_id = :repoId)
      else exists (select from documents where workspace_id = :workspaceId and repo_id = :repoId and doc_id = :docId)
    end as "isKnown"
    `,
    { workspaceId, repoId, docId },
  )
  if (rows[0]!.isKnown) return
  const [path, what] = docId === null ? (['repo_id', 'repository'] as const) : (['doc_id', 'document of this repository'] as const)
  throw refused(path, `must be the name of a ${what}`)
}

/** Counts the documents to which a hold applies. Those of a repository are not read. */
const countHeld = async (trx: Transaction, workspaceId: string, holdId: string, { scope, repoId }: Row): Promise<number> => {
  if (scope === 'repository') {
    const matching = () => trx('documents').where({ workspace_id: workspaceId, repo_id: repoId })
    return countDocuments(trx, workspaceId, { repo_id: repoId! }, { since: null, before: null }, matching)
  }
  const { rows } = await trx.raw<{ rows: { count: number }[] }>(
    `select count(*) from (${documentsOnHold('held.workspace_id = :workspaceId and held.hold_id = :holdId')}) as document`,
    { workspaceId, holdId },
  )
  return rows[0]!.count
}

/** Says how many documents. */
export const documentsText = (count: number): string => (count === 1 ? '1 document' : `${count} documents`)

/** @throws `AppError` 422 */
const requireReason = (reason: string): void => {
  const message = 'must not be empty'
  if (reason.trim() === '') throw new AppError('validation_failed', `The reason ${message}.`, { details: [{ path: 'reason', message }] })
}

const metadataOf = (row: Row) => asColumns(Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)))

export const createLegalHolds = (db: Database) => ({
  /** Lists the holds that are set, newest first. */
  list: (workspaceId: string, page: PageRequest): Promise<Page<LegalHold>> =>
    pageOf<LegalHold>(db('legal_holds').where({ workspace_id: workspaceId }).orderBy('id', 'desc'), columns, page),

  /**
   * Sets a hold. It waits for what is removing documents: when it is set, what it applies to is removed or stays.
   * @throws `AppError` 422 if the subject is not one thing, there is no such document or repository, or no reason
   */
  set: (workspaceId: string, { reason, ...subject }: HoldSubject & { reason: string }, actor: AuditActor): Promise<LegalHold> =>
    db.transaction(async (trx) => {
      const [id, row] = [newId(), rowOf(subject)]
      requireReason(reason)
      await trx.raw(`select pg_advisory_xact_lock(hashtextextended('legal holds of ' || ?::text, 0))`, [workspaceId])
      await requireSubject(trx, workspaceId, row)
      await trx('legal_holds').insert({
        id,
        workspace_id: workspaceId,
        ...asColumns(row),
        reason,
        documents: 0,
        set_by: actor.type === 'system' ? null : actor.name,
      })
      await trx.raw(
        `
        insert into legal_hold_keys (workspace_id, key, hold_id, repo_id, doc_id)
        select :workspaceId, (legal_hold_keys_of(:repoId, :docId, :erpObjectType, :erpObjectId))[:place::integer], :id, :repoId, :docId
        `,
        { ...row, place: { repository: 1, document: 2, business_object: 3 }[row.scope], workspaceId, id } as never,
      )
      const documents = await countHeld(trx, workspaceId, id, row)
      const [hold] = await trx('legal_holds').where({ id }).update({ documents }).returning<LegalHold[]>(columns)
      await record(trx, {
        workspaceId,
        event: 'legal_hold.set',
        subjectId: id,
        description: `The ${subjectText(row)} was put on legal hold (${documentsText(documents)}): ${reason}`,
        metadata: { ...metadataOf(row), documents, reason },
        actor,
      })
      return hold!
    }),

  /** Lifts a hold. What no other hold applies to can be removed again. @throws `AppError` 404, or 422 without a reason */
  lift: (workspaceId: string, id: string, reason: string, actor: AuditActor): Promise<LegalHold> =>
    db.transaction(async (trx) => {
      requireReason(reason)
      const [hold] = await trx('legal_holds').where({ workspace_id: workspaceId, id }).delete().returning<LegalHold[]>(columns)
      if (!hold) throw notFound()
      await record(trx, {
        workspaceId,
        event: 'legal_hold.lifted',
        subjectId: id,
        description: `The legal hold on ${subjectText(hold)} was lifted: ${reason}`,
        metadata: { ...metadataOf(rowOf(hold)), reason, set_reason: hold.reason, set_at: hold.createdAt },
        actor,
      })
      return hold
    }),
})

export type LegalHolds = ReturnType<typeof createLegalHolds>
