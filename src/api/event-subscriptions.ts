import { z } from 'zod'
import { actorOf } from '../db/audit.ts'
import { timestamp } from '../domain/date-range.ts'
import type { Events } from '../events/event-log.ts'
import { subscriptionProgress, type EventSubscriptions } from '../events/subscriptions.ts'
import { eventName, eventReplay, eventSubscriptionValues, newEventSubscription } from '../workspace/inputs.ts'
import { answered, changeOf, configuredEndpoints } from './configured.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { goneCursor } from './events.ts'
import { idParams, one, resource, resourceOf } from './schemas.ts'

const subscription = resource(
  'EventSubscription',
  'event_subscription',
  answered(eventSubscriptionValues).extend({
    events: z.array(eventName),
    ...subscriptionProgress.shape,
    created_at: timestamp,
    updated_at: timestamp,
  }),
)

const present = resourceOf('event_subscription')

interface EventSubscriptionDeps {
  events: Events
  eventSubscriptions: EventSubscriptions
}

export const eventSubscriptionEndpoints = ({ events, eventSubscriptions }: EventSubscriptionDeps): Endpoint[] => [
  ...configuredEndpoints(
    {
      type: 'event_subscription',
      id: 'EventSubscription',
      singular: 'an event subscription',
      path: '/event-subscriptions',
      resource: subscription,
      input: newEventSubscription,
      change: changeOf(eventSubscriptionValues),
      descriptions: {
        list: 'Returns the subscriptions of the workspace in the order in which they were created, and how far each is.',
        create:
          'The relay sends each event of these types to the webhook, one after the other in their order, and repeats one until it is accepted.',
        update: '`events` replaces the current list. What is sent next is sent at once.',
      },
      refusals: { gone: goneCursor },
    },
    eventSubscriptions,
  ),

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
    gone: goneCursor,
    handle: async ({ params, body: { after } }, { workspaceId, actor }) => {
      await eventSubscriptions.find(workspaceId, params.id)
      if (after !== undefined) await events.list(workspaceId, { after, limit: 1 })
      const cursor = after ?? (await events.beginning(workspaceId))
      return { data: present(await eventSubscriptions.replay(workspaceId, params.id, cursor, actorOf(actor))) }
    },
  }),
]
