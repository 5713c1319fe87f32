import { activityInfo } from '@temporalio/activity'
import type { attemptRetry } from '../workflows/messages.ts'

/**
 * Returns until when a retry that the database has recorded counts as due in this run of an activity: a timestamp, or `infinity`. If the
 * answer of a run is lost, Temporal repeats the activity after the interval of its retry policy, which may be earlier than the answer said.
 * The time for which Temporal has planned a run is a proof that a retry is due if its clock is ahead of the one of the database. What an
 * operator has asked for in Temporal is due: a reset counts the attempts from 1 again, and `update-options` changes the policy.
 * @param retry the policy that the workflow asks for, if an operator may change it
 */
export const dueBy = (retry?: typeof attemptRetry): string => {
  const { attempt, scheduledTimestampMs, currentAttemptScheduledTimestampMs, retryPolicy = retry } = activityInfo()
  const isReset = attempt === 1 && currentAttemptScheduledTimestampMs > scheduledTimestampMs
  const isChanged = Object.entries(retry ?? {}).some(([name, value]) => retryPolicy?.[name as keyof typeof attemptRetry] !== value)
  return isReset || isChanged ? 'infinity' : new Date(currentAttemptScheduledTimestampMs).toISOString()
}
