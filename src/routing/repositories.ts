import { isDeepStrictEqual } from 'node:util'
import { deleteCertificatesOf } from '../access/certificates.ts'
import { AppError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { notFound } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { isDuplicate } from '../db/errors.ts'
import type { OutboxMessage } from '../db/outbox.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { toCamelCase } from '../domain/casing.ts'
import { upstreamFields, type StoredUpstream, type Upstream } from '../domain/upstream.ts'
import type { KeyRing } from '../security/seal.ts'
import { lockRouting } from '../workspace/workspaces.ts'
import { deleteConnections, unlinkConnections } from './connections.ts'
import { findRemoval, removalMetadata, removalSentence, type DeletionOptions, type Removal } from './removal.ts'
import {
  openUpstreamSecrets,
  requireUsableProxy,
  sealUpstream,
  storedUpstream,
  type SealedUpstream,
  type UpstreamDeps,
  type UpstreamInput,
} from './repository-upstream.ts'
import { repositoryWarnings, warningFactsColumn, type RepositoryWarning, type WarningFacts } from './repository-warnings.ts'

export type RepositoryStatus = 'active' | 'inactive'
/** The order of the signed parameters in a URL: that of the measured clients, or any. */
type SignedParameterOrder = 'fixed' | 'any'

export interface Repository {
  id: string
  repoId: string
  name: string
  status: RepositoryStatus
  signatureVerification: boolean
  signedParameterOrder: SignedParameterOrder
  /** Whether mCreate is accepted. */
  acceptsMcreate: boolean
  /** The content server that the source system used before. */
  upstream: Upstream | null
  documentCount: number
  activeCertificates: number
  /** Null if no request that names the repository is stored. */
  lastRequestAt: Date | null
  warnings: RepositoryWarning[]
  createdAt: Date
  updatedAt: Date
}

/** A repository with the secrets of its upstream. */
export type SealedRepository = Repository & SealedUpstream

/** A destination that a connection links to a repository. */
export interface RepositoryConnection {
  id: string
  /** Of the connection. */
  name: string
  destinationName: string
  status: 'active' | 'inactive'
}

type NewRepository = Pick<Repository, 'repoId' | 'name' | 'signatureVerification' | 'signedParameterOrder' | 'acceptsMcreate'> & {
  upstream: UpstreamInput | null
}

export interface RepositoryChange {
  name?: string | undefined
  status?: RepositoryStatus | undefined
  signatureVerification?: boolean | undefined
  signedParameterOrder?: SignedParameterOrder | undefined
  acceptsMcreate?: boolean | undefined
  upstream?: UpstreamInput | null | undefined
}

/** Returns true if a change makes the verification of signatures weaker. The management API demands a key of level `admin` for it. */
export const weakensSignatures = (
  current: Pick<RepositoryChange, 'signatureVerification' | 'signedParameterOrder' | 'acceptsMcreate'>,
  change: RepositoryChange,
): boolean =>
  (current.signatureVerification === true && change.signatureVerification === false) ||
  (current.signedParameterOrder === 'fixed' && change.signedParameterOrder === 'any') ||
  (current.acceptsMcreate === false && change.acceptsMcreate === true)

const columns = [
  'id',
  'repo_id as repoId',
  'name',
  'status',
  'signature_verification as signatureVerification',
  'signed_parameter_order as signedParameterOrder',
  'accepts_mcreate as acceptsMcreate',
  'upstream',
  'upstream_secrets_sealed as upstreamSecretsSealed',
  'created_at as createdAt',
  'updated_at as updatedAt',
]

// The ids of requests are in the order of their arrival.
const lastRequestColumn = `
  (
    select request_at
    from captured_requests
    where captured_requests.workspace_id = repositories.workspace_id
      and captured_requests.repo_id = repositories.repo_id
    order by captured_requests.id desc
    limit 1
  ) as "lastRequestAt"
`

const columnNames = {
  name: 'name',
  status: 'status',
  signatureVerification: 'signature_verification',
  signedParameterOrder: 'signed_parameter_order',
  acceptsMcreate: 'accepts_mcreate',
} as const
const fields = Object.keys(columnNames) as (keyof typeof columnNames)[]

/** Returns the values that a change alters, by the names of the columns, which are also the names in the API. */
const differences = (current: Repository, change: RepositoryChange) => {
  const changed = fields.filter((field) => change[field] !== undefined && change[field] !== current[field])
  const valuesOf = (values: RepositoryChange) => Object.fromEntries(changed.map((field) => [columnNames[field], values[field]]))
  return { changed: changed.map((field) => columnNames[field]), before: valuesOf(current), after: valuesOf(change) }
}

type Row = Omit<SealedRepository, 'warnings' | 'upstream'> & { upstream: StoredUpstream | null; warningFacts: WarningFacts | null }

const repositoryOf = ({ warningFacts, upstream, ...row }: Row): SealedRepository => ({
  ...row,
  upstream: upstream && toCamelCase(upstreamFields, upstream),
  warnings: repositoryWarnings(warningFacts),
})

const noUpstream: SealedUpstream = { upstream: null, upstreamSecretsSealed: null }

const upstreamColumns = ({ upstream, upstreamSecretsSealed }: SealedUpstream) => ({
  upstream: upstream && JSON.stringify(storedUpstream(upstream)),
  upstream_secrets_sealed: upstreamSecretsSealed,
})

/** Returns the values that a change of the upstream alters, like `differences`. A secret has no value. */
const upstreamDifferences = (
  keyRing: KeyRing,
  { workspaceId, id }: { workspaceId: string; id: string },
  current: SealedUpstream,
  sealed: SealedUpstream,
) => {
  const [before, after] = [storedUpstream(current.upstream), storedUpstream(sealed.upstream)]
  const isChanged = !isDeepStrictEqual(before, after)
  const [opened, next] = [current, sealed].map((each) => openUpstreamSecrets(keyRing, workspaceId, { ...each, id }))
  const secrets = (['private_key', 'proxy_url'] as const).filter((name) => opened![name] !== next![name])
  return {
    changed: [...(isChanged ? ['upstream'] : []), ...secrets.map((name) => `upstream.${name}`)],
    before: isChanged ? { upstream: before } : {},
    after: isChanged ? { upstream: after } : {},
  }
}

export const createRepositories = (db: Database) => {
  const counted = () => [
    ...columns,
    // At most sixteen rows per repository, found by their primary key.
    db.raw('(select coalesce(sum(documents), 0)::bigint from repository_counts where repository_id = repositories.id) as "documentCount"'),
    db.raw('(select count(*) from certificates where repository_id = repositories.id and is_active) as "activeCertificates"'),
    db.raw(lastRequestColumn),
    db.raw(warningFactsColumn),
  ]
  const select = async (executor: Database | Transaction, workspaceId: string, id: string): Promise<SealedRepository> => {
    const row = await executor('repositories')
      .select(counted())
      .where({ workspace_id: workspaceId, id })
      .whereNull('deleted_at')
      .first<Row | undefined>()
    if (!row) throw notFound()
    return repositoryOf(row)
  }
  /** @throws `AppError` 404 */
  const find = (workspaceId: string, id: string): Promise<SealedRepository> => select(db, workspaceId, id)
  /** Locks a repository and reads it. @throws `AppError` 404 */
  const lock = async (trx: Transaction, workspaceId: string, id: string): Promise<SealedRepository> => {
    await trx('repositories').select('id').where({ workspace_id: workspaceId, id }).forNoKeyUpdate()
    return select(trx, workspaceId, id)
  }

  return {
    find,

    /** Lists repositories in order of creation. */
    list: async (
      workspaceId: string,
      { status, ...page }: PageRequest & { status?: RepositoryStatus | undefined },
    ): Promise<Page<SealedRepository>> => {
      const query = db('repositories').where({ workspace_id: workspaceId }).whereNull('deleted_at').orderBy('id')
      if (status) query.where({ status })
      const { items, total } = await pageOf<Row>(query, counted(), page)
      return { items: items.map(repositoryOf), total }
    },

    /** Finds a repository by its name in the source system. */
    findByRepoId: async (workspaceId: string, repoId: string): Promise<Repository | undefined> => {
      const row = await db('repositories')
        .select(counted())
        .where({ workspace_id: workspaceId, repo_id: repoId })
        .whereNull('deleted_at')
        .first<Row | undefined>()
      return row && repositoryOf(row)
    },

    listConnections: async (id: string): Promise<RepositoryConnection[]> => {
      const { rows } = await db.raw<{ rows: RepositoryConnection[] }>(
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
      { repoId, name, signatureVerification, signedParameterOrder, acceptsMcreate, upstream }: NewRepository,
      actor: AuditActor,
      { keyRing, outbound }: UpstreamDeps,
    ): Promise<Repository> => {
      const id = newId()
      await requireUsableProxy({ outbound }, upstream)
      const sealed = sealUpstream(keyRing, { workspaceId, repositoryId: id }, noUpstream, upstream)
      try {
        return await db.transaction(async (trx) => {
          const settings = {
            name,
            signature_verification: signatureVerification,
            signed_parameter_order: signedParameterOrder,
            accepts_mcreate: acceptsMcreate,
          }
          await trx('repositories').insert({ id, workspace_id: workspaceId, repo_id: repoId, ...settings, ...upstreamColumns(sealed) })
          await record(trx, {
            workspaceId,
            event: 'repository.created',
            subjectId: id,
            description: `Repository ${repoId} was created.`,
            metadata: { repo_id: repoId, ...settings, ...(upstream && { upstream: storedUpstream(sealed.upstream) }) },
            actor,
          })
          return select(trx, workspaceId, id)
        })
      } catch (thrown) {
        if (!isDuplicate(thrown, 'repositories_by_repo_id')) throw thrown
        throw new AppError('conflict', `This workspace already has a repository with repo_id ${repoId}.`)
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
        const current = await lock(trx, workspaceId, id)
        check?.(current)
        const others = differences(current, change)
        const sealed = upstream === undefined ? current : sealUpstream(keyRing, { workspaceId, repositoryId: id }, current, upstream)
        const ofUpstream = upstreamDifferences(keyRing, { workspaceId, id }, current, sealed)
        const changed = [...others.changed, ...ofUpstream.changed]
        if (changed.length === 0) return current
        await trx('repositories')
          .where({ id })
          .update({ ...others.after, ...upstreamColumns(sealed), updated_at: trx.fn.now() })
        await record(trx, {
          workspaceId,
          event: 'repository.updated',
          subjectId: id,
          description: `Repository ${current.repoId} was changed: ${changed.join(', ')}.`,
          metadata: {
            repo_id: current.repoId,
            before: { ...others.before, ...ofUpstream.before },
            after: { ...others.after, ...ofUpstream.after },
          },
          actor,
        })
        return select(trx, workspaceId, id)
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
          metadata: { repo_id: deleted.repoId, name: deleted.name, ...removalMetadata(removal) },
          actor,
        })
        await deleteCertificatesOf(trx, workspaceId, id, actor)
        const messages = await deleteConnections(trx, { id: workspaceId, name: workspace }, removal.connections, actor, limit)
        await unlinkConnections(trx, workspaceId, 'repository', id, removal.unlinkedConnections, actor)
        await trx('connection_repositories').where({ repository_id: id }).delete()
        await trx('enrichment_repositories').where({ repository_id: id }).delete()
        await trx('repositories')
          .where({ id })
          .update({ ...upstreamColumns(noUpstream), deleted_at: trx.fn.now(), updated_at: trx.fn.now() })
        return { ...removal, messages }
      }),
  }
}

export type Repositories = ReturnType<typeof createRepositories>
