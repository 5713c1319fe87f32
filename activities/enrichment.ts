import { ApplicationFailure, activityInfo, cancellationSignal } from '@temporalio/activity'
import type { Enrich } from '../src/enrichment/enrich.ts'
import type { EnrichmentActivities } from '../workflows/messages.ts'

export const createEnrichmentActivities = (enrich: Enrich): EnrichmentActivities => ({
  enrich: async ({ documentId, ...terms }) => {
    const { scheduledTimestampMs, currentAttemptScheduledTimestampMs } = activityInfo()
    const elapsedMs = currentAttemptScheduledTimestampMs - scheduledTimestampMs
    const outcome = await enrich(documentId, { ...terms, elapsedMs }, cancellationSignal())
    if (outcome.status !== 'pending') return outcome
    // Temporal repeats the activity, and shows operators what is missing.
    throw ApplicationFailure.create({
      message: outcome.error,
      type: 'enrichment_pending',
      category: 'BENIGN',
      nextRetryDelay: outcome.delayMs,
    })
  },
})
