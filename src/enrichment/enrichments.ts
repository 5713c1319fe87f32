import { isDeepStrictEqual } from 'node:util'
import { newId } from '../base/ids.ts'
import { plainMessages } from '../base/issue-messages.ts'
import { detailsOf, notFound, validationFailed } from '../base/refusals.ts'
import { signsIn } from '../connectors/shared/http-sign-in.ts'
import { record, type AuditActor } from '../db/audit.ts'
import { presentCounts } from '../db/counters.ts'
import type { Database, Transaction } from '../db/database.ts'
import type { Page, PageRequest } from '../db/page.ts'
import { openQueue } from '../db/side-work.ts'
import { enrichmentStatuses } from '../domain/enrichment-states.ts'
import { prepareCall } from '../rfc/call.ts'
import { openOrUndefined } from '../routing/stored-credentials.ts'
import { requireEncryptedHttp, type ProbeDeps } from '../routing/targets.ts'
import { enrichmentCredentialsOf, type KeyRing } from '../security/seal.ts'
import { lockRouting } from '../workspace/workspaces.ts'
import { isFailing } from './failing.ts'
import { callOf, enrichmentCredentials, httpSettings, storedHttp, type HttpSettings, type StepSettings } from './settings.ts'

/** The calls that fetch the business data of the documents of some repositories. */
export interface Enrichment {
  id: string
  name: string
  repositoryIds: string[]
  isActive: boolean
  waitSeconds: number
  lateDays: number
  http: HttpSettings | null
  steps: StepSettings[]
  hasCredentials: boolean
  /** Its latest documents have no business data. */
  isFailing: boolean
  /** The documents that it serves, by status. */
  documents: Record<(typeof enrichmentStatuses)[number], number>
  createdAt: Date
  updatedAt: Date
}

export type SealedEnrichment = Enrichment & { credentialsSealed: Buffer | null }

/** Values of an enrichment that people set. Credentials replace the stored ones as a whole. */
export interface EnrichmentChange extends Partial<
  Pick<Enrichment, 'name' | 'repositoryIds' | 'isActive' | 'waitSeconds' | 'lateDays' | 'http' | 'steps'>
> {
  credentials?: Record<string, unknown> | undefined
}

export type NewEnrichment = Required<Omit<EnrichmentChange, 'credentials'>> & Pick<EnrichmentChange, 'credentials'>

type Deps = Pick<ProbeDeps, 'outbound' | 'config'> & { keyRing: KeyRing }

const select = async (
  db: Database | Transaction,
  workspaceId: string,
  { id, page }: { id?: string; page?: PageRequest },
): Promise<SealedEnrichment[]> => {
  const { rows } = await db.raw<{ rows: (Omit<SealedEnrichment, 'http'> & { http: Parameters<typeof httpSettings>[0] })[] }>(
    `
    select
      id, name, is_active as "isActive", wait_seconds as "waitSeconds", late_days as "lateDays", http, steps,
      credentials_sealed as "credentialsSealed", credentials_sealed is not null as "hasCredentials",
      array(
        select repository_id
        from enrichment_repositories
        where enrichment_id = enrichments.id
        order by position
      ) as "repositoryIds",
      is_active and ${isFailing('enrichments.id')} as "isFailing",
      (
        select jsonb_object_agg(known.status, coalesce(counted.count, 0))
        from unnest(:statuses::text[]) as known (status)
        left join (
          select status, sum(count) as count
          from (${presentCounts('enrichments', 'and detail = enrichments.id', 'enrichments.workspace_id')}) as part
          group by status
        ) as counted using (status)
      ) as documents,
      created_at as "createdAt", updated_at as "updatedAt"
    from enrichments
    where workspace_id = :workspaceId
      and (:id::text is null or id = :id)
    order by id
    limit :limit
    offset :offset
    `,
    {
      workspaceId,
      statuses: [...enrichmentStatuses],
      id: id ?? null,
      limit: page?.perPage ?? null,
      offset: page ? (page.page - 1) * page.perPage : 0,
    },
  )
  return rows.map((row) => ({ ...row, http: httpSettings(row.http) }))
}

const find = async (db: Database | Transaction, workspaceId: string, id: string): Promise<SealedEnrichment> => {
  const [found] = await select(db, workspaceId, { id })
  if (!found) throw notFound()
  return found
}

/** @throws AppError 422 if a repository does not exist, or has another enrichment */
const serve = async (trx: Transaction, workspaceId: string, enrichmentId: string, repositoryIds: string[]): Promise<void> => {
  const { rows } = await trx.raw<{ rows: { id: string; other: string | null }[] }>(
    `
    select repositories.id, case when enrichment_id <> :enrichmentId then enrichments.name end as other
    from repositories
    left join enrichment_repositories on repository_id = repositories.id
    left join enrichments on enrichments.id = enrichment_id
    where repositories.workspace_id = :workspaceId
      and repositories.id = any (:repositoryIds::text[])
      and deleted_at is null
    `,
    { workspaceId, enrichmentId, repositoryIds },
  )
  const found = new Map(rows.map((row) => [row.id, row.other]))
  const details = repositoryIds.flatMap((id, index) => {
    const other = found.get(id)
    const path = `repository_ids.${index}`
    if (other === undefined) return [{ path, message: 'there is no such repository in this workspace' }]
    return other === null ? [] : [{ path, message: `is served by the enrichment ${other} already` }]
  })
  if (details.length > 0) throw validationFailed(details)
  await trx('enrichment_repositories').where({ enrichment_id: enrichmentId }).delete()
  const rowsToInsert = [...new Set(repositoryIds)].map((id, position) => ({ repository_id: id, enrichment_id: enrichmentId, position }))
  if (rowsToInsert.length > 0) await trx('enrichment_repositories').insert(rowsToInsert)
}

/** @throws AppError 422 if a call cannot be made as it is described */
const checkCalls = ({ steps, http }: Pick<Enrichment, 'steps' | 'http'>): void => {
  const details = steps.flatMap((step, index) => {
    const call = callOf(step)
    if (call.kind === 'e_invoice') return []
    if (call.kind === 'http') return http ? [] : [{ path: `steps.${index}.kind`, message: 'needs the system http' }]
    const { imports, tables } = call
    const prepared = prepareCall({ functionName: call.function, bytes: Buffer.from(JSON.stringify({ imports, tables })) })
    if (prepared.kind === 'call') return []
    return (prepared.details ?? [{ path: 'imports', message: prepared.message }]).map(({ path, message }) => ({
      path: `steps.${index}.${path}`,
      message,
    }))
  })
  if (details.length > 0) throw validationFailed(details)
}

/** @throws AppError 422 */
const checkCredentials = async (deps: Deps, http: HttpSettings | null, credentials: Record<string, unknown>): Promise<void> => {
  const parsed = enrichmentCredentials.safeParse(credentials, plainMessages)
  if (!parsed.success) throw validationFailed(detailsOf(parsed.error.issues, ['credentials']))
  if (!signsIn(parsed.data)) return
  if (!http) throw validationFailed([{ path: 'credentials', message: 'need the system http' }])
  await requireEncryptedHttp(deps, http.url)
}

/** Returns an enrichment as the audit log shows it. */
const recorded = (enrichment: Pick<Enrichment, 'name' | 'repositoryIds' | 'isActive' | 'waitSeconds' | 'lateDays' | 'http' | 'steps'>) => ({
  name: enrichment.name,
  repository_ids: enrichment.repositoryIds,
  is_active: enrichment.isActive,
  wait_seconds: enrichment.waitSeconds,
  late_days: enrichment.lateDays,
  http: storedHttp(enrichment.http),
  steps: enrichment.steps,
})

const isSameTarget = (one: HttpSettings | null, other: HttpSettings | null): boolean =>
  one?.url === other?.url && one?.caCertificate === other?.caCertificate

/**
 * Returns the credentials to store with a change.
 * @throws AppError 422 if the stored ones would be sent elsewhere
 */
const resealed = (
  { keyRing }: Deps,
  workspaceId: string,
  current: SealedEnrichment,
  { http = current.http, credentials }: Pick<EnrichmentChange, 'http' | 'credentials'>,
): Buffer | null => {
  if (http === null) return null
  if (credentials) return sealOf(keyRing, workspaceId, current.id, http, credentials)
  if (current.credentialsSealed === null || isSameTarget(http, current.http)) return current.credentialsSealed
  const message = 'required: the stored credentials must not be sent to another address. Send them together with the change of http'
  throw validationFailed([{ path: 'credentials', message }])
}

const sealOf = (keyRing: KeyRing, workspaceId: string, id: string, http: HttpSettings, credentials: Record<string, unknown>) =>
  Object.keys(credentials).length === 0 ? null : keyRing.seal(credentials, enrichmentCredentialsOf(workspaceId, id, storedHttp(http)))

/** Opens the credentials of an enrichment. @returns undefined if no key opens them */
export const openEnrichmentCredentials = (
  keyRing: KeyRing,
  workspaceId: string,
  { id, http, credentialsSealed }: Pick<SealedEnrichment, 'id' | 'http' | 'credentialsSealed'>,
): unknown =>
  credentialsSealed === null ? {} : openOrUndefined(keyRing, credentialsSealed, enrichmentCredentialsOf(workspaceId, id, storedHttp(http)))

const columnsOf = ({ name, isActive, waitSeconds, lateDays, http, steps }: EnrichmentChange) => ({
  ...(name !== undefined && { name }),
  ...(isActive !== undefined && { is_active: isActive }),
  ...(waitSeconds !== undefined && { wait_seconds: waitSeconds }),
  ...(lateDays !== undefined && { late_days: lateDays }),
  ...(http !== undefined && { http: http && JSON.stringify(storedHttp(http)) }),
  ...(steps && { steps: JSON.stringify(steps) }),
})

export const createEnrichments = (db: Database | Transaction) => ({
  /** Lists enrichments in order of creation. */
  list: async (workspaceId: string, page: PageRequest): Promise<Page<SealedEnrichment>> => {
    const [items, counted] = await Promise.all([
      select(db, workspaceId, { page }),
      db('enrichments').where({ workspace_id: workspaceId }).count<{ total: number }[]>({ total: '*' }).first(),
    ])
    return { items, total: counted!.total }
  },

  /** @throws AppError 404 */
  find: (workspaceId: string, id: string): Promise<SealedEnrichment> => find(db, workspaceId, id),

  /** Finds the enrichment that serves the repository of a document. */
  findIdFor: async (workspaceId: string, documentId: string): Promise<string | undefined> => {
    const row: { id: string } | undefined = await db('documents')
      .join('enrichment_repositories', 'enrichment_repositories.repository_id', 'documents.repository_id')
      .where({ 'documents.workspace_id': workspaceId, 'documents.id': documentId })
      .first('enrichment_id as id')
    return row?.id
  },

  /** @throws AppError 422 */
  insert: async (workspaceId: string, enrichment: NewEnrichment, actor: AuditActor, deps: Deps): Promise<SealedEnrichment> => {
    const { http, credentials = {}, repositoryIds } = enrichment
    checkCalls(enrichment)
    await checkCredentials(deps, http, credentials)
    return db.transaction(async (trx) => {
      await lockRouting(trx, workspaceId)
      const id = newId()
      await trx('enrichments').insert({
        id,
        workspace_id: workspaceId,
        ...columnsOf(enrichment),
        credentials_sealed: http && sealOf(deps.keyRing, workspaceId, id, http, credentials),
      })
      await serve(trx, workspaceId, id, repositoryIds)
      const created = await find(trx, workspaceId, id)
      await record(trx, {
        workspaceId,
        event: 'enrichment.created',
        subjectId: id,
        description: `Enrichment ${created.name} was created${created.isActive ? '' : ', inactive'}.`,
        metadata: recorded(created),
        actor,
      })
      return created
    })
  },

  /**
   * Writes and records the values that differ, if any.
   * @param check throws if the enrichment must not be changed as it is
   * @throws AppError 404 or 422
   */
  update: async (
    workspaceId: string,
    id: string,
    change: EnrichmentChange,
    actor: AuditActor,
    deps: Deps,
    check?: (current: Enrichment) => void,
  ): Promise<SealedEnrichment> => {
    if (change.credentials) {
      // Before the workspace is locked, because it resolves a host name.
      const { http = (await find(db, workspaceId, id)).http } = change
      await checkCredentials(deps, http, change.credentials)
    }
    return db.transaction(async (trx) => {
      await lockRouting(trx, workspaceId)
      const current = await find(trx, workspaceId, id)
      check?.(current)
      const wanted: Enrichment = {
        ...current,
        ...(Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as object),
      }
      checkCalls(wanted)
      const sealed = resealed(deps, workspaceId, current, change)
      const [before, after] = [recorded(current), recorded({ ...wanted, repositoryIds: [...new Set(wanted.repositoryIds)] })]
      const names = Object.keys(before) as (keyof typeof before)[]
      const changed = names.filter((name) => !isDeepStrictEqual(before[name], after[name]))
      const hasNewCredentials = change.credentials !== undefined || (current.hasCredentials && sealed === null)
      if (changed.length === 0 && !hasNewCredentials) return current
      await trx('enrichments')
        .where({ id })
        .update({ ...columnsOf(change), credentials_sealed: sealed, updated_at: trx.fn.now() })
      // The change may repair what fails, or end what waits.
      await openQueue(trx, 'enrichment', id)
      if (change.repositoryIds) await serve(trx, workspaceId, id, change.repositoryIds)
      const valuesOf = (values: typeof before) => Object.fromEntries(changed.map((name) => [name, values[name]]))
      const all = [...changed, ...(hasNewCredentials ? ['credentials'] : [])]
      await record(trx, {
        workspaceId,
        event: 'enrichment.updated',
        subjectId: id,
        description: `Enrichment ${wanted.name} was changed: ${all.join(', ')}.`,
        metadata: { name: wanted.name, before: valuesOf(before), after: valuesOf(after) },
        actor,
      })
      return find(trx, workspaceId, id)
    })
  },

  /** Deletes an enrichment. Documents keep their fields. @throws AppError 404 */
  delete: (workspaceId: string, id: string, actor: AuditActor, check?: (current: Enrichment) => void): Promise<void> =>
    db.transaction(async (trx) => {
      await lockRouting(trx, workspaceId)
      const current = await find(trx, workspaceId, id)
      check?.(current)
      await trx('enrichments').where({ id }).delete()
      await openQueue(trx, 'enrichment', id)
      const description = `Enrichment ${current.name} was deleted.`
      await record(trx, { workspaceId, event: 'enrichment.deleted', subjectId: id, description, metadata: { name: current.name }, actor })
    }),
})

export type Enrichments = ReturnType<typeof createEnrichments>
