import { isDeepStrictEqual } from 'node:util'
import { newId } from '../base/ids.ts'
import { notFound, validationFailed } from '../base/refusals.ts'
import { record, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { pageOf, type Page, type PageRequest } from '../db/page.ts'
import { openQueue } from '../db/side-work.ts'
import { eventIdOf, eventPositionOf, type EventName, type EventPosition } from '../domain/events.ts'
import { lockRouting } from '../workspace/workspaces.ts'

interface SubscriptionRow extends EventPosition {
  id: string
  name: string
  events: EventName[]
  destinationId: string
  isActive: boolean
  attempts: number
  failingSince: Date | null
  nextAttemptAt: Date | null
  lastError: string | null
  lastErrorCode: string | null
  lastSentAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** Events of these types are sent to a webhook, one after the other. */
export interface EventSubscription extends Omit<SubscriptionRow, keyof EventPosition> {
  /** The last event that was sent, or passed over. */
  cursor: string
  /** When the oldest event after the cursor was written, of any type. Null if there is none. */
  waitingSince: Date | null
}

export interface EventSubscriptionChange {
  name?: string | undefined
  events?: EventName[] | undefined
  destinationId?: string | undefined
  isActive?: boolean | undefined
}

const positionColumns = ['epoch', 'transaction', 'number'] as const

const columns = [
  'id',
  'name',
  'events',
  'destination_id as destinationId',
  'is_active as isActive',
  ...positionColumns,
  'attempts',
  'failing_since as failingSince',
  'next_attempt_at as nextAttemptAt',
  'last_error as lastError',
  'last_error_code as lastErrorCode',
  'last_sent_at as lastSentAt',
  'created_at as createdAt',
  'updated_at as updatedAt',
]

const columnsOf = ({ name, events, destinationId, isActive }: EventSubscriptionChange) => ({
  ...(name !== undefined && { name }),
  ...(events && { events: [...new Set(events)] }),
  ...(destinationId !== undefined && { destination_id: destinationId }),
  ...(isActive !== undefined && { is_active: isActive }),
})

/** Returns a subscription as the audit log shows it. */
const recorded = ({ name, events, destinationId, isActive }: EventSubscriptionChange): Record<string, unknown> => ({
  name,
  events,
  destination_id: destinationId,
  is_active: isActive,
})

// A change of one of these may repair what fails, or sends something else. Another one, of the name for example, repairs nothing.
const sendingColumns = new Set(['events', 'destination_id', 'is_active'])

/** What is sent next is sent at once: a run under way has an earlier version, and ends. */
const beginAnew = (trx: Transaction) => ({
  version: trx.raw('version + 1'),
  attempts: 0,
  failing_since: null,
  next_attempt_at: null,
  last_error: null,
  last_error_code: null,
  updated_at: trx.fn.now(),
})

const withWaiting = async (db: Database | Transaction, rows: SubscriptionRow[]): Promise<EventSubscription[]> => {
  const { rows: waiting } = await db.raw<{ rows: { id: string; waitingSince: Date | null }[] }>(
    `
    select
      id,
      (
        select events.created_at
        from events
        where events.workspace_id = event_subscriptions.workspace_id
          and (events.epoch, events.transaction, events.number)
            > (event_subscriptions.epoch, event_subscriptions.transaction, event_subscriptions.number)
        order by events.epoch, events.transaction, events.number
        limit 1
      ) as "waitingSince"
    from event_subscriptions
    where id = any(:ids)
    `,
    { ids: rows.map(({ id }) => id) },
  )
  const byId = new Map(waiting.map(({ id, waitingSince }) => [id, waitingSince]))
  return rows.map(({ epoch, transaction, number, ...row }) => ({
    ...row,
    cursor: eventIdOf({ epoch, transaction, number }),
    waitingSince: byId.get(row.id) ?? null,
  }))
}

const findRow = async (db: Database | Transaction, workspaceId: string, id: string): Promise<SubscriptionRow> => {
  const found: SubscriptionRow | undefined = await db('event_subscriptions')
    .select(columns)
    .where({ workspace_id: workspaceId, id })
    .first()
  if (!found) throw notFound()
  return found
}

const find = async (db: Database | Transaction, workspaceId: string, id: string): Promise<EventSubscription> =>
  (await withWaiting(db, [await findRow(db, workspaceId, id)]))[0]!

/** @throws AppError 422 if a destination does not exist or is no webhook */
const checkDestination = async (trx: Transaction, workspaceId: string, destinationId: string): Promise<void> => {
  const found = await trx('destinations')
    .select<{ connectorType: string }>('connector_type as connectorType')
    .where({ workspace_id: workspaceId, id: destinationId })
    .whereNull('deleted_at')
    .first()
  if (found?.connectorType === 'webhook') return
  const message = found
    ? `must be a destination of the type webhook; this one is of the type ${found.connectorType}`
    : 'there is no such destination in this workspace'
  throw validationFailed([{ path: 'destination_id', message }])
}

/** Stops the subscriptions of a destination that is being deleted. They keep their cursors for another destination. */
export const stopSubscriptionsOf = async (
  trx: Transaction,
  workspaceId: string,
  destinationId: string,
  actor: AuditActor,
): Promise<void> => {
  const stopped: { id: string; name: string }[] = await trx('event_subscriptions')
    .where({ workspace_id: workspaceId, destination_id: destinationId, is_active: true })
    .update({ ...beginAnew(trx), is_active: false })
    .returning(['id', 'name'])
  for (const { id, name } of stopped) {
    await record(trx, {
      workspaceId,
      event: 'event_subscription.updated',
      subjectId: id,
      description: `Event subscription ${name} was stopped, because its destination was deleted.`,
      metadata: { name, before: { is_active: true }, after: { is_active: false } },
      actor,
    })
  }
}

export const createEventSubscriptions = (db: Database) => ({
  /** Lists subscriptions in order of creation. */
  list: async (workspaceId: string, page: PageRequest): Promise<Page<EventSubscription>> => {
    const query = db('event_subscriptions').where({ workspace_id: workspaceId }).orderBy('id')
    const { items, total } = await pageOf<SubscriptionRow>(query, columns, page)
    return { items: await withWaiting(db, items), total }
  },

  /** @throws AppError 404 */
  find: (workspaceId: string, id: string): Promise<EventSubscription> => find(db, workspaceId, id),

  /** @param cursor of the event after which the subscription begins. @throws AppError 422 */
  insert: (
    workspaceId: string,
    subscription: Required<EventSubscriptionChange> & { destinationId: string },
    cursor: string,
    actor: AuditActor,
  ): Promise<EventSubscription> =>
    db.transaction(async (trx) => {
      // The destination cannot be deleted meanwhile.
      await lockRouting(trx, workspaceId)
      await checkDestination(trx, workspaceId, subscription.destinationId)
      const id = newId()
      await trx('event_subscriptions').insert({
        id,
        workspace_id: workspaceId,
        ...columnsOf(subscription),
        ...eventPositionOf(cursor),
      })
      const row = await find(trx, workspaceId, id)
      await record(trx, {
        workspaceId,
        event: 'event_subscription.created',
        subjectId: id,
        description: `Event subscription ${row.name} was created${row.isActive ? '' : ', inactive'}.`,
        metadata: recorded(row),
        actor,
      })
      return row
    }),

  /**
   * Writes and records the values that differ, if any.
   * @param check throws if the subscription must not be changed as it is
   * @throws AppError 404 or 422
   */
  update: (
    workspaceId: string,
    id: string,
    change: EventSubscriptionChange,
    actor: AuditActor,
    check?: (current: EventSubscriptionChange) => void,
  ): Promise<EventSubscription> =>
    db.transaction(async (trx) => {
      await lockRouting(trx, workspaceId)
      const current = await find(trx, workspaceId, id)
      check?.(current)
      if (change.destinationId !== undefined || (change.isActive === true && !current.isActive)) {
        await checkDestination(trx, workspaceId, change.destinationId ?? current.destinationId)
      }
      const wanted = columnsOf(change)
      const before = recorded(current)
      const changed = Object.entries(wanted)
        .filter(([name, value]) => !isDeepStrictEqual(before[name], value))
        .map(([name]) => name)
      if (changed.length === 0) return current
      const beginsAnew = changed.some((column) => sendingColumns.has(column))
      await trx('event_subscriptions')
        .where({ id })
        .update({ ...(beginsAnew && beginAnew(trx)), ...wanted, updated_at: trx.fn.now() })
      if (beginsAnew) await openQueue(trx, 'events', id)
      const row = await find(trx, workspaceId, id)
      const after = recorded(row)
      const valuesOf = (values: Record<string, unknown>) => Object.fromEntries(changed.map((name) => [name, values[name]]))
      await record(trx, {
        workspaceId,
        event: 'event_subscription.updated',
        subjectId: id,
        description: `Event subscription ${row.name} was changed: ${changed.join(', ')}.`,
        metadata: { name: row.name, before: valuesOf(before), after: valuesOf(after) },
        actor,
      })
      return row
    }),

  /** Sends again what follows an event. @throws AppError 404 */
  replay: (workspaceId: string, id: string, cursor: string, actor: AuditActor): Promise<EventSubscription> =>
    db.transaction(async (trx) => {
      await lockRouting(trx, workspaceId)
      const before = await find(trx, workspaceId, id)
      await trx('event_subscriptions')
        .where({ id })
        .update({ ...beginAnew(trx), ...eventPositionOf(cursor) })
      await openQueue(trx, 'events', id)
      await record(trx, {
        workspaceId,
        event: 'event_subscription.replayed',
        subjectId: id,
        description: `Event subscription ${before.name} was set to another place.`,
        metadata: { name: before.name, before: { cursor: before.cursor }, after: { cursor } },
        actor,
      })
      return find(trx, workspaceId, id)
    }),

  /** @param check throws if the subscription must not be deleted as it is. @throws AppError 404 */
  delete: (workspaceId: string, id: string, actor: AuditActor, check?: (current: EventSubscriptionChange) => void): Promise<void> =>
    db.transaction(async (trx) => {
      await lockRouting(trx, workspaceId)
      const current = await findRow(trx, workspaceId, id)
      check?.(current)
      await trx('event_subscriptions').where({ id }).delete()
      await openQueue(trx, 'events', id)
      await record(trx, {
        workspaceId,
        event: 'event_subscription.deleted',
        subjectId: id,
        description: `Event subscription ${current.name} was deleted.`,
        metadata: { name: current.name },
        actor,
      })
    }),
})

export type EventSubscriptions = ReturnType<typeof createEventSubscriptions>
