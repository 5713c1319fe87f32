import { ApplicationFailure, activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity'
import { deliver, type DeliverDeps } from '../src/delivery/deliver.ts'
import type { Progress } from '../src/delivery/progress.ts'
import { recordTermination, transition } from '../src/delivery/transition.ts'
import type { AttemptInput, DeliveryActivities } from '../workflows/messages.ts'

export const createDeliveryActivities = (deps: DeliverDeps): DeliveryActivities => ({
  attemptDelivery: (input) => {
    const { heartbeatDetails, scheduledTimestampMs } = activityInfo()
    const lastHeartbeat: Partial<Progress> | null | undefined = heartbeatDetails
    // The clock of the server may differ from that of the worker.
    const waitedMs = Math.max(0, Date.now() - scheduledTimestampMs - (input.delayMs ?? 0))
    return deliver(deps, input, { signal: cancellationSignal(), lastHeartbeat: lastHeartbeat ?? undefined, waitedMs, heartbeat })
  },

  recordCancellation: (delivery) => transition(deps.db, 'cancel', delivery),

  recordTermination: ({ error, ...delivery }) => recordTermination(deps.db, delivery, error),
})

/**
 * Makes an attempt with a delay wait until it is due. Its first run tells Temporal when to run it again: the server waits without an event
 * in the history, and shows the time as that of the pending activity.
 */
export const postponeAttempts = <Activities extends Pick<DeliveryActivities, 'attemptDelivery'>>(activities: Activities): Activities => ({
  ...activities,
  attemptDelivery: async (input: AttemptInput) => {
    // By the number of the run, and not by times: the clock of the server may differ from that of the worker.
    if (input.delayMs !== undefined && activityInfo().attempt === 1) {
      throw ApplicationFailure.create({
        message: 'The attempt is not due yet.',
        type: 'NotDue',
        nextRetryDelay: input.delayMs,
        category: 'BENIGN',
      })
    }
    return activities.attemptDelivery(input)
  },
})
