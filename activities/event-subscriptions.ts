import { ApplicationFailure, cancellationSignal } from '@temporalio/activity'
import type { SendEvents } from '../src/observe/send-events.ts'
import type { EventSubscriptionActivities } from '../workflows/messages.ts'
import { dueBy } from './due.ts'
import { withHeartbeats } from './heartbeats.ts'

// A sixth of the heartbeat timeout of the workflow.
const heartbeatMs = 5_000

export const createEventSubscriptionActivities = (sendEvents: SendEvents): EventSubscriptionActivities => ({
  sendEvents: async ({ subscriptionId }) => {
    const outcome = await withHeartbeats(heartbeatMs, () => sendEvents(subscriptionId, cancellationSignal(), dueBy()))
    if (outcome.status !== 'retrying') return outcome.status
    // Temporal repeats the activity, and shows operators what is wrong.
    throw ApplicationFailure.create({
      message: outcome.error,
      type: 'events_not_sent',
      category: 'BENIGN',
      nextRetryDelay: outcome.delayMs,
    })
  },
})
