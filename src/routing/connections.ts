import { isDeepStrictEqual } from 'node:util'
import { newId } from '../base/ids.ts'
import { plainMessages } from '../base/issue-messages.ts'
import { detailsOf, notFound, validationFailed } from '../base/refusals.ts'
import { propertyRulesOf } from '../connectors/index.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { addMessages, type OutboxMessage } from '../db/outbox.ts'
import type { PageRequest } from '../db/page.ts'
import { cancelUndecided, countUnlinked, startCancelling } from '../delivery/cancel.ts'
import { releaseMessage, shouldRelease } from '../delivery/release.ts'
import { connectionSettings, connectionSettingsFields } from '../domain/connection-settings.ts'
import { lockRouting } from '../workspace/workspaces.ts'
import { previewDocuments, type PreviewedDocument } from './preview.ts'

export interface Connection {
  id: string
  name: string
  isActive: boolean
  repositories: { id: string; repoId: string; description: string }[]
  destinations: { id: string; type: string; name: string }[]
  settings: Record<string, unknown>
  /** Counted up to `heldMaxCount`. */
  heldDeliveries: number
  createdAt: Date
  updatedAt: Date
}

/** Changes of a connection. A set of ids replaces the whole set. */
export interface ConnectionChange {
  name?: string | undefined
  isActive?: boolean | undefined
  settings?: Record<string, unknown> | undefined
  repositoryIds?: string[] | undefined
  destinationIds?: string[] | undefined
}

interface Updated {
  connection: Connection
  cancelledDeliveries: number
  messages: OutboxMessage[]
}

/** A larger number of held deliveries is not counted: this number stands for it. */
export const heldMaxCount = 10_000

type Filter = { id: string } | { isActive: boolean | null; page: PageRequest | undefined }

const select = async (db: Database | Transaction, workspaceId: string, filter: Filter): Promise<Connection[]> => {
  const byId = 'id' in filter
  const page = byId ? undefined : filter.page
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
      (
        select count(*)
        from (select from deliveries where connection_id = connections.id and status = 'held' limit ${heldMaxCount}) as held
      ) as "heldDeliveries",
      connections.created_at as "createdAt", connections.updated_at as "updatedAt"
    from connections
    where workspace_id = :workspaceId
      and ${byId ? 'connections.id = :id' : '(:isActive::boolean is null or is_active = :isActive::boolean)'}
    order by connections.id
    limit :limit
    offset :offset
    `,
    {
      workspaceId,
      ...(byId ? { id: filter.id } : { isActive: filter.isActive }),
      // Without a page, null returns all rows.
      limit: page?.perPage ?? null,
      offset: page ? (page.page - 1) * page.perPage : 0,
    },
  )
  return rows
}

const find = async (db: Database | Transaction, workspaceId: string, id: string): Promise<Connection> => {
  const [found] = await select(db, workspaceId, { id })
  if (!found) throw notFound()
  return found
}

/** Returns a detail for each id that does not exist in the workspace. */
const findUnknown = async (trx: Database | Transaction, noun: 'repository' | 'destination', workspaceId: string, ids: string[]) => {
  const known = await trx(noun === 'repository' ? 'repositories' : 'destinations')
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

/** Replaces the links. @throws AppError 422 with a detail for each unknown id */
const relink = async (
  trx: Transaction,
  workspaceId: string,
  connectionId: string,
  { repositoryIds, destinationIds }: { repositoryIds?: string[] | undefined; destinationIds?: string[] | undefined },
): Promise<void> => {
  const unknown = [
    ...(await findUnknown(trx, 'repository', workspaceId, repositoryIds ?? [])),
    ...(await findUnknown(trx, 'destination', workspaceId, destinationIds ?? [])),
  ]
  if (unknown.length > 0) throw validationFailed(unknown)
  if (repositoryIds) await link(trx, 'repository', connectionId, repositoryIds)
  if (destinationIds) await link(trx, 'destination', connectionId, destinationIds)
}

/** @throws AppError 422 if settings are invalid */
const checkSettings = (settings: unknown): void => {
  const parsed = connectionSettingsFields.safeParse(settings, plainMessages)
  if (!parsed.success) throw validationFailed(detailsOf(parsed.error.issues, ['settings']))
}

/** Checks that every destination accepts the properties. @throws AppError 422 */
const checkProperties = ({ settings, destinations }: Connection): void => {
  const { properties } = connectionSettings(settings)
  const names = Object.keys(properties)
  if (names.length === 0) return
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

/** Returns what decides which documents a connection forwards, and how. The order of the ids has no meaning. */
const wiringOf = ({ repositories, destinations, settings }: Connection): Record<string, unknown> => ({
  repository_ids: repositories.map(({ id }) => id).toSorted(),
  destination_ids: destinations.map(({ id }) => id).toSorted(),
  settings,
})

/** Records a change of the links or settings of a connection, if there is one. */
const recordRewiring = async (trx: Transaction, workspaceId: string, before: Connection, after: Connection, actor: AuditActor) => {
  const [old, current] = [wiringOf(before), wiringOf(after)]
  const changed = Object.keys(current).filter((name) => !isDeepStrictEqual(old[name], current[name]))
  if (changed.length === 0) return
  const valuesOf = (wiring: Record<string, unknown>) => Object.fromEntries(changed.map((name) => [name, wiring[name]]))
  await record(trx, {
    workspaceId,
    event: 'connection.updated',
    subjectId: after.id,
    description: `Connection ${after.name} was changed: ${changed.join(', ')}.`,
    metadata: { name: after.name, before: valuesOf(old), after: valuesOf(current) },
    actor,
  })
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
  const ids = connections.map(({ id }) => id)
  await cancelUndecided(trx, ids)
  await trx('connections').whereIn('id', ids).delete()
  const messages: OutboxMessage[] = []
  for (const { id, name } of connections) {
    const description = `Connection ${name} was deleted.`
    await record(trx, { workspaceId: workspace.id, event: 'connection.deleted', subjectId: id, description, metadata: { name }, actor })
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
    const before = await find(trx, workspaceId, id)
    await trx(tableOfLinks[noun])
      .where({ connection_id: id, [`${noun}_id`]: objectId })
      .delete()
    await trx('connections').where({ id }).update({ updated_at: trx.fn.now() })
    await recordRewiring(trx, workspaceId, before, await find(trx, workspaceId, id), actor)
  }
}

export const createConnections = (db: Database) => ({
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
    const query = db('connections').where({ workspace_id: workspaceId })
    if (isActive !== null) query.where({ is_active: isActive })
    const [items, counted] = await Promise.all([
      select(db, workspaceId, { isActive, page }),
      page && query.count<{ total: number }[]>({ total: '*' }).first(),
    ])
    return { items, total: counted?.total }
  },

  /** @throws AppError 404 */
  find: (workspaceId: string, id: string): Promise<Connection> => find(db, workspaceId, id),

  /**
   * Shows what a connection with these settings would do with the newest documents of repositories. Changes nothing.
   * @throws AppError 422
   */
  preview: async (workspaceId: string, repositoryIds: string[], settings: object): Promise<PreviewedDocument[]> => {
    checkSettings(settings)
    const unknown = await findUnknown(db, 'repository', workspaceId, repositoryIds)
    if (unknown.length > 0) throw validationFailed(unknown)
    return previewDocuments(db, workspaceId, repositoryIds, connectionSettings(settings))
  },

  /** @throws AppError 422 */
  insert: (
    workspaceId: string,
    connection: { name: string; isActive: boolean; settings: object; repositoryIds: string[]; destinationIds: string[] },
    actor: AuditActor,
  ): Promise<Connection> =>
    db.transaction(async (trx) => {
      checkSettings(connection.settings)
      await lockRouting(trx, workspaceId)
      const id = newId()
      const { name, isActive, settings, ...links } = connection
      await trx('connections').insert({ id, workspace_id: workspaceId, name, is_active: isActive, settings: JSON.stringify(settings) })
      await relink(trx, workspaceId, id, links)
      const inserted = await find(trx, workspaceId, id)
      checkProperties(inserted)
      await record(trx, {
        workspaceId,
        event: 'connection.created',
        subjectId: id,
        description: `Connection ${name} was created${isActive ? '' : ', inactive'}.`,
        metadata: { name, is_active: isActive, repository_ids: links.repositoryIds, destination_ids: links.destinationIds },
        actor,
      })
      return inserted
    }),

  /**
   * Updates a connection. A change of its name alone is no audit event. What the connection held for a destination that it no longer
   * leads to is cancelled: up to `limit` deliveries now, the rest by a workflow.
   * @param check throws if the connection must not be changed as it is
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
    check?: (current: Connection) => void,
  ): Promise<Updated> =>
    db.transaction(async (trx) => {
      if (change.settings) checkSettings(change.settings)
      const workspace = await lockRouting(trx, workspaceId)
      const before = await find(trx, workspaceId, id)
      check?.(before)
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
      await relink(trx, workspaceId, id, change)
      const after = await find(trx, workspaceId, id)
      if (change.settings || change.destinationIds) checkProperties(after)
      await recordRewiring(trx, workspaceId, before, after, actor)
      if (after.isActive !== before.isActive) {
        await record(trx, {
          workspaceId,
          event: 'connection.toggled',
          subjectId: id,
          description: `Connection ${after.name} was ${after.isActive ? 'activated' : 'deactivated'}.`,
          metadata: { name: after.name, is_active: after.isActive },
          actor,
        })
      }
      const cancelledDeliveries = change.destinationIds ? await countUnlinked(trx, id) : 0
      const cancelled =
        cancelledDeliveries > 0 ? await startCancelling(trx, { by: 'connection', workspace, id, name: after.name }, limit) : []
      const released = shouldRelease(after) && !shouldRelease(before) ? [releaseMessage({ workspace, ...after })] : []
      await addMessages(trx, released)
      return { connection: after, cancelledDeliveries, messages: [...cancelled, ...released] }
    }),

  /**
   * Deletes a connection and cancels the deliveries that it held: up to `limit` now, the rest by a workflow. Deliveries that it has
   * forwarded continue.
   * @param check throws if the connection must not be deleted as it is
   * @returns the committed messages
   * @throws AppError 404
   */
  delete: (
    workspaceId: string,
    id: string,
    actor: AuditActor,
    limit: number,
    check?: (current: Connection) => void,
  ): Promise<OutboxMessage[]> =>
    db.transaction(async (trx) => {
      const workspace = await lockRouting(trx, workspaceId)
      const current = await find(trx, workspaceId, id)
      check?.(current)
      return deleteConnections(trx, { id: workspaceId, name: workspace }, [current], actor, limit)
    }),
})

export type Connections = ReturnType<typeof createConnections>
