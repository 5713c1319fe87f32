import { newId } from '../ids.ts'
import { record, type AuditActor } from './audit.ts'
import { removeCertificatesOf } from './certificates.ts'
import { recordDeletedConnections } from './connections.ts'
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

const fields = ['name', 'status', 'signatureVerification'] as const
const wireNames = { name: 'name', status: 'status', signatureVerification: 'signature_verification' } as const

/** What a change makes different, by the names of the columns and of the wire. */
const differences = (current: Repository, change: RepositoryChange) => {
  const changed = fields.filter((field) => change[field] !== undefined && change[field] !== current[field])
  const valuesOf = (values: RepositoryChange) => Object.fromEntries(changed.map((field) => [wireNames[field], values[field]]))
  return { changed: changed.map((field) => wireNames[field]), before: valuesOf(current), after: valuesOf(change) }
}

export const createRepositories = (db: Database | Transaction) => {
  const counted = () => [
    ...columns,
    // sixteen rows at most for each repository, found by their primary key
    db.raw('(select coalesce(sum(documents), 0)::bigint from repository_counts where repository_id = repositories.id) as "documentCount"'),
  ]
  const select = (executor: Database | Transaction, workspaceId: string, id: string) =>
    executor('repositories').select(counted()).where({ workspace_id: workspaceId, id }).whereNull('deleted_at').first<Repository>()
  const find = async (workspaceId: string, id: string): Promise<Repository | undefined> => select(db, workspaceId, id)

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
      actor: AuditActor,
    ): Promise<Repository | undefined> => {
      const id = newId()
      try {
        return await db.transaction(async (trx) => {
          const [row] = await trx('repositories')
            .insert({ id, workspace_id: workspaceId, repo_id: repoId, name, signature_verification: signatureVerification })
            .returning(columns)
          await record(trx, {
            workspaceId,
            event: 'repository.created',
            subjectId: id,
            description: `The repository ${repoId} was created.`,
            metadata: { repo_id: repoId, name, signature_verification: signatureVerification },
            actor,
          })
          return { ...row, documentCount: 0 }
        })
      } catch (thrown) {
        if (isDuplicate(thrown, 'repositories_by_repo_id')) return undefined
        throw thrown
      }
    },

    /** Writes and records what is different from before, if anything is. Undefined where there is no such repository. */
    update: (workspaceId: string, id: string, change: RepositoryChange, actor: AuditActor): Promise<Repository | undefined> =>
      db.transaction(async (trx) => {
        const current = await select(trx, workspaceId, id).forNoKeyUpdate()
        if (!current) return undefined
        const { changed, before, after } = differences(current, change)
        if (changed.length === 0) return current
        await trx('repositories')
          .where({ id })
          .update({ ...after, updated_at: trx.fn.now() })
        await record(trx, {
          workspaceId,
          event: 'repository.updated',
          subjectId: id,
          description: `Of the repository ${current.repoId} was changed: ${changed.join(', ')}.`,
          metadata: { repo_id: current.repoId, before, after },
          actor,
        })
        return select(trx, workspaceId, id)
      }),

    /**
     * Stops receipts: the links and certificates go, and the active connections that begin here with them. One that is inactive
     * or still holds something stays: what was received before is for its activation to release, or its own deletion to
     * cancel. The row stays, for the documents that name it.
     * @returns false where there is none
     */
    remove: (workspaceId: string, id: string, actor: AuditActor): Promise<boolean> =>
      db.transaction(async (trx) => {
        await lockWiring(trx, workspaceId)
        const [deleted] = await trx('repositories')
          .where({ workspace_id: workspaceId, id })
          .whereNull('deleted_at')
          .update({ deleted_at: trx.fn.now(), updated_at: trx.fn.now() })
          .returning(columns)
        if (!deleted) return false
        await record(trx, {
          workspaceId,
          event: 'repository.deleted',
          subjectId: id,
          description: `The repository ${deleted.repoId} was deleted.`,
          metadata: { repo_id: deleted.repoId, name: deleted.name },
          actor,
        })
        await removeCertificatesOf(trx, workspaceId, id, actor)
        const { rows } = await trx.raw<{ rows: { id: string; name: string }[] }>(
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
              from deliveries
              where deliveries.connection_id = connections.id
                and status = 'held'
            )
          returning connections.id, connections.name
          `,
          { id },
        )
        await recordDeletedConnections(trx, workspaceId, rows, actor)
        return true
      }),
  }
}
