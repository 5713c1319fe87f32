import { randomUUID } from 'node:crypto'
import { repeatAttempts } from '../../activities/delivery.ts'
import { deliveryWorkflowId } from '../../workflows/ids.ts'
import { type AttemptInput, type DeliveryActivities, type DocumentInput, retrySignal } from '../../workflows/messages.ts'
import { documentOptions, searchAttributes } from '../../workflows/options.ts'
import { share } from '../support/share.ts'
import { startTemporalServer } from '../support/temporal-server.ts'
import { withWorker } from '../support/temporal.ts'

// Much less than the default of 4,096 events, so that short tests reach it.
const suggestedAfterEvents = 30
// The attempts before the last one. Each has eleven events, so they require a new run.
const earlierAttempts = 8

const env = share(await startTemporalServer([`limit.historyCount.suggestContinueAsNew=${suggestedAfterEvents}`]))

const inputOf = (documentId = randomUUID()): DocumentInput => ({
  documentId,
  workspace: 'acme/invoices',
  repoId: 'Z1',
  docId: '005056B5A3F21EEFA9C1D04F7B6E8C11',
  compId: 'data',
  destinations: [{ id: 'archive', name: 'archive', connector: 'webhook' }],
  policy: { maxRetries: 3, ttlMs: 3_600_000, initialIntervalMs: 100, maxIntervalMs: 100 },
  retryWindowMs: 3_600_000,
  attemptTimeoutMs: 60_000,
  heartbeatTimeoutMs: 30_000,
})

test('a delivery that waits many times continues in a new run with the same round, parent and search attributes', async () => {
  const input = inputOf()
  const attempts: AttemptInput[] = []
  const activities: DeliveryActivities = {
    attemptDelivery: async (attempt) => {
      attempts.push(attempt)
      if (attempts.length === 1) return { status: 'retrying', delayMs: 100, failures: 1, error: 'HTTP 503' }
      return attempts.length <= earlierAttempts ? { status: 'waiting', askAgainMs: 10 } : { status: 'delivered' }
    },
    recordCancellation: async () => 'failed',
    recordTermination: async () => undefined,
  }
  await withWorker(env, repeatAttempts(activities), async (taskQueue) => {
    const handle = await env.client.workflow.start('document', { ...documentOptions(input, { registered: true }), taskQueue })
    expect(await handle.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])

    const delivery = await env.client.workflow.getHandle(deliveryWorkflowId(input, 'archive')).describe()
    expect(delivery.runId).not.toBe(delivery.raw.workflowExecutionInfo?.firstRunId)
    expect(delivery.historyLength).toBeLessThan(2 * suggestedAfterEvents)
    expect(delivery.parentExecution?.workflowId).toBe(handle.workflowId)
    expect(delivery.typedSearchAttributes.get(searchAttributes.workspace)).toBe('acme/invoices')
    expect(delivery.typedSearchAttributes.get(searchAttributes.status)).toBe('delivered')
  })
  expect(attempts).toHaveLength(earlierAttempts + 1)
  expect(new Set(attempts.map(({ round }) => round)).size).toBe(1)
})

test('a retry requested during a round starts after the round, once, even if a new run begins meanwhile', async () => {
  const input = inputOf()
  const newPolicy = { ...input.policy, maxRetries: 7 }
  const request = { requestId: 'in mid-round', policy: newPolicy }
  const handle = env.client.workflow.getHandle(deliveryWorkflowId(input, 'archive'))
  const attempts: AttemptInput[] = []
  const activities: DeliveryActivities = {
    attemptDelivery: async (attempt) => {
      attempts.push(attempt)
      if (attempts.length === 2) await handle.signal(retrySignal, request)
      // A new run has begun by the last attempt. It receives the same request again.
      if (attempts.length < earlierAttempts) return { status: 'waiting', askAgainMs: 10 }
      if (attempts.length === earlierAttempts) await handle.signal(retrySignal, request)
      return attempts.length === earlierAttempts ? { status: 'failed', error: 'HTTP 403' } : { status: 'delivered' }
    },
    recordCancellation: async () => 'failed',
    recordTermination: async () => undefined,
  }
  await withWorker(env, activities, async (taskQueue) => {
    const document = await env.client.workflow.start('document', { ...documentOptions(input, { registered: true }), taskQueue })
    expect(await document.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
    const { raw, runId } = await handle.describe()
    expect(runId).not.toBe(raw.workflowExecutionInfo?.firstRunId)
  })
  expect(attempts.map(({ policy }) => policy.maxRetries)).toEqual([...Array.from({ length: earlierAttempts }, () => 3), 7])
})
