import { isDeepStrictEqual } from 'node:util'
import type { ConnectorType } from '../domain/connector-type.ts'
import { record, type AuditActor } from './audit.ts'
import { beginCancelling } from './cancellations.ts'
import { recordDeletedConnections } from './connections.ts'
import type { Database, Transaction } from './database.ts'
import type { OutboxMessage } from './outbox.ts'
import { pageOf, type Page, type PageRequest } from './page.ts'
import { lockWiring } from './workspaces.ts'

export interface Destination {
  id: string
  name: string
  connectorType: ConnectorType
  status: 'connected' | 'failing'
  config: Record<string, unknown>
  lastError: string | null
  lastDeliveredAt: Date | null
  createdAt: Date
  updatedAt: Date
}

export interface SealedDestination extends Destination {
  credentialsSealed: Buffer
}

/** One repository that one connection links to a destination. */
export interface DestinationConnection {
  id: string
  sourceRepoId: string
  sourceName: string
  status: 'active' | 'inactive'
}

export interface DestinationChange {
  name?: string | undefined
  config?: Record<string, unknown> | undefined
  credentialsSealed?: Buffer | undefined
}

const columns = [
  'id',
  'name',
  'connector_type as connectorType',
  'status',
  'config',
  'last_error as lastError',
  'last_delivered_at as lastDeliveredAt',
  'created_at as createdAt',
  'updated_at as updatedAt',
]

/** The names of what a change makes different. Values do not go into the audit log: a target's headers, say, may hold a secret. */
const namesOfChanged = (current: Destination, { name, config, credentialsSealed }: DestinationChange): string[] => {
  const keys = config ? Object.keys({ ...current.config, ...config }) : []
  return [
    ...(name !== undefined && name !== current.name ? ['name'] : []),
    ...keys.filter((key) => !isDeepStrictEqual(current.config[key], config?.[key])).map((key) => `config.${key}`),
    // sealed anew, they cannot be compared
    ...(credentialsSealed ? ['credentials'] : []),
  ]
}

export const createDestinations = (db: Database | Transaction) => ({
  /** In order of creation. */
  list: (workspaceId: string, { type, ...page }: PageRequest & { type?: ConnectorType | undefined }): Promise<Page<Destination>> => {
    const query = db('destinations').where({ workspace_id: workspaceId }).whereNull('deleted_at').orderBy('id')
    if (type) query.where({ connector_type: type })
    return pageOf(query, columns, page)
  },

  find: (workspaceId: string, id: string): Promise<SealedDestination | undefined> =>
    db('destinations')
      .select([...columns, 'credentials_sealed as credentialsSealed'])
      .where({ workspace_id: workspaceId, id })
      .whereNull('deleted_at')
      .first(),

  listConnections: async (id: string): Promise<DestinationConnection[]> => {
    const { rows } = await db.raw<{ rows: DestinationConnection[] }>(
      `
      select
        connections.id, repo_id as "sourceRepoId", repositories.name as "sourceName",
        case when is_active then 'active' else 'inactive' end as status
      from connection_destinations
      join connections on connections.id = connection_destinations.connection_id
      join connection_repositories on connection_repositories.connection_id = connections.id
      join repositories on repositories.id = connection_repositories.repository_id
      where destination_id = ?
      order by connections.id, connection_repositories.position
      `,
      [id],
    )
    return rows
  },

  insert: (
    workspaceId: string,
    {
      id,
      name,
      connectorType,
      config,
      credentialsSealed,
    }: Pick<SealedDestination, 'id' | 'name' | 'connectorType' | 'config' | 'credentialsSealed'>,
    actor: AuditActor,
  ): Promise<Destination> =>
    db.transaction(async (trx) => {
      const [row] = await trx('destinations')
        .insert({
          id,
          workspace_id: workspaceId,
          name,
          connector_type: connectorType,
          config: JSON.stringify(config),
          credentials_sealed: credentialsSealed,
        })
        .returning(columns)
      await record(trx, {
        workspaceId,
        event: 'destination.created',
        subjectId: id,
        description: `The destination ${name} (${connectorType}) was created.`,
        metadata: { name, connector_type: connectorType },
        actor,
      })
      return row
    }),

  /** Reads, asks `change` what is to be written, and writes it, with the row locked in between: two merges cannot lose each other's keys. */
  update: (
    workspaceId: string,
    id: string,
    change: (current: Destination) => DestinationChange,
    actor: AuditActor,
  ): Promise<Destination | undefined> =>
    db.transaction(async (trx) => {
      const current: Destination | undefined = await trx('destinations')
        .select(columns)
        .where({ workspace_id: workspaceId, id })
        .whereNull('deleted_at')
        .forNoKeyUpdate()
        .first()
      if (!current) return undefined
      const wanted = change(current)
      const changed = namesOfChanged(current, wanted)
      if (changed.length === 0) return current
      const { name, config, credentialsSealed } = wanted
      const [row] = await trx('destinations')
        .where({ id })
        .update({
          ...(name !== undefined && { name }),
          ...(config && { config: JSON.stringify(config) }),
          ...(credentialsSealed && { credentials_sealed: credentialsSealed }),
          updated_at: trx.fn.now(),
        })
        .returning(columns)
      await record(trx, {
        workspaceId,
        event: 'destination.updated',
        subjectId: id,
        description: `Of the destination ${row.name} (${row.connectorType}) was changed: ${changed.join(', ')}.`,
        metadata: { name: row.name, connector_type: row.connectorType, changed },
        actor,
      })
      return row
    }),

  /** A test has reached it and could write there. */
  markConnected: async (workspaceId: string, id: string): Promise<void> => {
    await db('destinations').where({ workspace_id: workspaceId, id, status: 'failing' }).update({ status: 'connected', last_error: null })
  },

  /**
   * Takes a destination out of use, and the connections that lead there with it. What was not delivered there yet is cancelled, and
   * what those connections held: up to `limit` deliveries each now, the rest by a workflow. The row stays, for the documents that name
   * it. It is written last: who records an attempt locks its document before it writes to the destination, and would be waited for in turn.
   * @returns the messages, committed; undefined where there is none
   */
  remove: (workspaceId: string, id: string, actor: AuditActor, limit: number): Promise<OutboxMessage[] | undefined> =>
    db.transaction(async (trx) => {
      await lockWiring(trx, workspaceId)
      const deleted = await createDestinations(trx).find(workspaceId, id)
      if (!deleted) return undefined
      await record(trx, {
        workspaceId,
        event: 'destination.deleted',
        subjectId: id,
        description: `The destination ${deleted.name} (${deleted.connectorType}) was deleted.`,
        metadata: { name: deleted.name, connector_type: deleted.connectorType },
        actor,
      })
      const { rows } = await trx.raw<{ rows: { id: string; name: string }[] }>(
        `
        delete from connections
        using connection_destinations
        where connections.id = connection_id
          and destination_id = :id
        returning connections.id, connections.name
        `,
        { id },
      )
      const messages = await beginCancelling(trx, { by: 'destination', id, name: deleted.name }, limit)
      for (const connection of rows) messages.push(...(await beginCancelling(trx, { by: 'connection', ...connection }, limit)))
      await recordDeletedConnections(trx, workspaceId, rows, actor)
      await trx('destinations').where({ id }).update({ deleted_at: trx.fn.now(), updated_at: trx.fn.now() })
      return messages
    }),
})
