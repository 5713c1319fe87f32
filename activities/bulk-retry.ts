import { heartbeat } from '@temporalio/activity'
import type { BulkRetries } from '../src/db/bulk-retries.ts'
import type { OutboxMessage } from '../src/db/outbox.ts'
import type { BulkRetryActivities } from '../workflows/messages.ts'

// a page is one activity of its workflow: few events for many documents, and a cancellation is not far away
const pageDocuments = 200

interface BulkRetryDeps {
  bulkRetries: BulkRetries
  /** Resolves once these are sent, or left to the sweep. */
  sendAll(messages: OutboxMessage[]): Promise<void>
}

export const createBulkRetryActivities = ({ bulkRetries, sendAll }: BulkRetryDeps): BulkRetryActivities => ({
  retryNextPage: async ({ bulkRetryId }) => {
    const bulkRetry = await bulkRetries.retryPage(bulkRetryId, pageDocuments, async (messages) => {
      heartbeat()
      await sendAll(messages)
    })
    // with its workspace
    if (!bulkRetry) return { status: 'cancelled', matchedDocuments: 0, retriedDocuments: 0, retriedDeliveries: 0 }
    const { status, matchedDocuments, retriedDocuments, retriedDeliveries } = bulkRetry
    return { status, matchedDocuments, retriedDocuments, retriedDeliveries }
  },

  recordBulkRetryCancellation: ({ bulkRetryId }) => bulkRetries.cancel(bulkRetryId),
})
