import type { ConnectorType } from '../domain/connector-type.ts'
import { newId } from '../ids.ts'
import { record, type AuditActor } from './audit.ts'
import { beginCancelling } from './cancellations.ts'
import type { Database, Transaction } from './database.ts'
import { forwards, releaseOf } from './held.ts'
import { addMessages, type OutboxMessage } from './outbox.ts'
import { lockWiring } from './workspaces.ts'

export interface Connection {
  id: string
  name: string
  isActive: boolean
  repositories: { id: string; repoId: string; description: string }[]
  destinations: { id: string; type: ConnectorType; name: string }[]
  settings: Record<string, unknown>
  createdAt: Date
  updatedAt: Date
}

/** What a connection is made of; a set of ids stands for the whole set. */
export interface ConnectionChange {
  name?: string | undefined
  isActive?: boolean | undefined
  settings?: Record<string, unknown> | undefined
  repositoryIds?: string[] | undefined
  destinationIds?: string[] | undefined
}

/** The ids that name nothing in the workspace. */
export interface UnknownIds {
  unknownRepositoryIds: string[]
  unknownDestinationIds: string[]
}

type Filter = { id: string } | { isActive: boolean | null }

const select = async (db: Database | Transaction, workspaceId: string, filter: Filter): Promise<Connection[]> => {
  const byId = 'id' in filter
  const { rows } = await db.raw<{ rows: Connection[] }>(
    `
    select
      connections.id, connections.name, is_active as "isActive", connections.settings,
      array(
        select jsonb_build_object('id', repositories.id, 'repoId', repo_id, 'description', repositories.name)
        from connection_repositories
        join repositories on repositories.id = connection_repositories.repository_id
        where connection_id = connections.id
        order by position
      ) as repositories,
      array(
        select jsonb_build_object('id', destinations.id, 'type', connector_type, 'name', destinations.name)
        from connection_destinations
        join destinations on destinations.id = connection_destinations.destination_id
        where connection_id = connections.id
        order by position
      ) as destinations,
      connections.created_at as "createdAt", connections.updated_at as "updatedAt"
    from connections
    where workspace_id = :workspaceId
      and ${byId ? 'connections.id = :id' : '(:isActive::boolean is null or is_active = :isActive::boolean)'}
    order by connections.id
    `,
    { workspaceId, ...filter },
  )
  return rows
}

const unknownOf = async (
  trx: Transaction,
  table: 'repositories' | 'destinations',
  workspaceId: string,
  ids: string[],
): Promise<string[]> => {
  const known = await trx(table)
    .select<{ id: string }[]>('id')
    .where({ workspace_id: workspaceId })
    .whereIn('id', ids)
    .whereNull('deleted_at')
  const found = new Set(known.map(({ id }) => id))
  return ids.filter((id) => !found.has(id))
}

const link = async (trx: Transaction, noun: 'repository' | 'destination', connectionId: string, ids: string[]): Promise<void> => {
  const table = noun === 'repository' ? 'connection_repositories' : 'connection_destinations'
  await trx(table).where({ connection_id: connectionId }).delete()
  await trx(table).insert([...new Set(ids)].map((id, position) => ({ connection_id: connectionId, [`${noun}_id`]: id, position })))
}

/** Checks the ids and links them. @returns what is unknown; nothing is linked then */
const relink = async (
  trx: Transaction,
  workspaceId: string,
  connectionId: string,
  { repositoryIds, destinationIds }: ConnectionChange,
): Promise<UnknownIds | undefined> => {
  const unknown = {
    unknownRepositoryIds: await unknownOf(trx, 'repositories', workspaceId, repositoryIds ?? []),
    unknownDestinationIds: await unknownOf(trx, 'destinations', workspaceId, destinationIds ?? []),
  }
  if (unknown.unknownRepositoryIds.length > 0 || unknown.unknownDestinationIds.length > 0) return unknown
  if (repositoryIds) await link(trx, 'repository', connectionId, repositoryIds)
  if (destinationIds) await link(trx, 'destination', connectionId, destinationIds)
  return undefined
}

/** Connections that went, by themselves or with what they linked. */
export const recordDeletedConnections = async (
  trx: Transaction,
  workspaceId: string,
  deleted: { id: string; name: string }[],
  actor: AuditActor,
): Promise<void> => {
  for (const { id, name } of deleted) {
    const description = `The connection ${name} was deleted.`
    await record(trx, { workspaceId, event: 'connection.deleted', subjectId: id, description, metadata: { name }, actor })
  }
}

// ends a transaction whose work must not stay, with an answer that is no error
class Refused extends Error {
  readonly unknown: UnknownIds

  constructor(unknown: UnknownIds) {
    super('unknown ids')
    this.unknown = unknown
  }
}

const orRefusal = async <Result>(work: Promise<Result>): Promise<Result | UnknownIds> => {
  try {
    return await work
  } catch (thrown) {
    if (thrown instanceof Refused) return thrown.unknown
    throw thrown
  }
}

export const createConnections = (db: Database | Transaction) => ({
  /** In order of creation; null asks for active and inactive ones. */
  list: (workspaceId: string, isActive: boolean | null): Promise<Connection[]> => select(db, workspaceId, { isActive }),

  find: async (workspaceId: string, id: string): Promise<Connection | undefined> => (await select(db, workspaceId, { id }))[0],

  insert: (
    workspaceId: string,
    connection: { name: string; isActive: boolean; settings: object; repositoryIds: string[]; destinationIds: string[] },
    actor: AuditActor,
  ): Promise<Connection | UnknownIds> =>
    orRefusal(
      db.transaction(async (trx) => {
        await lockWiring(trx, workspaceId)
        const id = newId()
        const { name, isActive, settings, ...links } = connection
        await trx('connections').insert({ id, workspace_id: workspaceId, name, is_active: isActive, settings: JSON.stringify(settings) })
        const unknown = await relink(trx, workspaceId, id, links)
        if (unknown) throw new Refused(unknown)
        await record(trx, {
          workspaceId,
          event: 'connection.created',
          subjectId: id,
          description: `The connection ${name} was created${isActive ? '' : ', inactive'}.`,
          metadata: { name, is_active: isActive, repository_ids: links.repositoryIds, destination_ids: links.destinationIds },
          actor,
        })
        const [inserted] = await select(trx, workspaceId, { id })
        return inserted!
      }),
    ),

  /** Undefined where there is no such connection. The messages, committed, release what it held and is not to hold any more. Of what changes, only a switch on or off is an event. */
  update: (
    workspaceId: string,
    id: string,
    change: ConnectionChange,
    actor: AuditActor,
  ): Promise<{ connection: Connection; messages: OutboxMessage[] } | UnknownIds | undefined> =>
    orRefusal(
      db.transaction(async (trx) => {
        await lockWiring(trx, workspaceId)
        const [before] = await select(trx, workspaceId, { id })
        if (!before) return undefined
        const { name, isActive, settings } = change
        const columns = {
          ...(name !== undefined && { name }),
          ...(isActive !== undefined && { is_active: isActive }),
          ...(settings && { settings: JSON.stringify(settings) }),
        }
        if (Object.values(change).some((value) => value !== undefined)) {
          await trx('connections')
            .where({ workspace_id: workspaceId, id })
            .update({ ...columns, updated_at: trx.fn.now() })
        }
        const unknown = await relink(trx, workspaceId, id, change)
        if (unknown) throw new Refused(unknown)
        const [after] = await select(trx, workspaceId, { id })
        if (after!.isActive !== before.isActive) {
          await record(trx, {
            workspaceId,
            event: 'connection.toggled',
            subjectId: id,
            description: `The connection ${after!.name} was ${after!.isActive ? 'activated' : 'deactivated'}.`,
            metadata: { name: after!.name, is_active: after!.isActive },
            actor,
          })
        }
        const messages = forwards(after!) && !forwards(before) ? [releaseOf(after!)] : []
        await addMessages(trx, messages)
        return { connection: after!, messages }
      }),
    ),

  /**
   * Deletes it and cancels what it held, up to `limit` deliveries now and the rest by a workflow. What it has forwarded already goes on.
   * @returns the messages, committed; undefined where there is none
   */
  remove: (workspaceId: string, id: string, actor: AuditActor, limit: number): Promise<OutboxMessage[] | undefined> =>
    db.transaction(async (trx) => {
      await lockWiring(trx, workspaceId)
      const deleted = await trx('connections').where({ workspace_id: workspaceId, id }).delete().returning(['id', 'name'])
      if (deleted.length === 0) return undefined
      await recordDeletedConnections(trx, workspaceId, deleted, actor)
      return beginCancelling(trx, { by: 'connection', id, name: deleted[0].name }, limit)
    }),
})
