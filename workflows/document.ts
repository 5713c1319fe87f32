import {
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowFailure,
  condition,
  executeChild,
  isCancellation,
  proxyActivities,
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
  type EnrichmentActivities,
  type EnrichmentOutcome,
  type EnrichmentTerms,
} from './messages.ts'
import { deliveryOptions, searchAttributes } from './options.ts'
import { unknownOutcome } from './unknown-outcome.ts'

// The calls of one try end within two minutes. The rest is for the database.
const tryTimeoutMs = 180_000

/**
 * Starts the enrichment of a document and waits for it, up to a limit. It may go on after that: Temporal repeats it, without an event for
 * each try.
 */
const enrichFirst = async (
  documentId: string,
  { waitMs, lateMs }: EnrichmentTerms,
): Promise<{ outcome: EnrichmentOutcome | undefined; ended: Promise<unknown> }> => {
  const { enrich } = proxyActivities<EnrichmentActivities>({
    startToCloseTimeout: tryTimeoutMs,
    scheduleToCloseTimeout: waitMs + lateMs + tryTimeoutMs,
    summary: 'business data',
    // For failures of the relay itself. A try that has not found everything says when the next one is due.
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  })
  let hasEnded = false
  let outcome: EnrichmentOutcome | undefined
  const enriching = async () => {
    try {
      outcome = await enrich({ documentId, waitMs, lateMs })
    } catch (thrown) {
      if (isCancellation(thrown)) throw thrown
      // The deliveries do not depend on it.
    } finally {
      hasEnded = true
    }
  }
  const ended = enriching()
  // Awaited later, and the workflow may end before.
  ended.catch(() => {})
  if (waitMs > 0) await condition(() => hasEnded, waitMs, { summary: 'for business data' })
  return { outcome, ended }
}

/**
 * Delivers one document with one child workflow per destination. It stays open while any child runs or waits for a manual retry, and while
 * the document is enriched.
 */
export async function document(input: DocumentInput): Promise<DeliveryState[]> {
  const { destinations, enrichment, ...received } = input
  const { recordCancellation, recordTermination } = controlActivities<DeliveryActivities>({ startToCloseTimeout: '30s' })
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

  const recordCancellations = () =>
    CancellationScope.nonCancellable(() =>
      Promise.all(destinations.map(({ id }) => recordCancellation({ documentId: input.documentId, destinationId: id }))),
    )
  const enriched =
    enrichment &&
    (await enrichFirst(input.documentId, enrichment).catch(async (thrown: unknown) => {
      // No delivery has begun, so none records its cancellation itself.
      if (isCancellation(thrown)) await recordCancellations()
      throw thrown
    }))
  const { businessObject = received.businessObject } = enriched?.outcome ?? {}
  const terms = { ...received, ...(businessObject !== undefined && { businessObject }) }

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

  await enriched?.ended

  // A held delivery has not failed: its release starts a workflow of its own. So has one that the reconciler has begun again.
  const undelivered = destinations.filter(({ id }) => ['failed', 'cancelled'].includes(states.get(id)!.status))
  if (undelivered.length === 0 || overall() === 'delivered') return [...states.values()]
  const summary = undelivered.map(({ id, name }) => `${name} (${describe(states.get(id)!)})`).join(', ')
  throw ApplicationFailure.nonRetryable(`not delivered to ${summary}`, 'DocumentNotDelivered', [...states.values()])
}

const describe = ({ status, error }: DeliveryState) => `${status}${error === undefined ? '' : `: ${error}`}`

/** As Markdown. */
const shown = ({ status, error }: DeliveryState) => `**${status}**${error === undefined ? '' : `: ${markdownText(error)}`}`
