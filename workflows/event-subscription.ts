import { continueAsNew, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import { markdownText } from '../src/base/text.ts'
import type { EventSubscriptionActivities, EventSubscriptionInput } from './messages.ts'

// A run sends for 20 seconds, and ends with the request that is under way.
const runTimeoutMs = 80_000

/** Sends the events of a subscription until all are sent. An attempt that fails is repeated by Temporal, without an event of the history. */
export async function eventSubscription(input: EventSubscriptionInput): Promise<string> {
  const { sendEvents } = proxyActivities<EventSubscriptionActivities>({
    startToCloseTimeout: runTimeoutMs,
    // The events of a worker that is lost go on after this time.
    heartbeatTimeout: '30s',
    summary: markdownText(input.name),
    // For failures of the relay itself. An attempt that fails says when the next one is due.
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  })
  for (;;) {
    const status = await sendEvents({ subscriptionId: input.subscriptionId })
    setCurrentDetails(`**${status}**`)
    if (status !== 'more') return status
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof eventSubscription>(input)
  }
}
