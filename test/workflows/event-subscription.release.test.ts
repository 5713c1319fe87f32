import { createEvents } from '../../src/events/event-log.ts'
import { createEventSubscriptions } from '../../src/events/subscriptions.ts'
import { sideWorkflowId } from '../../workflows/ids.ts'
import { createList } from '../events/event-list.ts'
import { startHttpTarget, type Arrival } from '../support/http-target.ts'
import { createInstallation } from '../support/installation.ts'
import { routeTo } from '../support/relay-process.ts'
import { share } from '../support/share.ts'
import { until } from '../support/until.ts'

const target = share(await startHttpTarget())
const { database, env, start } = share(await createInstallation())
const { db } = database
const actor = { type: 'system', userId: null } as const

// The documents arrive at the same server.
const isEvent = ({ headers }: Pick<Arrival, 'headers'>) => headers['x-relay-event-type'] !== 'document'

/** Returns the events that arrived, in order. */
const arrivedEvents = () =>
  target.arrivals
    .filter(isEvent)
    .map(({ headers, body }) => ({ id: String(headers['webhook-id']), ...(JSON.parse(body.toString()) as { type: string; data: object }) }))

test('events are sent in order, by a workflow that a dispatcher starts, through failures of the receiver and the loss of a worker', async () => {
  const [api, first] = await Promise.all([start('api'), start('worker')])
  const settings = { retry_initial_interval_seconds: 1, retry_max_interval_seconds: 1 }
  const { workspaceId, workspaceSlug, destinationId, send, untilDelivered } = await routeTo(
    database,
    'webhook',
    { url: target.origin },
    {},
    settings,
  )
  const { nextCursor } = await createEvents(db).list(workspaceId, { after: 'latest', limit: 1 })
  const subscriptions = createEventSubscriptions(db)
  const { id } = await subscriptions.insert(
    workspaceId,
    { name: 'Data', events: ['document.received', 'document.delivered'], destinationId, isActive: true },
    actor,
  )
  let refused = 0
  let isAway = true
  target.answerWith((arrival, response) => {
    if (isAway && isEvent(arrival)) {
      refused += 1
      // Later requests are under way when the worker is lost.
      if (refused > 2) return
      response.statusCode = 503
    }
    response.end()
  })
  for (let number = 0; number < 10; number += 1) await send(api, `DOC${number}`)
  await untilDelivered(10)
  await until('the receiver has refused the first event twice', () => refused >= 2)
  const refusedIds = new Set(arrivedEvents().map((event) => event.id))
  expect(refusedIds.size).toBe(1)
  expect(await subscriptions.find(workspaceId, id)).toMatchObject({ failingSince: expect.any(Date), lastErrorCode: 'http_503' })

  await until('the receiver has got the first event once more', () => refused > 2)
  await first.kill()
  target.arrivals.length = 0
  isAway = false
  await start('worker')
  await until('all events have arrived', () => new Set(arrivedEvents().map((event) => event.id)).size === 20, Boolean, 120_000)
  const arrived = arrivedEvents()
  const ids = [...new Set(arrived.map((event) => event.id))]
  expect(ids).toEqual(ids.toSorted())
  const { items } = await createList(db, createEvents(db))(workspaceId, {
    after: nextCursor,
    types: ['document.received', 'document.delivered'],
    limit: 100,
  })
  expect(ids).toEqual(items.map((item) => item.id))
  await until('the subscription has nothing to send', async () => (await subscriptions.find(workspaceId, id)).waitingSince === null)
  expect(await subscriptions.find(workspaceId, id)).toMatchObject({ attempts: 0, failingSince: null, lastError: null })
  // A subscription without events has no open workflow.
  const handle = env.client.workflow.getHandle(sideWorkflowId('event-subscription', { workspace: `acme/${workspaceSlug}`, queueId: id }))
  await until('its workflow has ended', async () => (await handle.describe()).status.name === 'COMPLETED')
}, 300_000)
