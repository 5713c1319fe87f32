import { ApplicationFailure, activityInfo, cancellationSignal } from '@temporalio/activity'
import type { LateData } from '../src/delivery/late-data.ts'
import type { LateDataActivities } from '../workflows/messages.ts'
import { dueBy } from './due.ts'

export const createLateDataActivities = ({ update }: Pick<LateData, 'update'>): LateDataActivities => ({
  updateCopy: async (copy) => {
    const { attempt, scheduledTimestampMs, currentAttemptScheduledTimestampMs } = activityInfo()
    const elapsedMs = currentAttemptScheduledTimestampMs - scheduledTimestampMs
    const outcome = await update(copy, { attempt, elapsedMs, dueBy: dueBy() }, cancellationSignal())
    if (outcome.status === 'updated' || outcome.status === 'gone') return outcome.status
    // Temporal repeats the activity, and shows operators what is wrong.
    throw ApplicationFailure.create({
      message: outcome.error,
      type: 'late_data_not_brought',
      category: 'BENIGN',
      ...(outcome.status === 'failed' ? { nonRetryable: true } : { nextRetryDelay: outcome.delayMs }),
    })
  },
})
