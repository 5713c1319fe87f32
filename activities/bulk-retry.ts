import { heartbeat } from '@temporalio/activity'
import type { BulkRetries } from '../src/db/bulk-retries.ts'
import type { BulkRetryActivities } from '../workflows/messages.ts'

// a page is one activity of its workflow: few events for many documents, and a cancellation is not far away
const pageDocuments = 200

export const createBulkRetryActivities = ({ bulkRetries }: { bulkRetries: BulkRetries }): BulkRetryActivities => ({
  retryNextPage: async ({ bulkRetryId }) => {
    const bulkRetry = await bulkRetries.retryPage(bulkRetryId, pageDocuments, heartbeat)
    // with its workspace
    if (!bulkRetry) return { status: 'cancelled', matchedDocuments: 0, retriedDocuments: 0, retriedDeliveries: 0 }
    const { status, matchedDocuments, retriedDocuments, retriedDeliveries } = bulkRetry
    return { status, matchedDocuments, retriedDocuments, retriedDeliveries }
  },

  recordBulkRetryCancellation: ({ bulkRetryId }) => bulkRetries.cancel(bulkRetryId),
})
