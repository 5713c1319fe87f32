import { z } from 'zod'
import { deleteCertificatesOf } from '../access/certificates.ts'
import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { validationFailed } from '../base/refusals.ts'
import { isReadable } from '../connectors/index.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { isDuplicate } from '../db/errors.ts'
import type { OutboxMessage } from '../db/outbox.ts'
import type { Page, PageRequest } from '../db/page.ts'
import { snakeCased, type CamelCasedOutput } from '../domain/casing.ts'
import { findTwin } from '../home/sole-place.ts'
import type { KeyRing } from '../security/seal.ts'
import { configuredKind, only, type ChangeOf, type Configured } from '../workspace/configured-kind.ts'
import { activity, repositoryValues, type newRepository } from '../workspace/inputs.ts'
import { requireDestination } from '../workspace/required-destination.ts'
import { lockRouting } from '../workspace/workspaces.ts'
import { deleteConnections, unlinkConnections } from './connections.ts'
import { destinationKind } from './destinations.ts'
import { findRemoval, removalSentence, type DeletionOptions, type Removal } from './removal.ts'
import {
  changesUpstream,
  openUpstreamSecrets,
  requireUsableProxy,
  sealUpstream,
  type SealedUpstream,
  type UpstreamDeps,
  type UpstreamInput,
} from './repository-upstream.ts'
import { repositoryWarnings, warningFactsColumn, type RepositoryWarning, type WarningFacts } from './repository-warnings.ts'

type Values = typeof repositoryValues

export interface Repository extends Configured<Values> {
  documentCount: number
  activeCertificates: number
  /** Null if no request that names the repository is stored. */
  lastRequestAt: Date | null
  warnings: RepositoryWarning[]
}

/** A repository with the secrets of its upstream. */
export type SealedRepository = Repository & SealedUpstream

/** A destination that a connection links to a repository. */
export const repositoryConnection = z
  .object({ id: z.string(), name: z.string(), destination_name: z.string(), status: activity })
  .meta({ id: 'RepositoryConnection' })

/** A new repository is active, if it is not to have another status. */
type NewRepository = Omit<CamelCasedOutput<typeof newRepository>, 'upstream'> & Pick<RepositoryChange, 'status' | 'upstream'>
type RepositoryChange = Omit<ChangeOf<Values>, 'upstream'> & { upstream?: UpstreamInput | null | undefined }

/**
 * Returns true if a change makes the verification of signatures weaker. The management API demands a key of level `admin` for it. What an upstream
 * answers is served and delivered as if the source system had signed it.
 */
export const weakensSignatures = (
  current: Pick<RepositoryChange, 'signatureVerification' | 'signedParameterOrder' | 'acceptsMcreate'> &
    Partial<Pick<SealedUpstream, 'upstream'>>,
  change: RepositoryChange,
): boolean =>
  (current.signatureVerification === true && change.upstream !== undefined && changesUpstream(current.upstream ?? null, change.upstream)) ||
  (current.signatureVerification === true && change.signatureVerification === false) ||
  (current.signedParameterOrder === 'fixed' && change.signedParameterOrder === 'any') ||
  (current.acceptsMcreate === false && change.acceptsMcreate === true)

// At most sixteen rows per repository, found by their primary key.
const documentCount = `
  (
    select coalesce(sum(documents), 0)::bigint
    from repository_counts
    where repository_id = repositories.id
  ) as "documentCount"
`

const activeCertificates = `
  (
    select count(*)
    from certificates
    where repository_id = repositories.id
      and is_active
  ) as "activeCertificates"
`

// The ids of requests are in the order of their arrival.
const lastRequestAt = `
  (
    select request_at
    from captured_requests
    where captured_requests.workspace_id = repositories.workspace_id
      and captured_requests.repo_id = repositories.repo_id
    order by captured_requests.id desc
    limit 1
  ) as "lastRequestAt"
`

export const repositoryKind = configuredKind<Values, SealedRepository>({
  table: 'repositories',
  event: 'repository',
  noun: 'Repository',
  schema: repositoryValues,
  namedBy: 'repo_id',
  isKept: true,
  more: ['upstream_secrets_sealed'],
  expressions: [documentCount, activeCertificates, lastRequestAt, warningFactsColumn],
  rowOf: ({ warningFacts, ...row }: Omit<SealedRepository, 'warnings'> & { warningFacts: WarningFacts | null }) => ({
    ...row,
    warnings: repositoryWarnings(warningFacts),
  }),
})

const noUpstream: SealedUpstream = { upstream: null, upstreamSecretsSealed: null }

/** Returns the names of the secrets of an upstream that a change alters. */
const changedSecrets = (keyRing: KeyRing, owner: { workspaceId: string; id: string }, current: SealedUpstream, sealed: SealedUpstream) => {
  const [before, after] = [current, sealed].map((each) => openUpstreamSecrets(keyRing, owner.workspaceId, { ...each, id: owner.id }))
  return (['private_key', 'proxy_url'] as const).filter((name) => before![name] !== after![name]).map((name) => `upstream.${name}`)
}

const homes = { types: 'that can be read, and neither email nor webhook', isOne: isReadable }

/** @throws `AppError` 422 if the home of a repository cannot keep contents. `lockRouting` keeps it from being deleted */
const requireHome = async (trx: Transaction, workspaceId: string, id: string): Promise<void> => {
  await requireDestination(trx, workspaceId, id, homes, 'home_destination_id')
  const twin = await findTwin(trx, workspaceId, await destinationKind.find(trx, workspaceId, id), true)
  if (twin === undefined) return
  const message = `cannot keep contents: deliveries to destination ${twin}, which names the same place, would replace them`
  throw validationFailed([{ path: 'home_destination_id', message }])
}

export const createRepositories = (db: Database) => {
  /** @throws `AppError` 404 */
  const find = (workspaceId: string, id: string): Promise<SealedRepository> => repositoryKind.find(db, workspaceId, id)
  /** Locks a repository and reads it. @throws `AppError` 404 */
  const lock = async (trx: Transaction, workspaceId: string, id: string): Promise<SealedRepository> => {
    await trx('repositories').select('id').where({ workspace_id: workspaceId, id }).forNoKeyUpdate()
    return repositoryKind.find(trx, workspaceId, id)
  }

  return {
    find,
    versionOf: repositoryKind.versionOf,

    /** Lists repositories in order of creation. */
    list: (
      workspaceId: string,
      { status, ...page }: PageRequest & { status?: Repository['status'] | undefined },
    ): Promise<Page<SealedRepository>> => repositoryKind.list(db, workspaceId, page, status ? { status } : {}),

    /** Finds a repository by its name in the source system. */
    findByRepoId: async (workspaceId: string, repoId: string): Promise<Repository | undefined> =>
      (await repositoryKind.listAll(db, workspaceId, { repo_id: repoId }))[0],

    listConnections: async (id: string) => {
      const { rows } = await db.raw<{ rows: CamelCasedOutput<typeof repositoryConnection>[] }>(
        `
        select
          connections.id, connections.name, destinations.name as "destinationName",
          case when is_active then 'active' else 'inactive' end as status
        from connection_repositories
        join connections on connections.id = connection_repositories.connection_id
        join connection_destinations on connection_destinations.connection_id = connections.id
        join destinations on destinations.id = connection_destinations.destination_id
        where repository_id = ?
        order by connections.id, connection_destinations.position
        `,
        [id],
      )
      return rows
    },

    /** Inserts a repository. @throws `AppError` 409 if the workspace has a repository with this `repoId`, 422 if the upstream is invalid */
    insert: async (
      workspaceId: string,
      { upstream, ...values }: NewRepository,
      actor: AuditActor,
      { keyRing, outbound }: UpstreamDeps,
    ): Promise<Repository> => {
      const id = newId()
      await requireUsableProxy({ outbound }, upstream)
      const sealed = sealUpstream(keyRing, { workspaceId, repositoryId: id }, noUpstream, upstream ?? null)
      const columns = repositoryKind.columnsOf(repositoryKind.valuesOf({ ...values, upstream: sealed.upstream }))
      try {
        return await db.transaction(async (trx) => {
          if (values.homeDestinationId !== null) {
            await lockRouting(trx, workspaceId)
            await requireHome(trx, workspaceId, values.homeDestinationId)
          }
          await trx('repositories').insert({
            id,
            workspace_id: workspaceId,
            ...columns,
            upstream_secrets_sealed: sealed.upstreamSecretsSealed,
          })
          const row = await repositoryKind.find(trx, workspaceId, id)
          await repositoryKind.recordCreation(trx, workspaceId, row, actor)
          return row
        })
      } catch (thrown) {
        if (!isDuplicate(thrown, 'repositories_by_repo_id')) throw thrown
        throw new AppError('conflict', `This workspace already has a repository with repo_id ${values.repoId}.`)
      }
    },

    /**
     * Writes and records the values that differ, if any.
     * @param check throws if the change is not allowed. It is called once more while the row is locked, if a proxy is checked in between
     * @throws `AppError` 404, or 422 if the upstream is invalid
     */
    update: async (
      workspaceId: string,
      id: string,
      { upstream, ...change }: RepositoryChange,
      actor: AuditActor,
      { keyRing, outbound }: UpstreamDeps,
      check?: (current: Repository) => void,
    ): Promise<Repository> => {
      if (upstream?.proxyUrl) {
        // Names are resolved before the transaction, and only for a change that could be made.
        check?.(await find(workspaceId, id))
        await requireUsableProxy({ outbound }, upstream)
      }
      return db.transaction(async (trx) => {
        const home = change.homeDestinationId ?? undefined
        if (home !== undefined) await lockRouting(trx, workspaceId)
        const current = await lock(trx, workspaceId, id)
        check?.(current)
        if (home !== undefined) await requireHome(trx, workspaceId, home)
        const sealed = upstream === undefined ? current : sealUpstream(keyRing, { workspaceId, repositoryId: id }, current, upstream)
        const wanted = repositoryKind.valuesOf({ ...change, upstream: sealed.upstream })
        const others = changedSecrets(keyRing, { workspaceId, id }, current, sealed)
        const changed = repositoryKind.changedBy(current, wanted)
        if (changed.length + others.length === 0) return current
        await trx('repositories')
          .where({ id })
          .update({
            ...repositoryKind.columnsOf(only(wanted, changed)),
            upstream_secrets_sealed: sealed.upstreamSecretsSealed,
            updated_at: trx.fn.now(),
          })
        const row = await repositoryKind.find(trx, workspaceId, id)
        await repositoryKind.recordChange(trx, workspaceId, { current, row, others }, actor)
        return row
      })
    },

    /** Finds what a deletion would remove. @throws `AppError` 404 */
    findRemoval: async (workspaceId: string, id: string, keepConnections: boolean): Promise<Removal> =>
      findRemoval(db, 'repository', (await find(workspaceId, id)).id, keepConnections),

    /**
     * Deletes a repository with its certificates, its links and the active connections that start at it, as the contract says, even those
     * that link other repositories. What a deleted connection still held is cancelled: up to `limit` deliveries now, the rest by a
     * workflow. An inactive connection stays without the repository: its activation releases what it holds, or its own deletion cancels
     * it. The row stays for the documents that refer to it.
     * @returns what was removed, with the committed messages
     * @throws `AppError` 404
     */
    delete: (
      workspaceId: string,
      id: string,
      actor: AuditActor,
      { limit, keepConnections, check }: DeletionOptions<Repository>,
    ): Promise<Removal & { messages: OutboxMessage[] }> =>
      db.transaction(async (trx) => {
        const workspace = await lockRouting(trx, workspaceId)
        const deleted = await lock(trx, workspaceId, id)
        check?.(deleted)
        const removal = await findRemoval(trx, 'repository', id, keepConnections)
        await record(trx, {
          workspaceId,
          event: 'repository.deleted',
          subjectId: id,
          description: `Repository ${deleted.repoId} was deleted.${removalSentence(removal)}`,
          metadata: { repo_id: deleted.repoId, name: deleted.name, ...snakeCased(removal) },
          actor,
        })
        await deleteCertificatesOf(trx, workspaceId, id, actor)
        const messages = await deleteConnections(trx, { id: workspaceId, name: workspace }, removal.removedConnections, actor, limit)
        await unlinkConnections(trx, workspaceId, 'repository', id, removal.unlinkedConnections, actor)
        await trx('connection_repositories').where({ repository_id: id }).delete()
        await trx('enrichment_repositories').where({ repository_id: id }).delete()
        await trx('repositories')
          .where({ id })
          .update({ upstream: null, upstream_secrets_sealed: null, deleted_at: trx.fn.now(), updated_at: trx.fn.now() })
        return { ...removal, messages }
      }),
  }
}

export type Repositories = ReturnType<typeof createRepositories>
