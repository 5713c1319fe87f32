// The bare shape: a document, a child per destination, one activity each that does nothing. What the relay is held against.
import { executeChild, proxyActivities } from '@temporalio/workflow'

const { deliverNothing } = proxyActivities<{ deliverNothing(): Promise<void> }>({ startToCloseTimeout: '1m' })

export async function bareDocument(destinations: number): Promise<void> {
  await Promise.all(Array.from({ length: destinations }, () => executeChild(bareDelivery)))
}

export async function bareDelivery(): Promise<void> {
  await deliverNothing()
}
