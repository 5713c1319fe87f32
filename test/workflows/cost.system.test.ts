// What a document costs in Temporal: the events of its histories, which the server stores, and the actions, by which Temporal Cloud bills.
// docs/behaviour.md tells operators these numbers.
import { readFileSync } from 'node:fs'
import type { WorkflowHandle } from '@temporalio/client'
import { repeatAttempts } from '../../activities/delivery.ts'
import type { AttemptOutcome } from '../../src/domain/delivery-run.ts'
import { createTemporal } from '../../src/temporal/client.ts'
import { deliveryWorkflowId, documentWorkflowId, sideWorkflowId } from '../../workflows/ids.ts'
import type { AttemptInput, DeliveryActivities, DocumentInput, SideWorkActivities } from '../../workflows/messages.ts'
import { documentOptions } from '../../workflows/options.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { withWorker } from '../support/temporal.ts'
import { documentTo } from './scripted-activities.ts'

type Event = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>[number]

// Attributes of the events that are an action. A signal counts where it arrives, a child workflow where it starts.
const actionAttributes = [
  'workflowExecutionStartedEventAttributes',
  'timerStartedEventAttributes',
  'workflowExecutionSignaledEventAttributes',
  'activityTaskScheduledEventAttributes',
  'upsertWorkflowSearchAttributesEventAttributes',
] as const satisfies (keyof Event)[]

/** Returns the number of actions. Each attempt of the server to run an activity after the first is one more. */
const actionsOf = (events: Event[]): number =>
  events.filter((event) => actionAttributes.some((name) => event[name])).length +
  events.reduce((sum, { activityTaskStartedEventAttributes: started }) => sum + ((started?.attempt ?? 1) - 1), 0)

const env = share(await startTemporalServer())

/** Delivers a document, and returns what it cost. The first destination fails so many times before it accepts the document. */
const costOf = async (destinations: number, failures: number) => {
  const attempts = new Map<string, number>()
  const activities: DeliveryActivities = {
    attemptDelivery: async ({ destinationId }: AttemptInput): Promise<AttemptOutcome> => {
      const attempt = (attempts.get(destinationId) ?? 0) + 1
      attempts.set(destinationId, attempt)
      if (destinationId !== 'D0' || attempt > failures) return { status: 'delivered' }
      return { status: 'retrying', delayMs: 50, failures: attempt, error: 'the target answered 503', errorCode: 'http_503' }
    },
    recordCancellation: async () => 'failed',
    recordTermination: async () => undefined,
  }
  const names = Array.from({ length: destinations }, (_, index) => `D${index}`)
  const input: DocumentInput = documentTo(...names)
  const histories: Event[][] = []
  await withWorker(env, repeatAttempts(activities), async (taskQueue) => {
    await env.client.workflow.execute('document', { ...documentOptions(input, { registered: true }), taskQueue })
    const workflowIds = [documentWorkflowId(input), ...input.destinations.map(({ id }) => deliveryWorkflowId(input, id))]
    for (const workflowId of workflowIds) histories.push((await env.client.workflow.getHandle(workflowId).fetchHistory()).events ?? [])
  })
  expect(attempts.get('D0')).toBe(failures + 1)
  return { events: histories.flat().length, actions: histories.reduce((sum, events) => sum + actionsOf(events), 0) }
}

const documented = readFileSync(new URL('../../docs/behaviour.md', import.meta.url), 'utf8')

test.each([
  { destinations: 1, failures: 0, events: 25, actions: 3 },
  { destinations: 3, failures: 0, events: 59, actions: 7 },
  { destinations: 1, failures: 3, events: 37, actions: 12 },
  { destinations: 1, failures: 10, events: 37, actions: 19 },
  { destinations: 3, failures: 3, events: 71, actions: 16 },
])(
  'a document to $destinations destinations, one of which fails $failures times, costs $events events and $actions actions',
  async (cost) => {
    const { destinations, failures } = cost
    const counted = await costOf(destinations, failures)
    expect(counted.actions).toBe(cost.actions)
    // Events that arrive together share a workflow task, so there may be fewer.
    expect(counted.events).toBeLessThanOrEqual(cost.events)
    expect(counted.events).toBeGreaterThan(cost.events - 4 * (destinations + 1))
    expect(documented).toContain(`| ${destinations} | ${failures} | ${cost.events} | ${cost.actions} |`)
  },
)

test('a run of side work costs 12 events and 3 actions, however much it does', async () => {
  const activities: Pick<SideWorkActivities, 'enrichDocuments'> = { enrichDocuments: async () => ({ status: 'idle' }) }
  const queue = { queueId: 'E1', workspaceId: 'W1', workspace: 'acme/invoices', name: 'Invoices' }
  const events = await withWorker(env, activities, async (taskQueue) => {
    const temporal = createTemporal(env.client, env.connection, { TEMPORAL_TASK_QUEUE: taskQueue, TEMPORAL_START_TIMEOUT_MS: 10_000 })
    await temporal.startSideWork('enrichment', queue)
    const handle = env.client.workflow.getHandle(sideWorkflowId('enrichment', queue))
    expect(await handle.result()).toBe('idle')
    return (await handle.fetchHistory()).events ?? []
  })
  expect({ events: events.length, actions: actionsOf(events) }).toEqual({ events: 12, actions: 3 })
})
