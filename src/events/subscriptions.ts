import { z } from 'zod'
import { record, systemActor, type AuditActor } from '../db/audit.ts'
import type { Database, Transaction } from '../db/database.ts'
import { openQueue } from '../db/side-work.ts'
import type { CamelCasedOutput } from '../domain/casing.ts'
import { timestamp } from '../domain/date-range.ts'
import { eventIdOf, eventPositionOf, type EventPosition } from '../domain/events.ts'
import { configuredKind, type Configured } from '../workspace/configured-kind.ts'
import { createConfigured } from '../workspace/configured.ts'
import { eventSubscriptionValues, type newEventSubscription } from '../workspace/inputs.ts'
import { requireDestination } from '../workspace/required-destination.ts'
import { lockRouting } from '../workspace/workspaces.ts'
import { createEvents } from './event-log.ts'

export const subscriptionProgress = z.object({
  cursor: z
    .string()
    .meta({ examples: ['660b0a182de650000000a91c4000000002f17'] })
    .describe('The last event that was sent or passed over.'),
  waiting_since: timestamp
    .nullable()
    .describe('When the oldest event after the cursor was written, whatever its type. Null if there is none: everything was sent.'),
  attempts: z.int().describe('Failed attempts to send the next event. It is repeated until it succeeds, and later events wait.'),
  failing_since: timestamp.nullable().describe('When the first of these attempts failed.'),
  next_attempt_at: timestamp.nullable(),
  last_error: z.string().nullable(),
  last_error_code: z.string().nullable(),
  last_sent_at: timestamp.nullable().describe('When the last event was sent.'),
})

type Progress = CamelCasedOutput<typeof subscriptionProgress>

/** Events of these types are sent to a webhook, one after the other. */
export type EventSubscription = Configured<typeof eventSubscriptionValues> & Progress

// A change of one of these may repair what fails, or sends something else. Another one, of the name for example, repairs nothing.
const sendingColumns = new Set(['events', 'destination_id', 'is_active'])
const beginsAnew = ({ current, changed }: { current: unknown; changed: readonly string[] }): boolean =>
  current !== undefined && changed.some((column) => sendingColumns.has(column))

const webhook = { types: 'webhook', isOne: (type: string) => type === 'webhook' }

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

const waitingSince = `
  (
    select events.created_at
    from events
    where events.workspace_id = event_subscriptions.workspace_id
      and (events.epoch, events.transaction, events.number)
        > (event_subscriptions.epoch, event_subscriptions.transaction, event_subscriptions.number)
    order by events.epoch, events.transaction, events.number
    limit 1
  ) as "waitingSince"
`

export const eventSubscriptionKind = configuredKind({
  table: 'event_subscriptions',
  event: 'event_subscription',
  noun: 'Event subscription',
  schema: eventSubscriptionValues,
  more: ['epoch', 'transaction', 'number', 'attempts', 'failing_since', 'next_attempt_at', 'last_error', 'last_error_code', 'last_sent_at'],
  expressions: [waitingSince],
  rowOf: ({ epoch, transaction, number, ...row }: Omit<EventSubscription, 'cursor'> & EventPosition): EventSubscription => ({
    ...row,
    cursor: eventIdOf({ epoch, transaction, number }),
  }),
})

type Stopped = { id: string; name: string }

const recordStop = (trx: Transaction, workspaceId: string, { id, name }: Stopped, reason: string, actor: AuditActor): Promise<void> =>
  record(trx, {
    workspaceId,
    event: 'event_subscription.updated',
    subjectId: id,
    description: `Event subscription ${name} was stopped, because ${reason}.`,
    metadata: { name, before: { is_active: true }, after: { is_active: false } },
    actor,
  })

/** Stops a subscription whose receiver wants no more events. It keeps its cursor and its error. @param version of the subscription that has failed */
export const stopGoneSubscription = (
  db: Database,
  { id, workspaceId, version }: { id: string; workspaceId: string; version: number },
): Promise<void> =>
  db.transaction(async (trx) => {
    const [stopped]: Stopped[] = await trx('event_subscriptions')
      .where({ id, version, is_active: true })
      .update({ is_active: false, version: trx.raw('version + 1'), next_attempt_at: null, updated_at: trx.fn.now() })
      .returning(['id', 'name'])
    if (stopped) await recordStop(trx, workspaceId, stopped, 'its receiver answered 410 Gone', systemActor)
  })

/** Stops the subscriptions of a destination that is being deleted. They keep their cursors for another destination. */
export const stopSubscriptionsOf = async (
  trx: Transaction,
  workspaceId: string,
  destinationId: string,
  actor: AuditActor,
): Promise<void> => {
  const stopped: Stopped[] = await trx('event_subscriptions')
    .where({ workspace_id: workspaceId, destination_id: destinationId, is_active: true })
    .update({ ...beginAnew(trx), is_active: false })
    .returning(['id', 'name'])
  for (const each of stopped) await recordStop(trx, workspaceId, each, 'its destination was deleted', actor)
}

export const createEventSubscriptions = (db: Database | Transaction) => {
  const events = createEvents(db)
  const configured = createConfigured<typeof eventSubscriptionValues, EventSubscription>(db, eventSubscriptionKind, {
    check: async (trx, { workspaceId, change, current }) => {
      const isStarted = change.isActive === true && current?.isActive === false
      const destinationId = change.destinationId ?? (isStarted ? current.destinationId : undefined)
      if (destinationId !== undefined) await requireDestination(trx, workspaceId, destinationId, webhook)
    },
    alsoSet: (trx, changing) => ({ columns: beginsAnew(changing) ? beginAnew(trx) : {} }),
    written: async (trx, changing) => {
      if (beginsAnew(changing)) await openQueue(trx, 'events', changing.id)
    },
    deleted: (trx, id) => openQueue(trx, 'events', id),
  })
  return {
    ...configured,

    /** @param values with the event after which the subscription begins. By default, what happens from now on is sent. @throws AppError 410 or 422 */
    insert: async (
      workspaceId: string,
      { after, ...values }: CamelCasedOutput<typeof newEventSubscription>,
      actor: AuditActor,
    ): Promise<EventSubscription> => {
      const { nextCursor } = await events.list(workspaceId, { after: after ?? 'latest', limit: 1 })
      return configured.insert(workspaceId, values, actor, eventPositionOf(after ?? nextCursor))
    },

    /** Sends again what follows an event. @throws AppError 404 */
    replay: (workspaceId: string, id: string, cursor: string, actor: AuditActor): Promise<EventSubscription> =>
      db.transaction(async (trx) => {
        await lockRouting(trx, workspaceId)
        const before = await eventSubscriptionKind.find(trx, workspaceId, id)
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
        return eventSubscriptionKind.find(trx, workspaceId, id)
      }),
  }
}

export type EventSubscriptions = ReturnType<typeof createEventSubscriptions>
