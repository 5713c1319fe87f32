import { plainMessages } from '../base/issue-messages.ts'
import { detailsOf, validationFailed } from '../base/refusals.ts'
import { signsIn } from '../connectors/shared/http-sign-in.ts'
import { presentCounts } from '../db/counters.ts'
import type { Database, Transaction } from '../db/database.ts'
import { openQueue } from '../db/side-work.ts'
import { enrichmentStatuses, type EnrichmentStatus } from '../domain/enrichment-states.ts'
import { prepareCall } from '../rfc/call.ts'
import { requireEncryptedHttp, type ProbeDeps } from '../routing/targets.ts'
import { enrichmentCredentialsOf, openOrUndefined, type KeyRing } from '../security/seal.ts'
import { configuredKind, type ChangeOf, type Configured } from '../workspace/configured-kind.ts'
import { createConfigured } from '../workspace/configured.ts'
import { isFailing } from './failing.ts'
import { callOf, enrichmentCredentials, enrichmentValues, storedHttp, type HttpSettings } from './settings.ts'

/** The calls that fetch the business data of the documents of some repositories. */
export interface Enrichment extends Configured<typeof enrichmentValues> {
  hasCredentials: boolean
  /** Its latest documents have no business data. */
  isFailing: boolean
  /** The documents that it serves, by status. */
  documents: Record<EnrichmentStatus, number>
  credentialsSealed: Buffer | null
}

/** What a change may also contain. Credentials replace the stored ones as a whole. */
interface WithCredentials {
  credentials?: Record<string, unknown> | undefined
}

type EnrichmentChange = ChangeOf<typeof enrichmentValues> & WithCredentials

// Each of them is a row of every document.
const enrichmentsMax = 10

export type ConfigureEnrichmentDeps = Pick<ProbeDeps, 'outbound' | 'config'> & { keyRing: KeyRing }

export const enrichmentKind = configuredKind<typeof enrichmentValues, Enrichment>({
  table: 'enrichments',
  event: 'enrichment',
  noun: 'Enrichment',
  schema: enrichmentValues,
  linked: ['repository_ids'],
  more: ['credentials_sealed'],
  expressions: [
    'credentials_sealed is not null as "hasCredentials"',
    `
      array(
        select repository_id
        from enrichment_repositories
        where enrichment_id = enrichments.id
        order by position
      ) as "repositoryIds"
    `,
    `is_active and ${isFailing('enrichments.id')} as "isFailing"`,
    `
      (
        select jsonb_object_agg(known.status, coalesce(counted.count, 0))
        from unnest(array[${enrichmentStatuses.map((status) => `'${status}'`).join(', ')}]) as known (status)
        left join (
          select status, sum(count) as count
          from (${presentCounts('enrichments', 'and detail = enrichments.id', 'enrichments.workspace_id')}) as part
          group by status
        ) as counted using (status)
      ) as documents
    `,
  ],
})

/** @throws AppError 422 if a repository does not exist, or has too many enrichments */
const serve = async (trx: Transaction, workspaceId: string, enrichmentId: string, repositoryIds: string[]): Promise<void> => {
  const { rows } = await trx.raw<{ rows: { id: string; others: number }[] }>(
    `
    select repositories.id, count(enrichment_id)::integer as others
    from repositories
    left join enrichment_repositories
      on repository_id = repositories.id
      and enrichment_id <> :enrichmentId
    where repositories.workspace_id = :workspaceId
      and repositories.id = any (:repositoryIds::text[])
      and deleted_at is null
    group by repositories.id
    `,
    { workspaceId, enrichmentId, repositoryIds },
  )
  const found = new Map(rows.map(({ id, others }) => [id, others]))
  const details = repositoryIds.flatMap((id, index) => {
    const others = found.get(id)
    const path = `repository_ids.${index}`
    if (others === undefined) return [{ path, message: 'there is no such repository in this workspace' }]
    return others < enrichmentsMax ? [] : [{ path, message: `is served by ${enrichmentsMax} enrichments already` }]
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
const checkCredentials = async (
  deps: ConfigureEnrichmentDeps,
  http: HttpSettings | null,
  credentials: Record<string, unknown>,
): Promise<void> => {
  const parsed = enrichmentCredentials.safeParse(credentials, plainMessages)
  if (!parsed.success) throw validationFailed(detailsOf(parsed.error.issues, ['credentials']))
  if (!signsIn(parsed.data)) return
  if (!http) throw validationFailed([{ path: 'credentials', message: 'need the system http' }])
  await requireEncryptedHttp(deps, http.url)
}

const isSameTarget = (one: HttpSettings | null, other: HttpSettings | null): boolean =>
  one?.url === other?.url && one?.caCertificate === other?.caCertificate

/**
 * Returns the credentials to store with a change.
 * @throws AppError 422 if the stored ones would be sent elsewhere
 */
const resealed = (
  { keyRing }: ConfigureEnrichmentDeps,
  workspaceId: string,
  current: Enrichment,
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
  { id, http, credentialsSealed }: Pick<Enrichment, 'id' | 'http' | 'credentialsSealed'>,
): unknown =>
  credentialsSealed === null ? {} : openOrUndefined(keyRing, credentialsSealed, enrichmentCredentialsOf(workspaceId, id, storedHttp(http)))

/** Finds the enrichments that serve the repository of a document, in the order in which they were created. */
export const findEnrichmentsFor = (db: Database, workspaceId: string, documentId: string): Promise<{ id: string; name: string }[]> =>
  db('documents')
    .join('enrichment_repositories', 'enrichment_repositories.repository_id', 'documents.repository_id')
    .join('enrichments', 'enrichments.id', 'enrichment_id')
    .where({ 'documents.workspace_id': workspaceId, 'documents.id': documentId })
    .orderBy('enrichments.id')
    .select('enrichments.id', 'name')

/** Documents keep their fields if their enrichment is deleted. */
export const createEnrichments = (db: Database | Transaction, deps: ConfigureEnrichmentDeps) =>
  createConfigured<typeof enrichmentValues, Enrichment, WithCredentials>(db, enrichmentKind, {
    // Before the workspace is locked, because it resolves a host name.
    prepare: async ({ http, credentials }, current) => {
      if (credentials) await checkCredentials(deps, http === undefined ? ((await current())?.http ?? null) : http, credentials)
    },
    check: (_, { current, change: { steps = current?.steps ?? [], http = current?.http ?? null } }) => checkCalls({ steps, http }),
    alsoSet: (_, { workspaceId, id, change, current }) => {
      const { http = null, credentials = {} } = change
      if (!current) return { columns: { credentials_sealed: http && sealOf(deps.keyRing, workspaceId, id, http, credentials) } }
      const sealed = resealed(deps, workspaceId, current, change)
      const areNew = change.credentials !== undefined || (current.hasCredentials && sealed === null)
      return { columns: { credentials_sealed: sealed }, names: areNew ? ['credentials'] : [] }
    },
    written: async (trx, { workspaceId, id, change, current, changed }) => {
      if (changed.includes('repository_ids')) await serve(trx, workspaceId, id, change.repositoryIds!)
      // The change may repair what fails, or end what waits.
      if (current) await openQueue(trx, 'enrichment', id)
    },
    deleted: (trx, id) => openQueue(trx, 'enrichment', id),
  })

export type Enrichments = ReturnType<typeof createEnrichments>
