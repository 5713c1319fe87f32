import { CancellationScope, continueAsNew, isCancellation, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import { controlActivities } from './control.ts'
import type { BulkRetryActivities, BulkRetryInput, BulkRetryProgress } from './messages.ts'
import { unknownOutcome } from './unknown-outcome.ts'

/** Retries the failed deliveries that a filter matches, page by page. The database keeps the progress, so a new run needs none of it. */
export async function bulkRetry(input: BulkRetryInput): Promise<BulkRetryProgress> {
  const { bulkRetryId } = input
  const { retryNextPage, recordBulkRetryCancellation } = controlActivities<BulkRetryActivities>({
    startToCloseTimeout: '5m',
    heartbeatTimeout: '30s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '15s' },
  })
  try {
    for (;;) {
      const progress = await retryNextPage({ bulkRetryId })
      const { status, matchedDocuments, retriedDocuments, retriedDeliveries } = progress
      setCurrentDetails(`**${status}**: ${retriedDocuments} of ${matchedDocuments} documents, ${retriedDeliveries} deliveries`)
      if (status === 'completed' || status === 'cancelled') return progress
      if (status !== 'running') throw unknownOutcome(progress)
      if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof bulkRetry>(input)
    }
  } catch (thrown) {
    if (isCancellation(thrown)) await CancellationScope.nonCancellable(() => recordBulkRetryCancellation({ bulkRetryId }))
    throw thrown
  }
}
