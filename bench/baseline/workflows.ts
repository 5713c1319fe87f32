// Baseline: a workflow per document, a child workflow per destination, and one activity each that does nothing. It has
// the shape of the relay's workflows, so its throughput is the limit that Temporal sets.
import { executeChild, proxyActivities, workflowInfo } from '@temporalio/workflow'
import { partsOfDelivery, type Part } from './parts.ts'

const { deliverNothing } = proxyActivities<{ deliverNothing(input?: object): Promise<void> }>({ startToCloseTimeout: '1m' })

/** @param parts of the relay's workflows that this one and its children also have */
export async function bareDocument(destinations: number, parts: Part[] = [], _input?: object): Promise<void> {
  const startDelivery = () => {
    if (parts.length === 0) return executeChild(bareDelivery)
    const { options, input } = partsOfDelivery(parts, workflowInfo().workflowId)
    return executeChild(bareDelivery, { ...options, args: input ? [input] : [] })
  }
  await Promise.all(Array.from({ length: destinations }, startDelivery))
}

export async function bareDelivery(input?: object): Promise<void> {
  await (input ? deliverNothing(input) : deliverNothing())
}
