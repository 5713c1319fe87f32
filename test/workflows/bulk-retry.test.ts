import { setTimeout as delay } from 'node:timers/promises'
import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { WorkflowFailedError } from '@temporalio/client'
import { bulkRetryOptions, type BulkRetryActivities, type BulkRetryProgress } from '../../workflows/messages.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'

let env: TestWorkflowEnvironment

beforeAll(async () => {
  env = await createTimeSkippingTemporal()
})
afterAll(async () => {
  await env.teardown()
})

/** As many pages as the test says; what the database would do is counted. */
const pages = (count: number) => {
  const seen = { pages: 0, cancellations: 0 }
  const activities: BulkRetryActivities = {
    retryNextPage: async (): Promise<BulkRetryProgress> => {
      seen.pages += 1
      await delay(count === Infinity ? 300 : 0)
      return {
        status: seen.pages < count ? 'running' : 'completed',
        matchedDocuments: 200 * count,
        retriedDocuments: 200 * seen.pages,
        retriedDeliveries: 200 * seen.pages,
      }
    },
    recordBulkRetryCancellation: async () => {
      seen.cancellations += 1
    },
  }
  return { seen, activities }
}

const start = (bulkRetryId: string, taskQueue: string) =>
  env.client.workflow.start('bulkRetry', {
    ...bulkRetryOptions({ bulkRetryId, workspace: 'acme/invoices', searchAttributes: true }),
    taskQueue,
  })

describe('a bulk retry', () => {
  it('goes page by page until nothing is left', async () => {
    const { seen, activities } = pages(5)
    await withWorker(env, activities, async (taskQueue) => {
      const handle = await start('five', taskQueue)
      expect(handle.workflowId).toBe('bulk-retry/five')
      expect(await handle.result()).toMatchObject({ status: 'completed', retriedDocuments: 1_000 })
    })
    expect(seen).toEqual({ pages: 5, cancellations: 0 })
  })

  it('is recorded as cancelled where an operator cancels it', async () => {
    const { seen, activities } = pages(Infinity)
    await withWorker(env, activities, async (taskQueue) => {
      const handle = await start('endless', taskQueue)
      await until('a page', () => seen.pages > 0)
      await handle.cancel()
      await expect(handle.result()).rejects.toThrow(WorkflowFailedError)
    })
    expect(seen.cancellations).toBe(1)
  })
})
