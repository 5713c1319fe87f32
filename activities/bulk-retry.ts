import { heartbeat } from '@temporalio/activity'
import type { BulkRetries } from '../src/delivery/bulk-retry.ts'
import type { BulkRetryActivities } from '../workflows/messages.ts'

// One activity per page: few events for many documents, and a short wait until a cancellation takes effect.
const pageDocuments = 200

interface BulkRetryDeps {
  bulkRetries: Pick<BulkRetries, 'retryPage' | 'cancel'>
}

export const createBulkRetryActivities = ({ bulkRetries }: BulkRetryDeps): BulkRetryActivities => ({
  retryNextPage: async ({ bulkRetryId }) => {
    const bulkRetry = await bulkRetries.retryPage(bulkRetryId, pageDocuments, () => heartbeat())
    // The bulk retry was deleted together with its workspace.
    if (!bulkRetry) return { status: 'cancelled', matchedDocuments: 0, retriedDocuments: 0, retriedDeliveries: 0 }
    const { status, matchedDocuments, retriedDocuments, retriedDeliveries } = bulkRetry
    return { status, matchedDocuments, retriedDocuments, retriedDeliveries }
  },

  recordBulkRetryCancellation: async ({ bulkRetryId }) => {
    await bulkRetries.cancel(bulkRetryId, { type: 'system', userId: null })
  },
})
