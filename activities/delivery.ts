import { activityInfo, cancellationSignal, getClient, heartbeat, log } from '@temporalio/activity'
import { messageOf } from '../src/base/errors.ts'
import { deliver, type DeliverDeps } from '../src/delivery/deliver.ts'
import type { Progress } from '../src/delivery/progress.ts'
import { recordCancellation, recordTermination } from '../src/delivery/transition.ts'
import { documentOfDelivery } from '../workflows/ids.ts'
import {
  attemptFailedSignal,
  attemptRetry,
  deliveryChangedSignal,
  type AttemptInput,
  type DeliveryActivities,
} from '../workflows/messages.ts'
import { dueBy } from './due.ts'
import { repeat } from './repeat.ts'

export const createDeliveryActivities = (deps: DeliverDeps): DeliveryActivities => ({
  attemptDelivery: (input) => {
    const { heartbeatDetails } = activityInfo()
    const lastHeartbeat: Partial<Progress> | null | undefined = heartbeatDetails
    return deliver(deps, input, {
      signal: cancellationSignal(),
      lastHeartbeat: lastHeartbeat ?? undefined,
      dueBy: dueBy(attemptRetry),
      heartbeat,
    })
  },

  recordCancellation: (delivery) => recordCancellation(deps.db, delivery),

  recordTermination: (delivery) => recordTermination(deps.db, delivery),
})

/** Returns the id of the workflow that the running activity belongs to. */
export const runningWorkflowId = (): string | undefined => activityInfo().workflowExecution?.workflowId

/** Lets Temporal repeat the attempts of a round, and tells the workflows of the first one that fails. */
export const repeatAttempts = <Activities extends Pick<DeliveryActivities, 'attemptDelivery'>>(activities: Activities): Activities => ({
  ...activities,
  attemptDelivery: async (input: AttemptInput) => {
    const outcome = await activities.attemptDelivery(input)
    if (outcome.status === 'retrying' && outcome.failures <= 1) await announceFailure(input, outcome)
    return repeat(outcome)
  },
})

type Retrying = Extract<Awaited<ReturnType<DeliveryActivities['attemptDelivery']>>, { status: 'retrying' }>

/**
 * Tells the workflows of the delivery and of its document that attempts are repeated, so that operators find them by their search
 * attributes. It costs ten events, once per round. A failure to tell them delays nothing.
 */
const announceFailure = async (
  { destinationId, revision }: AttemptInput,
  { error, errorCode, businessObject }: Retrying,
): Promise<void> => {
  const { workflowId } = activityInfo().workflowExecution!
  const { workflow } = getClient()
  const failure = { error, ...(errorCode !== undefined && { errorCode }), ...(businessObject !== undefined && { businessObject }) }
  const told = await Promise.allSettled([
    workflow.getHandle(workflowId).signal(attemptFailedSignal, failure),
    // The workflow of the document may be closed: a retry can start a delivery on its own.
    workflow
      .getHandle(documentOfDelivery(workflowId, revision))
      .signal(deliveryChangedSignal, { destinationId, status: 'retrying', error }),
  ])
  for (const { reason } of told.filter((each) => each.status === 'rejected')) {
    log.info('a workflow was not told of a failed attempt', { reason: messageOf(reason) })
  }
}
