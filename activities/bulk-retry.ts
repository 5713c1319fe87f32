import { heartbeat } from '@temporalio/activity'
import type { BulkPage } from '../src/delivery/bulk-page.ts'
import type { BulkRetries } from '../src/delivery/bulk-retry.ts'
import type { BulkRetryActivities } from '../workflows/messages.ts'

// One activity per page: few events for many documents, and a short wait until a cancellation takes effect.
const pageDocuments = 200

interface BulkRetryDeps {
  bulkPage: BulkPage
  bulkRetries: Pick<BulkRetries, 'cancel'>
}

export const createBulkRetryActivities = ({ bulkPage, bulkRetries }: BulkRetryDeps): BulkRetryActivities => ({
  retryNextPage: async ({ bulkRetryId }) => {
    const bulkRetry = await bulkPage(bulkRetryId, pageDocuments, () => heartbeat())
    // The bulk retry was deleted together with its workspace.
    if (!bulkRetry) return { status: 'cancelled', matchedDocuments: 0, retriedDocuments: 0, retriedDeliveries: 0 }
    const { status, matchedDocuments, retriedDocuments, retriedDeliveries } = bulkRetry
    return { status, matchedDocuments, retriedDocuments, retriedDeliveries }
  },

  recordBulkRetryCancellation: async ({ bulkRetryId }) => {
    await bulkRetries.cancel(bulkRetryId, { type: 'system', userId: null })
  },
})
