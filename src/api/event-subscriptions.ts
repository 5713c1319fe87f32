import { z } from 'zod'
import { actorOf } from '../db/audit.ts'
import type { Events } from '../events/event-log.ts'
import type { EventSubscriptionChange, EventSubscriptions } from '../events/subscriptions.ts'
import { eventName, eventReplay, eventSubscriptionChange, newEventSubscription } from '../workspace/inputs.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { goneCursor } from './events.ts'
import { pageOfMany, pageQuery, toPage } from './pagination.ts'
import { idParams, one, resource, resourceOf, timestamp } from './schemas.ts'

const subscription = resource(
  'EventSubscription',
  'event_subscription',
  z.object({
    name: z.string(),
    events: z.array(eventName),
    destination_id: z.string(),
    is_active: z.boolean(),
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
    created_at: timestamp,
    updated_at: timestamp,
  }),
)

const present = resourceOf('event_subscription')

const versionOf = ({ name: displayName, events: own, destinationId: destination, isActive: isOn }: EventSubscriptionChange) => [
  displayName,
  own,
  destination,
  isOn,
]
const version = ({ data }: { data: { attributes: EventSubscriptionChange } }) => versionOf(data.attributes)

export interface EventSubscriptionDeps {
  events: Events
  eventSubscriptions: EventSubscriptions
}

export const eventSubscriptionEndpoints = ({ events, eventSubscriptions }: EventSubscriptionDeps): Endpoint[] => [
  endpoint({
    method: 'GET',
    path: '/event-subscriptions',
    level: 'viewer',
    summary: 'List event subscriptions',
    description: 'Returns the subscriptions of the workspace in the order in which they were created, and how far each is.',
    query: pageQuery,
    response: pageOfMany(subscription),
    status: 200,
    handle: async ({ query }, { workspaceId }) => toPage(await eventSubscriptions.list(workspaceId, query), query, present),
  }),

  endpoint({
    method: 'GET',
    path: '/event-subscriptions/:id',
    level: 'viewer',
    summary: 'Retrieve an event subscription',
    params: idParams,
    response: one(subscription),
    version,
    status: 200,
    handle: async ({ params }, { workspaceId }) => ({ data: present(await eventSubscriptions.find(workspaceId, params.id)) }),
  }),

  endpoint({
    method: 'POST',
    path: '/event-subscriptions',
    level: 'member',
    audit: 'event_subscription.created',
    summary: 'Create an event subscription',
    description:
      'The relay sends each event of these types to the webhook, one after the other in their order, and repeats one until it is accepted.',
    body: newEventSubscription.meta({ id: 'EventSubscriptionInput' }),
    response: one(subscription),
    version,
    status: 201,
    gone: goneCursor,
    handle: async ({ body: { after, ...wanted } }, { workspaceId, actor }) => {
      const { nextCursor } = await events.list(workspaceId, { after: after ?? 'latest', limit: 1 })
      const cursor = after ?? nextCursor
      return { data: present(await eventSubscriptions.insert(workspaceId, wanted, cursor, actorOf(actor))) }
    },
  }),

  endpoint({
    method: 'PATCH',
    path: '/event-subscriptions/:id',
    level: 'member',
    audit: 'event_subscription.updated',
    summary: 'Update an event subscription',
    description: '`events` replaces the current list. What is sent next is sent at once.',
    params: idParams,
    body: eventSubscriptionChange.meta({ id: 'EventSubscriptionChange' }),
    response: one(subscription),
    version,
    status: 200,
    checksVersion: true,
    handle: async ({ params, body }, { workspaceId, actor, checkVersion }) => {
      const check = (current: EventSubscriptionChange) => checkVersion(versionOf(current))
      return { data: present(await eventSubscriptions.update(workspaceId, params.id, body, actorOf(actor), check)) }
    },
  }),

  endpoint({
    method: 'DELETE',
    path: '/event-subscriptions/:id',
    level: 'admin',
    audit: 'event_subscription.deleted',
    summary: 'Delete an event subscription',
    params: idParams,
    response: 'none',
    status: 204,
    checksVersion: true,
    handle: async ({ params }, { workspaceId, actor, checkVersion }) => {
      const check = (current: EventSubscriptionChange) => checkVersion(versionOf(current))
      await eventSubscriptions.delete(workspaceId, params.id, actorOf(actor), check)
    },
  }),

  endpoint({
    method: 'POST',
    path: '/event-subscriptions/:id/replay',
    level: 'member',
    audit: 'event_subscription.replayed',
    summary: 'Send events again',
    description:
      'Sets the cursor, also forwards: the events after it are sent, with the same ids as before. An attempt that waits is given up, and the next one is made at once.',
    params: idParams,
    body: eventReplay.meta({ id: 'EventReplayInput' }),
    response: one(subscription),
    status: 200,
    gone: goneCursor,
    handle: async ({ params, body: { after } }, { workspaceId, actor }) => {
      await eventSubscriptions.find(workspaceId, params.id)
      if (after !== undefined) await events.list(workspaceId, { after, limit: 1 })
      const cursor = after ?? (await events.beginning(workspaceId))
      return { data: present(await eventSubscriptions.replay(workspaceId, params.id, cursor, actorOf(actor))) }
    },
  }),
]
