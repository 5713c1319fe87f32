import { setTimeout as delay } from 'node:timers/promises'
import { WorkflowFailedError } from '@temporalio/client'
import type { BulkRetryActivities, BulkRetryProgress } from '../../workflows/messages.ts'
import { bulkRetryOptions } from '../../workflows/options.ts'
import { share } from '../support/share.ts'
import { createTimeSkippingTemporal, withWorker } from '../support/temporal.ts'
import { until } from '../support/until.ts'

const env = share(await createTimeSkippingTemporal())

/** Creates activities that retry `count` pages and record only how often they were called. */
const createActivities = (count: number) => {
  const calls = { pages: 0, cancellations: 0 }
  const activities: BulkRetryActivities = {
    retryNextPage: async (): Promise<BulkRetryProgress> => {
      calls.pages += 1
      await delay(count === Infinity ? 300 : 0)
      return {
        status: calls.pages < count ? 'running' : 'completed',
        matchedDocuments: 200 * count,
        retriedDocuments: 200 * calls.pages,
        retriedDeliveries: 200 * calls.pages,
      }
    },
    recordBulkRetryCancellation: async () => {
      calls.cancellations += 1
    },
  }
  return { calls, activities }
}

const start = (bulkRetryId: string, taskQueue: string) =>
  env.client.workflow.start('bulkRetry', {
    ...bulkRetryOptions({ bulkRetryId, workspace: 'acme/invoices' }, { registered: true }),
    taskQueue,
  })

describe('a bulk retry', () => {
  test('is recorded as cancelled if an operator cancels its workflow', async () => {
    const { calls, activities } = createActivities(Infinity)
    await withWorker(env, activities, async (taskQueue) => {
      const handle = await start('endless', taskQueue)
      await until('the first page was requested', () => calls.pages > 0)
      await handle.cancel()
      await expect(handle.result()).rejects.toThrow(WorkflowFailedError)
    })
    expect(calls.cancellations).toBe(1)
  })
})
