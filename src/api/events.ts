import { z } from 'zod'
import { timestamp } from '../domain/date-range.ts'
import { eventIdPattern, eventNames, type EventName } from '../domain/events.ts'
import { eventKeyOf, type Events, type EventsPage, type EventsRequest } from '../events/event-log.ts'
import { eventName, openObject } from '../workspace/inputs.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { perPage } from './pagination.ts'
import { resource, resourceOf } from './schemas.ts'
import { waitSeconds, waitSecondsMax, type Topic } from './waiting.ts'

const event = resource(
  'Event',
  'event',
  z.object({
    event: eventName,
    created_at: timestamp.describe('When the transaction of the outcome began.'),
    data: openObject.describe('What happened, by the type of the event: the schemas are those of the webhooks of the same names.'),
  }),
)

const response = z
  .object({
    data: z.array(event),
    meta: z
      .object({
        next_cursor: z
          .string()
          .meta({ examples: ['660b0a182de650000000a91c4000000002f17'] })
          .describe('Pass it as `after`. Always present.'),
        has_more: z.boolean().describe('True if more events may be known already: ask for them at once.'),
      })
      .meta({ id: 'EventListMeta' }),
  })
  .meta({ id: 'EventList' })

/** When the answer to a cursor is 410. */
export const goneCursor = 'Events after this cursor were removed, or this database does not have the event of the cursor.'

const aName = `(${eventNames.map((each) => each.replace('.', '\\.')).join('|')})`

const types = z
  .string()
  .regex(new RegExp(`^${aName}(,${aName})*$`), 'must be names of events, separated by commas')
  .transform((text) => text.split(',') as EventName[])
  .optional()

const query = z.strictObject({
  after: z
    .string()
    .regex(new RegExp(`^latest$|${eventIdPattern.source}`), 'must be the id of an event, next_cursor of an answer, or latest')
    .optional()
    .describe(
      'Only events after this one: `next_cursor` of the answer before, or `latest` to begin now. By default from the oldest that is kept.',
    ),
  types: types.describe('Only events of these types, separated by commas.'),
  per_page: perPage,
  wait_seconds: waitSeconds
    .default(0)
    .describe(`Answers as soon as there is an event, and after this time without one. At most ${waitSecondsMax}.`),
})

interface EventDeps {
  events: Events
  newEvents: Topic<true>
}

const present = resourceOf('event')

const answer = ({ items, nextCursor, hasMore }: EventsPage) => ({ data: items.map(present), meta: { nextCursor, hasMore } })

export const eventEndpoints = ({ events, newEvents }: EventDeps): Endpoint[] => [
  endpoint({
    method: 'GET',
    path: '/events',
    level: 'viewer',
    summary: 'Follow events',
    description:
      'Returns what has happened, oldest first. A reader that passes `next_cursor` of each answer as `after` misses nothing, and gets the events ' +
      'of a document in their order. Events are kept for `events_days` of the workspace.',
    query,
    response,
    gone: goneCursor,
    handle: async ({ query: { waitSeconds: seconds, perPage: limit, ...first } }, { workspaceId, actor, signal, elsewhere }) => {
      const until = performance.now() + seconds * 1_000
      const follow = async (request: EventsRequest): Promise<EventsPage> => {
        const page = await events.list(workspaceId, request)
        const left = (until - performance.now()) / 1_000
        if (page.items.length > 0 || left <= 0) return page
        const next = { ...request, after: page.nextCursor }
        if (page.hasMore) return follow(next)
        const key = eventKeyOf(workspaceId, page.nextCursor)
        const isThere = await elsewhere(() => newEvents.wait(key, { actor, seconds: left, signal }))
        return isThere ? follow(next) : page
      }
      return answer(await follow({ ...first, limit }))
    },
  }),
]
