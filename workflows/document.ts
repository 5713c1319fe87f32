import {
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowFailure,
  executeChild,
  isCancellation,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow'
import { markdownText } from '../src/base/text.ts'
import { deliveryStatuses, documentStatus, endErrors, type DocumentStatus } from '../src/domain/delivery-states.ts'
import { controlActivities } from './control.ts'
import { delivery } from './delivery.ts'
import {
  deliveryChangedSignal,
  documentStatusQuery,
  type DeliveryActivities,
  type DeliveryState,
  type DestinationRef,
  type DocumentInput,
} from './messages.ts'
import { deliveryOptions, searchAttributes } from './options.ts'
import { unknownOutcome } from './unknown-outcome.ts'

/**
 * Delivers one document with one child workflow per destination. It stays open while any child runs or waits for a manual retry.
 */
export async function document(input: DocumentInput): Promise<DeliveryState[]> {
  const { destinations, ...terms } = input
  const { recordTermination } = controlActivities<DeliveryActivities>({ startToCloseTimeout: '30s' })
  const registered = workflowInfo().typedSearchAttributes.get(searchAttributes.workspace) !== undefined
  const states = new Map<string, DeliveryState>(destinations.map(({ id }) => [id, { destinationId: id, status: 'pending' }]))
  const overall = () => documentStatus([...states.values()].map(({ status }) => status))
  let published: DocumentStatus = 'pending'

  const applyDeliveryState = (state: DeliveryState) => {
    // The state may belong to a destination of another revision of this document.
    if (!states.has(state.destinationId)) return
    if (!deliveryStatuses.includes(state.status)) throw unknownOutcome(state)
    states.set(state.destinationId, state)
    setCurrentDetails(destinations.map(({ id, name }) => `- ${markdownText(name)}: ${shown(states.get(id)!)}`).join('\n'))
    const status = overall()
    // On the straight path from pending to delivered, "completed" says everything, and an upsert would cost an event.
    if (status === published || (published === 'pending' && status === 'delivered')) return
    published = status
    if (registered) upsertSearchAttributes([{ key: searchAttributes.status, value: status }])
  }
  setHandler(documentStatusQuery, () => [...states.values()], { description: 'The state of each delivery of the document.' })
  setHandler(deliveryChangedSignal, applyDeliveryState, { description: 'A delivery reports its state with it. Do not send it.' })

  const deliverTo = async (destination: DestinationRef): Promise<DeliveryState> => {
    try {
      const options = deliveryOptions({ ...terms, destination }, { registered })
      return await executeChild(delivery, { ...options, parentClosePolicy: 'REQUEST_CANCEL' })
    } catch (thrown) {
      if (CancellationScope.current().consideredCancelled) throw thrown
      // A delivery that was cancelled, or whose retry window has closed, has reported its end before.
      const reported = states.get(destination.id)!
      if (isCancellation(thrown) || reported.status === 'failed') return reported
      // Temporal has lost the start of the delivery, so it was begun without this workflow.
      if (!(thrown instanceof ChildWorkflowFailure)) return reported
      const { runId } = thrown.execution
      const status = await recordTermination({
        documentId: input.documentId,
        destinationId: destination.id,
        ...(runId && { runId }),
      })
      return { destinationId: destination.id, ...(status ? { status } : { status: 'failed', error: endErrors.workflow_terminated }) }
    }
  }
  await Promise.all(destinations.map(async (destination) => applyDeliveryState(await deliverTo(destination))))

  // A held delivery has not failed: its release starts a workflow of its own. So has one that the reconciler has begun again.
  const undelivered = destinations.filter(({ id }) => ['failed', 'cancelled'].includes(states.get(id)!.status))
  if (undelivered.length === 0 || overall() === 'delivered') return [...states.values()]
  const summary = undelivered.map(({ id, name }) => `${name} (${describe(states.get(id)!)})`).join(', ')
  throw ApplicationFailure.nonRetryable(`not delivered to ${summary}`, 'DocumentNotDelivered', [...states.values()])
}

const describe = ({ status, error }: DeliveryState) => `${status}${error === undefined ? '' : `: ${error}`}`

/** Returns the state as Markdown. */
const shown = ({ status, error }: DeliveryState) => `**${status}**${error === undefined ? '' : `: ${markdownText(error)}`}`
