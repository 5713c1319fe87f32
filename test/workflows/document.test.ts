import { WorkflowFailedError } from '@temporalio/client'
import { ApplicationFailure, WorkflowIdReusePolicy } from '@temporalio/common'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import {
  deliveryOptions,
  deliveryWorkflowId,
  documentOptions,
  signals,
  type Activities,
  type DocumentInput,
  type DeliveryState,
} from '../../workflows/messages.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'
import { documentTo, hour, scripted } from './scripted.ts'

let env: TestWorkflowEnvironment

beforeAll(async () => {
  env = await createTimeSkippingTemporal()
})
afterAll(async () => {
  await env.teardown()
})

const start = (input: DocumentInput, taskQueue: string) => env.client.workflow.start('document', { ...documentOptions(input), taskQueue })

const retry = (input: DocumentInput, destinationId: string, requestId: string) =>
  env.client.workflow
    .getHandle(deliveryWorkflowId(input.documentId, destinationId))
    .signal(signals.retry, { requestId, policy: input.policy })

type Handle = Awaited<ReturnType<typeof start>>

const statusOf = async (handle: Handle, destinationId: string) =>
  (await handle.query<DeliveryState[]>('status')).find((state) => state.destinationId === destinationId)!.status

const untilFailed = async (handle: Handle, destinationId: string) => {
  for (let waited = 0; waited < 200; waited += 1) {
    if ((await statusOf(handle, destinationId)) === 'failed') return
    await env.sleep('30 minutes')
  }
  throw new Error(`${destinationId} never failed`)
}

const eventsOf = async (workflowId: string) => (await env.client.workflow.getHandle(workflowId).fetchHistory()).events ?? []

describe('a document on its way', () => {
  it('reaches its destination by the straight path: one attempt, 14 and 11 events', async () => {
    const input = documentTo('archive')
    const { activities, attempts } = scripted(() => 'delivered')
    await withWorker(env, activities, async (taskQueue) => {
      const handle = await start(input, taskQueue)
      expect(await handle.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
      expect((await eventsOf(handle.workflowId)).length).toBeLessThanOrEqual(14)
      expect((await eventsOf(deliveryWorkflowId(input.documentId, 'archive'))).length).toBeLessThanOrEqual(11)
    })
    expect(attempts).toHaveLength(1)
  })

  it('survives three failures over hours of back-off, in milliseconds of test time', async () => {
    const input = documentTo('archive')
    const { activities, attempts } = scripted((_, attempt) => (attempt <= 3 ? 'down' : 'delivered'))
    await withWorker(env, activities, async (taskQueue) => {
      const startedAt = performance.now()
      expect(await (await start(input, taskQueue)).result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
      expect(performance.now() - startedAt).toBeLessThan(10_000)
    })
    const waits = attempts.slice(1).map((attempt, index) => Math.round((attempt.atMs - attempts[index]!.atMs) / hour))
    expect(waits).toEqual([1, 2, 4])
  })

  it('goes to each destination independently: one that is down does not hold the others up', async () => {
    const input = documentTo('good', 'bad', 'better')
    const { activities, of } = scripted((destination, attempt) => (destination === 'bad' && attempt <= 11 ? 'down' : 'delivered'))
    await withWorker(env, activities, async (taskQueue) => {
      const handle = await start(input, taskQueue)
      await untilFailed(handle, 'bad')
      expect(await handle.query('status')).toEqual([
        { destinationId: 'good', status: 'delivered' },
        { destinationId: 'bad', status: 'failed', error: 'HTTP 503' },
        { destinationId: 'better', status: 'delivered' },
      ])
      await retry(input, 'bad', 'first')
      await retry(input, 'bad', 'first')
      expect(await handle.result()).toContainEqual({ destinationId: 'bad', status: 'delivered' })
    })
    expect(of('good')).toHaveLength(1)
    expect(of('better')).toHaveLength(1)
    expect(of('bad')).toHaveLength(12)
  })

  it('goes again, by a workflow of its own, where it was appended to', async () => {
    const input = documentTo('archive')
    const { activities, attempts } = scripted(() => 'delivered')
    await withWorker(env, activities, async (taskQueue) => {
      await (await start(input, taskQueue)).result()
      const again = await start({ ...input, revision: 2 }, taskQueue)
      expect(again.workflowId).toBe(`document/${input.documentId}@2`)
      expect(await again.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
    })
    expect(attempts).toHaveLength(2)
  })

  it('gives up after the first try and maxRetries more', async () => {
    const input = { ...documentTo('archive'), retryWindowMs: hour }
    input.policy = { ...input.policy, maxRetries: 2 }
    const { activities, attempts } = scripted(() => 'down')
    await withWorker(env, activities, async (taskQueue) => {
      await expect((await start(input, taskQueue)).result()).rejects.toThrow(WorkflowFailedError)
    })
    expect(attempts).toHaveLength(3)
  })

  it('gives up where the time to live is over before the retries are', async () => {
    const input = { ...documentTo('archive'), retryWindowMs: hour }
    input.policy = { ...input.policy, maxRetries: 100, ttlMs: 12 * hour }
    const { activities, attempts } = scripted(() => 'down')
    await withWorker(env, activities, async (taskQueue) => {
      await expect((await start(input, taskQueue)).result()).rejects.toThrow(WorkflowFailedError)
    })
    // tries at 0, 1, 3, 7 and 11 hours; the next would be at 15
    expect(attempts).toHaveLength(5)
  })

  it('fails at once on what no retry can mend, and starts anew when asked after its workflow has closed', async () => {
    const input = { ...documentTo('archive'), retryWindowMs: hour }
    const { activities, attempts } = scripted((_, attempt) => (attempt === 1 ? 'refused' : 'delivered'))
    await withWorker(env, activities, async (taskQueue) => {
      const failed = await (await start(input, taskQueue)).result().catch((thrown: unknown) => thrown)
      expect(failed).toBeInstanceOf(WorkflowFailedError)
      expect((failed as WorkflowFailedError).cause?.message).toBe('not delivered to archive (failed: credentials refused)')
      const closed = env.client.workflow.getHandle(deliveryWorkflowId(input.documentId, 'archive'))
      await expect(closed.result()).rejects.toMatchObject({
        cause: {
          message: 'credentials refused. What to do: save new credentials at destination archive, then retry the document',
        },
      })
      expect(attempts).toHaveLength(1)

      const { destinations, ...shared } = input
      const again = await env.client.workflow.signalWithStart('delivery', {
        ...deliveryOptions({ ...shared, destination: destinations[0]! }),
        taskQueue,
        workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
        signal: signals.retry,
        signalArgs: [{ requestId: 'second', policy: input.policy }],
      })
      expect(await again.result()).toMatchObject({ status: 'delivered' })
    })
    expect(attempts).toHaveLength(2)
  })

  it('rides out failures on our own side: the server runs the attempt again, the budget is untouched', async () => {
    const input = documentTo('archive')
    input.policy = { ...input.policy, maxRetries: 0 }
    const { activities, attempts } = scripted(() => 'delivered')
    let outages = 3
    const attemptDelivery: Activities['attemptDelivery'] = async (attempt) => {
      if (outages-- > 0) throw ApplicationFailure.retryable('the database is away')
      return activities.attemptDelivery(attempt)
    }
    await withWorker(env, { ...activities, attemptDelivery }, async (taskQueue) => {
      expect(await (await start(input, taskQueue)).result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
    })
    expect(attempts).toHaveLength(1)
  })

  it('waits for a busy destination at no cost of its retries, and its time to live begins with the first try', async () => {
    const input = documentTo('archive')
    input.policy = { ...input.policy, maxRetries: 1, ttlMs: 3 * hour }
    const answers = [...Array.from({ length: 30 }, () => 'busy' as const), 'down', 'busy', 'delivered'] as const
    const { activities, attempts } = scripted((_, attempt) => answers[attempt - 1]!)
    await withWorker(env, activities, async (taskQueue) => {
      expect(await (await start(input, taskQueue)).result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
    })
    expect(attempts.map((attempt) => attempt.input.failures)).toEqual([...Array.from({ length: 31 }, () => 0), 1, 1])
    expect(attempts.map((attempt) => attempt.input.waits ?? 0).slice(28)).toEqual([28, 29, 30, 0, 1])
    expect(attempts.slice(0, 31).every((attempt) => attempt.input.remainingMs === 3 * hour)).toBe(true)
    expect(Math.round(attempts[31]!.input.remainingMs / hour)).toBe(2)
  })

  it('records a cancellation, and leaves the other deliveries alone', async () => {
    const input = documentTo('good', 'stuck')
    const { activities, cancelled, of } = scripted((destination) => (destination === 'stuck' ? 'down' : 'delivered'))
    await withWorker(env, activities, async (taskQueue) => {
      const handle = await start(input, taskQueue)
      await until('an attempt at the one that is down', () => of('stuck').length > 0)
      await env.client.workflow.getHandle(deliveryWorkflowId(input.documentId, 'stuck')).cancel()
      await expect(handle.result()).resolves.toEqual([
        { destinationId: 'good', status: 'delivered' },
        { destinationId: 'stuck', status: 'cancelled' },
      ])
    })
    expect(cancelled).toEqual(['stuck'])
  })
})
