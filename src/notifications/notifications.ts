import type { FindConnector } from '../connectors/connector.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import type { TestResult } from '../routing/targets.ts'
import { configuredKind, type Configured } from '../workspace/configured-kind.ts'
import { createConfigured } from '../workspace/configured.ts'
import { newNotification } from '../workspace/inputs.ts'
import { requireDestination } from '../workspace/required-destination.ts'

/** A rule: incidents of these kinds are announced at this destination. */
export type Notification = Configured<typeof newNotification>

export const notificationKind = configuredKind({
  table: 'notifications',
  event: 'notification',
  noun: 'Notification',
  schema: newNotification,
})

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
  for (const each of found) await notificationKind.remove(trx, workspaceId, each, actor)
}

export const createNotifications = (db: Database | Transaction, findConnector: FindConnector) => ({
  ...createConfigured(db, notificationKind, {
    check: async (trx, { workspaceId, change: { destinationId } }) => {
      const isOne = (type: string) => findConnector(type)?.sendNotice !== undefined
      if (destinationId !== undefined) await requireDestination(trx, workspaceId, destinationId, { types: 'email or webhook', isOne })
    },
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
})

export type Notifications = ReturnType<typeof createNotifications>
