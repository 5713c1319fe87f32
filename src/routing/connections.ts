import { plainMessages } from '../base/issue-messages.ts'
import { detailsOf, validationFailed } from '../base/refusals.ts'
import { propertyRulesOf } from '../connectors/index.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, type OutboxMessage } from '../db/outbox.ts'
import type { PageRequest } from '../db/page.ts'
import { cancelUndecided, countUnlinked, startCancelling } from '../delivery/cancel.ts'
import { releaseMessage, shouldRelease } from '../delivery/release.ts'
import { connectionSettings, connectionSettingsFields } from '../domain/connection-settings.ts'
import { configuredKind, type ChangeOf, type Configured } from '../workspace/configured-kind.ts'
import { createConfigured } from '../workspace/configured.ts'
import { newConnection } from '../workspace/inputs.ts'
import { lockRouting } from '../workspace/workspaces.ts'
import { previewDocuments } from './preview.ts'

type Executor = Database | Transaction
type Values = typeof newConnection

export interface Connection extends Configured<Values> {
  repositories: { id: string; repoId: string; description: string }[]
  destinations: { id: string; type: string; name: string }[]
  /** Counted up to `heldMaxCount`. */
  heldDeliveries: number
}

/** Changes of a connection. A set of ids replaces the whole set. */
export type ConnectionChange = ChangeOf<Values>

interface Updated {
  connection: Connection
  cancelledDeliveries: number
  messages: OutboxMessage[]
}

/** A larger number of held deliveries is not counted: this number stands for it. */
export const heldMaxCount = 1_000

export const connectionKind = configuredKind<Values, Connection>({
  table: 'connections',
  event: 'connection',
  noun: 'Connection',
  schema: newConnection,
  linked: ['repository_ids', 'destination_ids'],
  // A change of the name alone is no audit event, and one of the status is another one (contract, section 6).
  unrecorded: ['name', 'is_active'],
  expressions: [
    `
      array(
        select jsonb_build_object('id', repositories.id, 'repoId', repo_id, 'description', repositories.name)
        from connection_repositories
        join repositories on repositories.id = connection_repositories.repository_id
        where connection_id = connections.id
        order by position
      ) as repositories
    `,
    `
      array(
        select jsonb_build_object('id', destinations.id, 'type', connector_type, 'name', destinations.name)
        from connection_destinations
        join destinations on destinations.id = connection_destinations.destination_id
        where connection_id = connections.id
        order by position
      ) as destinations
    `,
    `
      (
        select count(*)
        from (select from deliveries where connection_id = connections.id and status = 'held' limit ${heldMaxCount}) as held
      ) as "heldDeliveries"
    `,
  ],
  rowOf: (row: Connection) => ({
    ...row,
    repositoryIds: row.repositories.map(({ id }) => id),
    destinationIds: row.destinations.map(({ id }) => id),
  }),
})

/** Returns a detail for each id that does not exist in the workspace. */
const findUnknown = async (executor: Executor, noun: 'repository' | 'destination', workspaceId: string, ids: readonly string[] = []) => {
  const known = await executor(noun === 'repository' ? 'repositories' : 'destinations')
    .select<{ id: string }[]>('id')
    .where({ workspace_id: workspaceId })
    .whereIn('id', ids)
    .whereNull('deleted_at')
  const found = new Set(known.map(({ id }) => id))
  return ids
    .filter((id) => !found.has(id))
    .map((id) => ({ path: `${noun}_ids.${ids.indexOf(id)}`, message: `there is no such ${noun} in this workspace` }))
}

const tableOfLinks = { repository: 'connection_repositories', destination: 'connection_destinations' }

const link = async (trx: Transaction, noun: 'repository' | 'destination', connectionId: string, ids: string[]): Promise<void> => {
  await trx(tableOfLinks[noun]).where({ connection_id: connectionId }).delete()
  await trx(tableOfLinks[noun]).insert(
    [...new Set(ids)].map((id, position) => ({ connection_id: connectionId, [`${noun}_id`]: id, position })),
  )
}

/** @throws AppError 422 if settings are invalid */
const checkSettings = (settings: unknown): void => {
  const parsed = connectionSettingsFields.safeParse(settings, plainMessages)
  if (!parsed.success) throw validationFailed(detailsOf(parsed.error.issues, ['settings']))
}

/** Checks that every destination accepts the properties. @throws AppError 422 */
const checkProperties = async (trx: Transaction, settings: object, destinationIds: readonly string[]): Promise<void> => {
  const names = Object.keys(connectionSettings(settings).properties)
  if (names.length === 0) return
  const destinations = await trx('destinations')
    .select<{ name: string; type: string }[]>('name', 'connector_type as type')
    .whereIn('id', destinationIds)
    .orderBy('id')
  const details: { path: string; message: string }[] = []
  for (const { name: destination, type } of destinations) {
    const rules = propertyRulesOf(type)
    if (!rules) {
      const message = `${destination} (${type}) takes no properties, because its messages contain every field; use another connection for it`
      details.push({ path: 'settings.properties', message })
      continue
    }
    for (const name of names) {
      const issue = rules.nameIssue(name)
      if (issue) details.push({ path: `settings.properties.${name}`, message: `the name ${issue}, at ${destination} (${type})` })
    }
  }
  if (details.length > 0) throw validationFailed(details)
}

/**
 * Deletes connections, by themselves or together with a destination or repository, and cancels the deliveries that they held: up to
 * `limit` of each now, the rest by a workflow.
 * @returns the committed messages
 */
export const deleteConnections = async (
  trx: Transaction,
  workspace: { id: string; name: string },
  connections: { id: string; name: string }[],
  actor: AuditActor,
  limit: number,
): Promise<OutboxMessage[]> => {
  await cancelUndecided(
    trx,
    connections.map(({ id }) => id),
  )
  const messages: OutboxMessage[] = []
  for (const { id, name } of connections) {
    await connectionKind.remove(trx, workspace.id, { id, name }, actor)
    messages.push(...(await startCancelling(trx, { by: 'connection', workspace: workspace.name, id, name }, limit)))
  }
  return messages
}

/** Takes a destination or repository that is deleted out of connections that stay. What they held for a destination is not cancelled here. */
export const unlinkConnections = async (
  trx: Transaction,
  workspaceId: string,
  noun: 'repository' | 'destination',
  objectId: string,
  connections: { id: string }[],
  actor: AuditActor,
): Promise<void> => {
  for (const { id } of connections) {
    const current = await connectionKind.find(trx, workspaceId, id)
    await trx(tableOfLinks[noun])
      .where({ connection_id: id, [`${noun}_id`]: objectId })
      .delete()
    await trx('connections').where({ id }).update({ updated_at: trx.fn.now() })
    await connectionKind.recordChange(trx, workspaceId, { current, row: await connectionKind.find(trx, workspaceId, id) }, actor)
  }
}

export const createConnections = (db: Database | Transaction) => {
  const { changeIn, find, insert, versionOf } = createConfigured<Values, Connection>(db, connectionKind, {
    check: async (trx, { workspaceId, current, change }) => {
      const { settings, repositoryIds, destinationIds } = change
      if (settings) checkSettings(settings)
      const unknown = [
        ...(await findUnknown(trx, 'repository', workspaceId, repositoryIds)),
        ...(await findUnknown(trx, 'destination', workspaceId, destinationIds)),
      ]
      if (unknown.length > 0) throw validationFailed(unknown)
      if (settings || destinationIds) {
        await checkProperties(trx, settings ?? current?.settings ?? {}, destinationIds ?? current?.destinationIds ?? [])
      }
    },
    written: async (trx, { id, change, changed }) => {
      if (changed.includes('repository_ids')) await link(trx, 'repository', id, change.repositoryIds!)
      if (changed.includes('destination_ids')) await link(trx, 'destination', id, change.destinationIds!)
    },
  })
  return {
    find,
    insert,
    versionOf,

    /**
     * Lists connections in order of creation.
     * @param isActive null lists active and inactive ones
     * @param page undefined lists all, in which case they are not counted
     */
    list: async (
      workspaceId: string,
      isActive: boolean | null,
      page: PageRequest | undefined,
    ): Promise<{ items: Connection[]; total: number | undefined }> => {
      const filter = isActive === null ? {} : { is_active: isActive }
      if (page) return connectionKind.list(db, workspaceId, page, filter)
      return { items: await connectionKind.listAll(db, workspaceId, filter), total: undefined }
    },

    /**
     * Shows what a connection with these settings would do with the newest documents of repositories. Changes nothing.
     * @throws AppError 422
     */
    preview: async (workspaceId: string, repositoryIds: string[], settings: object) => {
      checkSettings(settings)
      const unknown = await findUnknown(db, 'repository', workspaceId, repositoryIds)
      if (unknown.length > 0) throw validationFailed(unknown)
      return previewDocuments(db, workspaceId, repositoryIds, connectionSettings(settings))
    },

    /**
     * Updates a connection. What it held for a destination that it no longer leads to is cancelled: up to `limit` deliveries now, the rest by
     * a workflow.
     * @param checkVersion throws if the connection must not be changed as it is
     * @returns the connection, the number of cancelled deliveries, and the committed messages that also release what it held, if it must hold
     *   nothing any more
     * @throws AppError 404 or 422
     */
    update: (
      workspaceId: string,
      id: string,
      change: ConnectionChange,
      actor: AuditActor,
      limit: number,
      checkVersion?: (current: Connection) => void,
    ): Promise<Updated> =>
      db.transaction(async (trx) => {
        const { workspace, current, row, changed } = await changeIn(trx, workspaceId, id, change, actor, checkVersion)
        const { name, isActive } = row
        if (changed.includes('is_active')) {
          await record(trx, {
            workspaceId,
            event: 'connection.toggled',
            subjectId: id,
            description: `Connection ${name} was ${isActive ? 'activated' : 'deactivated'}.`,
            metadata: { name, is_active: isActive },
            actor,
          })
        }
        const cancelledDeliveries = change.destinationIds ? await countUnlinked(trx, id) : 0
        const cancelled = cancelledDeliveries > 0 ? await startCancelling(trx, { by: 'connection', workspace, id, name }, limit) : []
        const released = shouldRelease(row) && !shouldRelease(current) ? [releaseMessage({ workspace, ...row })] : []
        await addMessages(trx, released)
        return { connection: row, cancelledDeliveries, messages: [...cancelled, ...released] }
      }),

    /**
     * Deletes a connection and cancels the deliveries that it held: up to `limit` now, the rest by a workflow. Deliveries that it has
     * started continue.
     * @param checkVersion throws if the connection must not be deleted as it is
     * @returns the committed messages
     * @throws AppError 404
     */
    delete: (
      workspaceId: string,
      id: string,
      actor: AuditActor,
      limit: number,
      checkVersion?: (current: Connection) => void,
    ): Promise<OutboxMessage[]> =>
      db.transaction(async (trx) => {
        const workspace = await lockRouting(trx, workspaceId)
        const current = await connectionKind.find(trx, workspaceId, id)
        checkVersion?.(current)
        return deleteConnections(trx, { id: workspaceId, name: workspace }, [current], actor, limit)
      }),
  }
}

export type Connections = ReturnType<typeof createConnections>
