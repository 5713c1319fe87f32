import { similarRepositories } from '../access/certificates.ts'
import { messageOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { refusedRequests, refusedSource } from '../capture/latest-requests.ts'
import type { Database } from '../db/database.ts'
import { refusals, type RefusalCode } from '../domain/refusal-codes.ts'
import { failingUpstream } from '../migration/failures.ts'

export const repositoryWarningCodes = [
  'open_to_all',
  'not_connected',
  'no_active_certificate',
  'similar_name',
  'upstream_failing',
  'requests_refused',
] as const

export interface RepositoryWarning {
  code: (typeof repositoryWarningCodes)[number]
  message: string
}

/** Facts about an active repository from which its warnings follow. */
export interface WarningFacts {
  isOpenToAll: boolean
  isConnected: boolean
  /** False if the repository requires signatures, and none can be valid. */
  canBeSigned: boolean
  /** Names of repositories that begin alike and accept signatures of the same signer. */
  similarNames: string[]
  /** Why and since when the upstream fails. Null if it does not, or if there is none. */
  upstreamFailure: { since: string; error: string } | null
  /** Start of the time in which all requests were refused, and why the last one was. Null if one of the latest was accepted. */
  refused: { since: string; code: RefusalCode } | null
}

/** Condition in a query on the table repositories: a connection, active or not, leads to a destination. */
export const isConnected = `
  exists (
    select 1
    from connection_repositories
    join connection_destinations on connection_destinations.connection_id = connection_repositories.connection_id
    where connection_repositories.repository_id = repositories.id
  )
`

/** Column `warningFacts` of a query on the table repositories. Null for an inactive repository, which refuses all requests. */
export const warningFactsColumn = `
  case when repositories.status = 'active' then jsonb_build_object(
    'isOpenToAll', not signature_verification and exists (
      select 1
      from workspaces
      where workspaces.id = repositories.workspace_id
        and coalesce(jsonb_array_length(workspaces.settings -> 'receiver_allowed_cidrs'), 0) = 0
    ),
    'isConnected', ${isConnected},
    'canBeSigned', not signature_verification or exists (
      select
      from certificates
      where certificates.repository_id = repositories.id
        and is_active
    ),
    'similarNames', case when signature_verification then array(${similarRepositories(
      'repositories',
      'in (select auth_id from certificates where certificates.repository_id = repositories.id and is_active)',
    )}) else '{}' end,
    'upstreamFailure', (
      select jsonb_build_object('since', failing_since, 'error', last_error)
      from (${failingUpstream}) as failing
    ),
    'refused', (select jsonb_build_object('since', since, 'code', code) from (${refusedSource()}) as latest)
  ) end as "warningFacts"
`

/** Returns what an operator should know about a repository. @param facts null for an inactive repository */
export const repositoryWarnings = (facts: WarningFacts | null): RepositoryWarning[] => {
  if (!facts) return []
  const warnings: RepositoryWarning[] = []
  if (facts.isOpenToAll) {
    const message =
      'Everybody who can reach the receiver can store, read and delete documents. ' +
      'Turn signature_verification on, or set receiver_allowed_cidrs in the workspace settings.'
    warnings.push({ code: 'open_to_all', message })
  }
  if (!facts.isConnected) {
    const message = 'No connection leads to a destination: documents are acknowledged and discarded. Create a connection.'
    warnings.push({ code: 'not_connected', message })
  }
  if (!facts.canBeSigned) {
    const message =
      'Signatures are required, and no certificate is active: every signed request is refused. ' +
      'Compare the fingerprint of a certificate of the source system, and activate the certificate.'
    warnings.push({ code: 'no_active_certificate', message })
  }
  if (facts.similarNames.length > 0) {
    const message =
      `The same signer signs for repositories whose names begin alike: ${facts.similarNames.toSorted().join(', ')}. ` +
      'Where a signed URL fits several of them, it counts for one only. Use names of the same length.'
    warnings.push({ code: 'similar_name', message })
  }
  if (facts.upstreamFailure) {
    const { since, error } = facts.upstreamFailure
    const message =
      `The upstream has failed since ${new Date(since).toISOString()}: ${error}. Documents that only it has, and new ones, are answered with 503. ` +
      'Restore it, or set upstream to null.'
    warnings.push({ code: 'upstream_failing', message })
  }
  if (facts.refused) {
    const { since, code } = facts.refused
    const message =
      `The latest ${refusedRequests} requests of the source system, since ${new Date(since).toISOString()}, were all refused, the last one with ${code}. ` +
      refusals[code].remedy
    warnings.push({ code: 'requests_refused', message })
  }
  return warnings
}

/** Finds the repositories of all workspaces that have a warning. @returns their names, as `{userSlug}/{workspaceSlug} {repoId}`, by code */
export const findRepositoryWarnings = async (db: Database): Promise<Record<RepositoryWarning['code'], string[]>> => {
  const { rows } = await db.raw<{ rows: { name: string; warningFacts: WarningFacts }[] }>(`
    select user_slug || '/' || workspace_slug || ' ' || repo_id as name, ${warningFactsColumn}
    from repositories
    join workspaces on workspaces.id = repositories.workspace_id
    where repositories.status = 'active'
      and deleted_at is null
    order by name
  `)
  const found: Record<RepositoryWarning['code'], string[]> = {
    open_to_all: [],
    not_connected: [],
    no_active_certificate: [],
    similar_name: [],
    upstream_failing: [],
    requests_refused: [],
  }
  for (const { name, warningFacts } of rows) {
    for (const { code } of repositoryWarnings(warningFacts)) found[code].push(name)
  }
  return found
}

const loggedNamesMax = 20

/** Logs one line that names the repositories to which everybody may send documents, if there are any. Never fails. */
export const warnAboutOpenReceivers = async (db: Database, log: Log): Promise<void> => {
  try {
    const { open_to_all: open } = await findRepositoryWarnings(db)
    if (open.length === 0) return
    const text = 'repositories accept unsigned requests from every address; set receiver_allowed_cidrs or signature_verification'
    log.warn({ count: open.length, repositories: open.slice(0, loggedNamesMax) }, text)
  } catch (thrown) {
    log.info({ reason: messageOf(thrown) }, 'the repositories could not be checked for open receivers')
  }
}
