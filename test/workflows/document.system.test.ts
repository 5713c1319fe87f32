import { WorkflowFailedError } from '@temporalio/client'
import { ApplicationFailure, WorkflowIdReusePolicy } from '@temporalio/common'
import { repeatAttempts } from '../../activities/delivery.ts'
import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { type DeliveryActivities, type DocumentInput, retrySignal } from '../../workflows/messages.ts'
import { deliveryOptions, documentOptions } from '../../workflows/options.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { documentTo, hour, scriptedActivities } from './scripted-activities.ts'

const env = share(await createTimeSkippingTemporal())

const start = (input: DocumentInput, taskQueue: string) =>
  env.client.workflow.start('document', { ...documentOptions(input, { registered: true }), taskQueue })

/** Sends what a retry of a delivery sends whose workflow has closed. */
const startAgain = ({ destinations, ...common }: DocumentInput, taskQueue: string) =>
  env.client.workflow.signalWithStart('delivery', {
    ...deliveryOptions({ ...common, destination: destinations[0]! }, { registered: true }),
    taskQueue,
    workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
    signal: retrySignal,
    signalArgs: [{ requestId: 'second', policy: common.policy }],
  })

const eventsOf = async (workflowId: string) => (await env.client.workflow.getHandle(workflowId).fetchHistory()).events ?? []

describe('the document workflow', () => {
  test('delivers with one attempt and at most 14 events, and 11 events in the delivery workflow', async () => {
    const input = documentTo('archive')
    const { activities, attempts } = scriptedActivities(() => 'delivered')
    await withWorker(env, activities, async (taskQueue) => {
      const handle = await start(input, taskQueue)
      expect(await handle.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
      expect((await eventsOf(handle.workflowId)).length).toBeLessThanOrEqual(14)
      expect((await eventsOf(deliveryWorkflowId(input, 'archive'))).length).toBeLessThanOrEqual(11)
    })
    expect(attempts).toHaveLength(1)
  })

  test('delivers an appended document again in a workflow of its own', async () => {
    const input = documentTo('archive')
    const { activities, attempts } = scriptedActivities(() => 'delivered')
    await withWorker(env, activities, async (taskQueue) => {
      await (await start(input, taskQueue)).result()
      const again = await start({ ...input, revision: 2 }, taskQueue)
      expect(again.workflowId).toBe(`document/acme/invoices/Z1/${input.docId}/data/${input.documentId}@2`)
      expect(await again.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
    })
    expect(attempts).toHaveLength(2)
  })

  test('makes one more attempt if the time of the activity ends before the budget, which begins with the first attempt', async () => {
    const input = documentTo('archive')
    // Temporal repeats the activity for the time to live and one attempt: 4 hours and 3 minutes.
    input.policy = { ...input.policy, ttlMs: 3 * hour }
    const startedAt: number[] = []
    const attemptDelivery: DeliveryActivities['attemptDelivery'] = async () => {
      startedAt.push(Date.now())
      return startedAt.length < 4
        ? { status: 'retrying', delayMs: 2 * hour, failures: startedAt.length, error: 'HTTP 503' }
        : { status: 'delivered' }
    }
    const { activities } = scriptedActivities(() => 'delivered')
    await withWorker(env, { ...activities, ...repeatAttempts({ attemptDelivery }) }, async (taskQueue) => {
      const handle = await start(input, taskQueue)
      expect(await handle.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
      const { events = [] } = await env.client.workflow.getHandle(deliveryWorkflowId(input, 'archive')).fetchHistory()
      expect(events!.filter(({ activityTaskScheduledEventAttributes: scheduled }) => scheduled)).toHaveLength(2)
      const tookHours = (Number(events!.at(-1)!.eventTime!.seconds) - Number(events![0]!.eventTime!.seconds)) / 3_600
      expect(Math.round(tookHours)).toBe(6)
    })
    expect(startedAt).toHaveLength(4)
  })

  test('fails at once after a permanent error, and a retry starts the closed delivery workflow again', async () => {
    const input = { ...documentTo('archive'), retryWindowMs: hour }
    const { activities, attempts } = scriptedActivities((_, attempt) => (attempt === 1 ? 'refused' : 'delivered'))
    await withWorker(env, activities, async (taskQueue) => {
      const failed = await (await start(input, taskQueue)).result().catch((thrown: unknown) => thrown)
      expect(failed).toBeInstanceOf(WorkflowFailedError)
      expect((failed as WorkflowFailedError).cause?.message).toBe('not delivered to archive (failed: credentials refused)')
      const closed = env.client.workflow.getHandle(deliveryWorkflowId(input, 'archive'))
      await expect(closed.result()).rejects.toMatchObject({
        cause: {
          message: 'credentials refused. Save valid credentials, then retry the document.',
        },
      })
      expect(attempts).toHaveLength(1)

      expect(await (await startAgain(input, taskQueue)).result()).toMatchObject({ status: 'delivered' })
    })
    expect(attempts).toHaveLength(2)
  })

  test('does not wait for a manual retry of a delivery that is one of many failures: it closes at once, and a retry starts it again', async () => {
    const input = documentTo('archive', 'mail')
    const { activities, attemptsTo } = scriptedActivities((id, attempt) =>
      id === 'archive' && attempt === 1 ? 'one of many' : 'delivered',
    )
    await withWorker(env, activities, async (taskQueue) => {
      const handle = await start(input, taskQueue)
      await expect(handle.result()).rejects.toMatchObject({ cause: { message: 'not delivered to archive (failed: credentials refused)' } })
      const events = await eventsOf(deliveryWorkflowId(input, 'archive'))
      expect(events.filter(({ timerStartedEventAttributes: timer }) => timer)).toEqual([])
      expect(await (await startAgain(input, taskQueue)).result()).toMatchObject({ status: 'delivered' })
    })
    expect([attemptsTo('archive').length, attemptsTo('mail').length]).toEqual([2, 1])
  })

  test('repeats an activity that fails because of the relay itself, without use of the retry budget', async () => {
    const input = documentTo('archive')
    input.policy = { ...input.policy, maxRetries: 0 }
    const { activities, attempts } = scriptedActivities(() => 'delivered')
    let outages = 3
    const attemptDelivery: DeliveryActivities['attemptDelivery'] = async (attempt) => {
      if (outages-- > 0) throw ApplicationFailure.retryable('the database is unavailable')
      return activities.attemptDelivery(attempt)
    }
    await withWorker(env, { ...activities, attemptDelivery }, async (taskQueue) => {
      expect(await (await start(input, taskQueue)).result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
    })
    expect(attempts).toHaveLength(1)
  })

  test('waits for a busy destination for longer than the time to live, in one round of attempts', async () => {
    const input = documentTo('archive')
    input.policy = { ...input.policy, maxRetries: 1, ttlMs: 3 * hour }
    const answers = [...Array.from({ length: 30 }, () => 'busy' as const), 'down', 'busy', 'delivered'] as const
    const { activities, attempts } = scriptedActivities((_, attempt) => answers[attempt - 1]!)
    await withWorker(env, activities, async (taskQueue) => {
      expect(await (await start(input, taskQueue)).result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
    })
    expect(attempts).toHaveLength(33)
    expect(new Set(attempts.map((attempt) => attempt.input.round)).size).toBe(1)
    const waits = attempts.slice(1).map((attempt, index) => Math.round((attempt.atMs - attempts[index]!.atMs) / hour))
    expect(waits).toEqual(Array.from({ length: 32 }, () => 1))
  })

  test('does not fail because of a delivery that was begun without it, and records no termination of that', async () => {
    const input = documentTo('begun')
    const { activities, attemptsTo, terminated } = scriptedActivities(() => 'down')
    await withWorker(env, activities, async (taskQueue) => {
      const delivery = await startAgain(input, taskQueue)
      await until('the delivery has begun', () => attemptsTo('begun').length > 0)
      // The first attempt may end before the document looks.
      const open = expect.stringMatching(/^(pending|retrying)$/)
      expect(await (await start(input, taskQueue)).result()).toMatchObject([{ destinationId: 'begun', status: open }])
      expect((await delivery.describe()).status.name).toBe('RUNNING')
      await delivery.cancel()
      await expect(delivery.result()).rejects.toThrow(WorkflowFailedError)
    })
    expect(terminated).toEqual([])
  })
})
