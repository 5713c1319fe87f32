import { randomUUID } from 'node:crypto'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import {
  deliveryWorkflowId,
  documentOptions,
  searchAttributes,
  signals,
  type Activities,
  type AttemptInput,
  type DocumentInput,
} from '../../workflows/messages.ts'
import { startTemporalDevServer, withWorker } from '../support/temporal.ts'

// The server suggests a new run much sooner here than it does by default, after 4,096 events.
const suggestedAfterEvents = 30
// a round has eleven events: long enough for a new run
const rounds = 8

let env: TestWorkflowEnvironment
beforeAll(async () => {
  env = await startTemporalDevServer([`limit.historyCount.suggestContinueAsNew=${suggestedAfterEvents}`])
})
afterAll(() => env.teardown())

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
  searchAttributes: true,
})

test('a delivery that waits and waits goes on in a new run, with its round, its document and its attributes', async () => {
  const input = inputOf()
  const attempts: AttemptInput[] = []
  const activities: Activities = {
    attemptDelivery: async (attempt) => {
      attempts.push(attempt)
      if (attempts.length === 1) return { status: 'retrying', inMs: 100, failures: 1, error: 'HTTP 503' }
      return attempts.length <= rounds ? { status: 'waiting', inMs: 10 } : { status: 'delivered' }
    },
    recordCancellation: async () => {},
    recordTermination: async () => {},
  }
  await withWorker(env, activities, async (taskQueue) => {
    const handle = await env.client.workflow.start('document', { ...documentOptions(input), taskQueue })
    expect(await handle.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])

    const delivery = await env.client.workflow.getHandle(deliveryWorkflowId(input.documentId, 'archive')).describe()
    expect(delivery.runId).not.toBe(delivery.raw.workflowExecutionInfo?.firstRunId)
    expect(delivery.historyLength).toBeLessThan(2 * suggestedAfterEvents)
    expect(delivery.parentExecution?.workflowId).toBe(handle.workflowId)
    expect(delivery.typedSearchAttributes.get(searchAttributes.workspace)).toBe('acme/invoices')
    expect(delivery.typedSearchAttributes.get(searchAttributes.status)).toBe('delivered')
  })
  expect(attempts.map(({ failures }) => failures)).toEqual([0, ...Array.from({ length: rounds }, () => 1)])
  expect(attempts.at(-1)?.waits).toBe(rounds - 1)
  const remaining = attempts.map(({ remainingMs }) => remainingMs)
  expect(remaining).toEqual(remaining.toSorted((a, b) => b - a))
})

test('a retry that comes in mid-round waits for the end of the round, through a new run too, and counts once', async () => {
  const input = inputOf()
  const fresh = { ...input.policy, maxRetries: 7 }
  const request = { requestId: 'in mid-round', policy: fresh }
  const handle = env.client.workflow.getHandle(deliveryWorkflowId(input.documentId, 'archive'))
  const attempts: AttemptInput[] = []
  const activities: Activities = {
    attemptDelivery: async (attempt) => {
      attempts.push(attempt)
      if (attempts.length === 2) await handle.signal(signals.retry, request)
      // by its end there is a new run, which is sent the same once more
      if (attempts.length < rounds) return { status: 'waiting', inMs: 10 }
      if (attempts.length === rounds) await handle.signal(signals.retry, request)
      return attempts.length === rounds ? { status: 'failed', error: 'HTTP 403' } : { status: 'delivered' }
    },
    recordCancellation: async () => {},
    recordTermination: async () => {},
  }
  await withWorker(env, activities, async (taskQueue) => {
    const document = await env.client.workflow.start('document', { ...documentOptions(input), taskQueue })
    expect(await document.result()).toEqual([{ destinationId: 'archive', status: 'delivered' }])
    const { raw, runId } = await handle.describe()
    expect(runId).not.toBe(raw.workflowExecutionInfo?.firstRunId)
  })
  expect(attempts.map(({ policy }) => policy.maxRetries)).toEqual([...Array.from({ length: rounds }, () => 3), 7])
})
