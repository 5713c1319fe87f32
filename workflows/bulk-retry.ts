import { CancellationScope, continueAsNew, isCancellation, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import type { BulkRetryActivities, BulkRetryInput, BulkRetryProgress } from './messages.ts'

const { retryNextPage, recordBulkRetryCancellation } = proxyActivities<BulkRetryActivities>({
  startToCloseTimeout: '5m',
  heartbeatTimeout: '30s',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
})

/** Retries what failed, page by page. Where it has come to stands in the database: a run that goes on for another needs nothing of it. */
export async function bulkRetry(input: BulkRetryInput): Promise<BulkRetryProgress> {
  const bulkRetryRef = { bulkRetryId: input.bulkRetryId }
  try {
    for (;;) {
      const progress = await retryNextPage(bulkRetryRef)
      const { status, matchedDocuments, retriedDocuments, retriedDeliveries } = progress
      setCurrentDetails(`**${status}**: ${retriedDocuments} of ${matchedDocuments} documents, ${retriedDeliveries} deliveries`)
      if (status !== 'running') return progress
      if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof bulkRetry>(input)
    }
  } catch (thrown) {
    if (isCancellation(thrown)) await CancellationScope.nonCancellable(() => recordBulkRetryCancellation(bulkRetryRef))
    throw thrown
  }
}
