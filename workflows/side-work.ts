import { proxyActivities, setCurrentDetails, setHandler, workflowInfo } from '@temporalio/workflow'
import { markdownText } from '../src/base/text.ts'
import { sideQueueOf } from './ids.ts'
import { checkAgainSignal, type SideWorkActivities, type SideWorkInput } from './messages.ts'

// A run begins work for 20 seconds, as a rule, and ends with what is under way: a call to a system that hangs takes up to two minutes.
const runTimeoutMs = 240_000

/**
 * Works through what is due in a queue, for a limited time, and ends. The dispatcher starts the workflow again when something is due, also what
 * is left or has failed: the database knows when that is. So nothing waits here, and queues take turns.
 */
const workThrough = async (activity: keyof SideWorkActivities, input: SideWorkInput): Promise<string> => {
  const { queueId, workspaceId, name } = input
  const { [activity]: run } = proxyActivities<SideWorkActivities>({
    taskQueue: sideQueueOf(workflowInfo().taskQueue),
    startToCloseTimeout: runTimeoutMs,
    // The work of a worker that is lost goes on after this time.
    heartbeatTimeout: '30s',
    summary: markdownText(name),
    // Policy for failures of the relay itself.
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  })
  let isCalled = false
  setHandler(checkAgainSignal, () => void (isCalled = true), {
    description: 'The relay sends it when something is due. It may be sent at any time.',
  })
  for (;;) {
    isCalled = false
    const outcome = await run({ queueId, workspaceId })
    setCurrentDetails(`**${outcome.status}**${'error' in outcome ? `: ${markdownText(outcome.error)}` : ''}`)
    // A call that came during the run may be younger than its outcome.
    if (!isCalled) return outcome.status
  }
}

/** Sends the events of a subscription. */
export const eventSubscription = (input: SideWorkInput): Promise<string> => workThrough('sendEvents', input)

/** Fetches the business data of the documents of an enrichment. */
export const enrichment = (input: SideWorkInput): Promise<string> => workThrough('enrichDocuments', input)

/** Brings data that was found after deliveries had succeeded to the copies at a destination, without the bytes of the documents. */
export const lateData = (input: SideWorkInput): Promise<string> => workThrough('bringLateData', input)
