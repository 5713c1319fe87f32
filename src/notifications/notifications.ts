import { isDeepStrictEqual } from 'node:util'
import { newId } from '../base/ids.ts'
import { notFound, validationFailed } from '../base/refusals.ts'
import type { FindConnector } from '../connectors/connector.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import type { IncidentEvent } from '../domain/notices.ts'
import type { TestResult } from '../routing/targets.ts'
import { lockRouting } from '../workspace/workspaces.ts'

/** A rule: incidents of these kinds are announced at this destination. */
export interface Notification {
  id: string
  name: string
  events: IncidentEvent[]
  destinationId: string
  quietSeconds: number
  silenceHours: number
  isActive: boolean
  createdAt: Date
  updatedAt: Date
}

export interface NotificationChange {
  name?: string | undefined
  events?: IncidentEvent[] | undefined
  destinationId?: string | undefined
  quietSeconds?: number | undefined
  silenceHours?: number | undefined
  isActive?: boolean | undefined
}

const columns = [
  'id',
  'name',
  'events',
  'destination_id as destinationId',
  'quiet_seconds as quietSeconds',
  'silence_hours as silenceHours',
  'is_active as isActive',
  'created_at as createdAt',
  'updated_at as updatedAt',
]

const columnsOf = ({ name, events, destinationId, quietSeconds, silenceHours, isActive }: NotificationChange) => ({
  ...(name !== undefined && { name }),
  ...(events && { events: [...new Set(events)] }),
  ...(destinationId !== undefined && { destination_id: destinationId }),
  ...(quietSeconds !== undefined && { quiet_seconds: quietSeconds }),
  ...(silenceHours !== undefined && { silence_hours: silenceHours }),
  ...(isActive !== undefined && { is_active: isActive }),
})

/** Returns a notification as the audit log shows it. */
const recorded = (notification: Notification): Record<string, unknown> => ({
  name: notification.name,
  events: notification.events,
  destination_id: notification.destinationId,
  quiet_seconds: notification.quietSeconds,
  silence_hours: notification.silenceHours,
  is_active: notification.isActive,
})

const find = async (db: Database | Transaction, workspaceId: string, id: string): Promise<Notification> => {
  const found: Notification | undefined = await db('notifications').select(columns).where({ workspace_id: workspaceId, id }).first()
  if (!found) throw notFound()
  return found
}

/** @throws AppError 422 if a destination does not exist or cannot send notices */
const checkDestination = async (
  trx: Transaction,
  workspaceId: string,
  destinationId: string,
  findConnector: FindConnector,
): Promise<void> => {
  const found = await trx('destinations')
    .select<{ connectorType: string }>('connector_type as connectorType')
    .where({ workspace_id: workspaceId, id: destinationId })
    .whereNull('deleted_at')
    .first()
  if (found && findConnector(found.connectorType)?.sendNotice) return
  const message = found
    ? `must be a destination of the type email or webhook; this one is of the type ${found.connectorType}`
    : 'there is no such destination in this workspace'
  throw validationFailed([{ path: 'destination_id', message }])
}

/** Deletes a notification, and its notices that are not delivered. */
const remove = async (trx: Transaction, workspaceId: string, { id, name }: Pick<Notification, 'id' | 'name'>, actor: AuditActor) => {
  await trx('notifications').where({ id }).delete()
  const description = `Notification ${name} was deleted.`
  await record(trx, { workspaceId, event: 'notification.deleted', subjectId: id, description, metadata: { name }, actor })
}

/** Deletes the notifications that are sent to a destination, which is being deleted. */
export const deleteNotificationsOf = async (
  trx: Transaction,
  workspaceId: string,
  destinationId: string,
  actor: AuditActor,
): Promise<void> => {
  const found: { id: string; name: string }[] = await trx('notifications')
    .select('id', 'name')
    .where({ workspace_id: workspaceId, destination_id: destinationId })
    .orderBy('id')
  for (const each of found) await remove(trx, workspaceId, each, actor)
}

export const createNotifications = (db: Database) => ({
  /** Lists notifications in order of creation. */
  list: (workspaceId: string, page: PageRequest): Promise<Page<Notification>> =>
    pageOf(db('notifications').where({ workspace_id: workspaceId }).orderBy('id'), columns, page),

  /** @throws AppError 404 */
  find: (workspaceId: string, id: string): Promise<Notification> => find(db, workspaceId, id),

  /** @throws AppError 422 */
  insert: (
    workspaceId: string,
    notification: Required<NotificationChange> & { destinationId: string },
    actor: AuditActor,
    findConnector: FindConnector,
  ): Promise<Notification> =>
    db.transaction(async (trx) => {
      // The destination cannot be deleted meanwhile.
      await lockRouting(trx, workspaceId)
      await checkDestination(trx, workspaceId, notification.destinationId, findConnector)
      const [row]: Notification[] = await trx('notifications')
        .insert({ id: newId(), workspace_id: workspaceId, ...columnsOf(notification) })
        .returning(columns)
      await record(trx, {
        workspaceId,
        event: 'notification.created',
        subjectId: row!.id,
        description: `Notification ${row!.name} was created${row!.isActive ? '' : ', inactive'}.`,
        metadata: recorded(row!),
        actor,
      })
      return row!
    }),

  /**
   * Writes and records the values that differ, if any.
   * @param check throws if the notification must not be changed as it is
   * @throws AppError 404 or 422
   */
  update: (
    workspaceId: string,
    id: string,
    change: NotificationChange,
    actor: AuditActor,
    findConnector: FindConnector,
    check?: (current: Notification) => void,
  ): Promise<Notification> =>
    db.transaction(async (trx) => {
      await lockRouting(trx, workspaceId)
      const current = await find(trx, workspaceId, id)
      check?.(current)
      if (change.destinationId !== undefined) await checkDestination(trx, workspaceId, change.destinationId, findConnector)
      const wanted = columnsOf(change)
      if (Object.keys(wanted).length === 0) return current
      const before = recorded(current)
      const changed = Object.entries(wanted)
        .filter(([name, value]) => !isDeepStrictEqual(before[name], value))
        .map(([name]) => name)
      if (changed.length === 0) return current
      const [row]: Notification[] = await trx('notifications')
        .where({ id })
        .update({ ...wanted, updated_at: trx.fn.now() })
        .returning(columns)
      const after = recorded(row!)
      const valuesOf = (values: Record<string, unknown>) => Object.fromEntries(changed.map((name) => [name, values[name]]))
      await record(trx, {
        workspaceId,
        event: 'notification.updated',
        subjectId: id,
        description: `Notification ${row!.name} was changed: ${changed.join(', ')}.`,
        metadata: { name: row!.name, before: valuesOf(before), after: valuesOf(after) },
        actor,
      })
      return row!
    }),

  /** Records that a test message was sent to the destination of a notification, or could not be sent. */
  recordTest: (
    workspaceId: string,
    { id, name, destinationId }: Notification,
    { status, message }: TestResult,
    actor: AuditActor,
  ): Promise<void> =>
    db.transaction((trx) =>
      record(trx, {
        workspaceId,
        event: 'notification.tested',
        subjectId: id,
        description: `Notification ${name} was tested: ${status === 'success' ? 'its destination accepted the message' : 'the message could not be sent'}.`,
        metadata: { name, destination_id: destinationId, status, message },
        actor,
      }),
    ),

  /** @param check throws if the notification must not be deleted as it is. @throws AppError 404 */
  delete: (workspaceId: string, id: string, actor: AuditActor, check?: (current: Notification) => void): Promise<void> =>
    db.transaction(async (trx) => {
      await lockRouting(trx, workspaceId)
      const current = await find(trx, workspaceId, id)
      check?.(current)
      await remove(trx, workspaceId, current, actor)
    }),
})

export type Notifications = ReturnType<typeof createNotifications>
