// Baseline: a workflow per document, a child workflow per destination, and one activity each that does nothing. It has
// the shape of the relay's workflows, so its throughput is the limit that Temporal sets.
import { executeChild, proxyActivities } from '@temporalio/workflow'

const { deliverNothing } = proxyActivities<{ deliverNothing(): Promise<void> }>({ startToCloseTimeout: '1m' })

export async function bareDocument(destinations: number): Promise<void> {
  await Promise.all(Array.from({ length: destinations }, () => executeChild(bareDelivery)))
}

export async function bareDelivery(): Promise<void> {
  await deliverNothing()
}
