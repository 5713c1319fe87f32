import { newId } from '../ids.ts'
import type { AuditActor } from './audit.ts'
import { removeCertificatesOf } from './certificates.ts'
import { isDuplicate, type Database, type Transaction } from './database.ts'
import { pageOf, type Page, type PageRequest } from './page.ts'
import { lockWiring } from './workspaces.ts'

export type RepositoryStatus = 'active' | 'inactive'

export interface Repository {
  id: string
  repoId: string
  name: string
  status: RepositoryStatus
  signatureVerification: boolean
  documentCount: number
  createdAt: Date
  updatedAt: Date
}

/** One destination that one connection links to a repository. */
export interface RepositoryConnection {
  id: string
  destinationName: string
  status: 'active' | 'inactive'
}

export interface RepositoryChange {
  name?: string | undefined
  status?: RepositoryStatus | undefined
  signatureVerification?: boolean | undefined
}

const columns = [
  'id',
  'repo_id as repoId',
  'name',
  'status',
  'signature_verification as signatureVerification',
  'created_at as createdAt',
  'updated_at as updatedAt',
]

export const createRepositories = (db: Database | Transaction) => {
  const counted = () => [
    ...columns,
    // sixteen rows at most for each repository, found by their primary key
    db.raw('(select coalesce(sum(documents), 0)::bigint from repository_counts where repository_id = repositories.id) as "documentCount"'),
  ]
  const find = (workspaceId: string, id: string): Promise<Repository | undefined> =>
    db('repositories').select(counted()).where({ workspace_id: workspaceId, id }).whereNull('deleted_at').first()

  return {
    find,

    /** In order of creation. */
    list: (
      workspaceId: string,
      { status, ...page }: PageRequest & { status?: RepositoryStatus | undefined },
    ): Promise<Page<Repository>> => {
      const query = db('repositories').where({ workspace_id: workspaceId }).whereNull('deleted_at').orderBy('id')
      if (status) query.where({ status })
      return pageOf(query, counted(), page)
    },

    listConnections: async (id: string): Promise<RepositoryConnection[]> => {
      const { rows } = await db.raw<{ rows: RepositoryConnection[] }>(
        `
        select
          connections.id, destinations.name as "destinationName",
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

    /** Undefined where the workspace has a repository of that `repoId`. */
    insert: async (
      workspaceId: string,
      { repoId, name, signatureVerification }: Pick<Repository, 'repoId' | 'name' | 'signatureVerification'>,
    ): Promise<Repository | undefined> => {
      try {
        const [row] = await db('repositories')
          .insert({ id: newId(), workspace_id: workspaceId, repo_id: repoId, name, signature_verification: signatureVerification })
          .returning(columns)
        return { ...row, documentCount: 0 }
      } catch (thrown) {
        if (isDuplicate(thrown, 'repositories_by_repo_id')) return undefined
        throw thrown
      }
    },

    update: async (
      workspaceId: string,
      id: string,
      { name, status, signatureVerification }: RepositoryChange,
    ): Promise<Repository | undefined> => {
      const change = {
        ...(name !== undefined && { name }),
        ...(status && { status }),
        ...(signatureVerification !== undefined && { signature_verification: signatureVerification }),
      }
      if (Object.keys(change).length > 0) {
        await db('repositories')
          .where({ workspace_id: workspaceId, id })
          .whereNull('deleted_at')
          .update({ ...change, updated_at: db.fn.now() })
      }
      return find(workspaceId, id)
    },

    /**
     * Stops receipts: the links and certificates go, and the active connections that have no other repository with them. One that is
     * inactive or still holds something stays: what was received before is for its activation to release, or its own deletion to
     * cancel. The row stays, for the documents that name it.
     * @returns false where there is none
     */
    remove: (workspaceId: string, id: string, actor: AuditActor): Promise<boolean> =>
      db.transaction(async (trx) => {
        await lockWiring(trx, workspaceId)
        const deleted = await trx('repositories')
          .where({ workspace_id: workspaceId, id })
          .whereNull('deleted_at')
          .update({ deleted_at: trx.fn.now(), updated_at: trx.fn.now() })
        if (deleted === 0) return false
        await removeCertificatesOf(trx, workspaceId, id, actor)
        await trx.raw(
          `
          with unlinked as (
            delete from connection_repositories
            where repository_id = :id
            returning connection_id
          )
          delete from connections
          using unlinked
          where connections.id = unlinked.connection_id
            and is_active
            and not exists (
              select 1
              from connection_repositories as others
              where others.connection_id = connections.id
                and others.repository_id <> :id
            )
            and not exists (
              select 1
              from deliveries
              where deliveries.connection_id = connections.id
                and status = 'held'
            )
          `,
          { id },
        )
        return true
      }),
  }
}
