// Baseline: a workflow per document, a child workflow per destination, and one activity each that does nothing. It has
// the shape of the relay's workflows, so its throughput is the limit that Temporal sets.
import { executeChild, proxyActivities } from '@temporalio/workflow'
import { markdownText } from '../../src/base/text.ts'
import type { DeliveryInput, DeliveryState, DocumentInput } from '../../workflows/messages.ts'
import { deliveryOptions } from '../../workflows/options.ts'

const { deliverNothing } = proxyActivities<{ deliverNothing(): Promise<void> }>({ startToCloseTimeout: '1m' })

export async function bareDocument(destinations: number): Promise<void> {
  await Promise.all(Array.from({ length: destinations }, () => executeChild(bareDelivery)))
}

export async function bareDelivery(): Promise<void> {
  await deliverNothing()
}

/** The same workflows with all that operators see of the relay's, and with its inputs and results: search attributes, summaries, priorities. */
export async function shownDocument({ destinations, ...terms }: DocumentInput): Promise<DeliveryState[]> {
  return Promise.all(
    destinations.map((destination) => {
      const options = deliveryOptions({ ...terms, destination }, { registered: true })
      return executeChild(shownDelivery, { ...options, parentClosePolicy: 'REQUEST_CANCEL' })
    }),
  )
}

export async function shownDelivery(input: DeliveryInput): Promise<DeliveryState> {
  const { destination, documentId, workspace, policy, attemptTimeoutMs, heartbeatTimeoutMs } = input
  const { deliverNothing: deliver } = proxyActivities<{ deliverNothing(attempt: object): Promise<void> }>({
    startToCloseTimeout: '1m',
    scheduleToCloseTimeout: policy.ttlMs,
    heartbeatTimeout: heartbeatTimeoutMs,
    summary: `to ${markdownText(destination.name)}`,
  })
  await deliver({ documentId, destinationId: destination.id, workspace, policy, attemptTimeoutMs })
  return { destinationId: destination.id, status: 'delivered' }
}
