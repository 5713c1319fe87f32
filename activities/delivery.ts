import { activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity'
import { deliver, type DeliverDeps } from '../src/delivery/deliver.ts'
import type { Progress } from '../src/delivery/progress.ts'
import { transition } from '../src/delivery/transition.ts'
import type { DeliveryActivities } from '../workflows/messages.ts'

export const createDeliveryActivities = (deps: DeliverDeps): DeliveryActivities => ({
  attemptDelivery: (input) => {
    const { heartbeatDetails, scheduledTimestampMs } = activityInfo()
    const lastHeartbeat: Partial<Progress> | null | undefined = heartbeatDetails
    // The clock of the server may differ from that of the worker.
    const waitedMs = Math.max(0, Date.now() - scheduledTimestampMs)
    return deliver(deps, input, { signal: cancellationSignal(), lastHeartbeat: lastHeartbeat ?? undefined, waitedMs, heartbeat })
  },

  recordCancellation: (delivery) => transition(deps.db, 'cancel', delivery),

  recordTermination: ({ error, ...delivery }) => transition(deps.db, 'terminate', delivery, error),
})
