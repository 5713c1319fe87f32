import { continueAsNew, setCurrentDetails, setHandler } from '@temporalio/workflow'
import { markdownText } from '../src/base/text.ts'
import { controlActivities } from './control.ts'
import { checkAgainSignal, type BatchActivities, type BatchInput } from './messages.ts'

// A batch takes about six events, so a run stays far below the history size that Temporal warns about.
const batchesPerRun = 100

const pastTense = { release: 'released', cancel: 'cancelled', attempt: 'attempted' } as const

const processAll = async (
  { subject, processed, position: start }: BatchInput,
  continueRun: (input: BatchInput) => Promise<never>,
): Promise<string> => {
  const { processBatch } = controlActivities<BatchActivities>({
    startToCloseTimeout: '5m',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '15s' },
  })
  let checkAgain = false
  setHandler(
    checkAgainSignal,
    () => {
      checkAgain = true
    },
    { description: 'The relay sends it to let the workflow look for deliveries once more before it ends. It may be sent at any time.' },
  )
  let total = processed
  let position = start
  for (let batch = 0; batch < batchesPerRun; batch += 1) {
    checkAgain = false
    const { count, stopped, position: end } = await (position === undefined ? processBatch(subject) : processBatch(subject, position))
    position = end ?? position
    total += count
    const summary = `${pastTense[subject.action]} ${total} deliveries${stopped ? `, then stopped: ${stopped}` : ''}`
    setCurrentDetails(markdownText(summary))
    // A signal may have arrived during the batch.
    if (count === 0 && !(checkAgain as boolean)) return summary
  }
  return continueRun({ subject, processed: total, ...(position !== undefined && { position }) })
}

/** Releases the deliveries that a connection held, batch by batch. There is at most one run per connection at a time. */
export function releaseDeliveries(input: BatchInput): Promise<string> {
  return processAll(input, (next) => continueAsNew<typeof releaseDeliveries>(next))
}

/** Cancels the open deliveries of a deleted destination, or those that a deleted connection held, batch by batch. */
export function cancelDeliveries(input: BatchInput): Promise<string> {
  return processAll(input, (next) => continueAsNew<typeof cancelDeliveries>(next))
}

/** Has the deliveries of a destination attempted that wait for their next attempt, batch by batch. There is at most one run per destination at a time. */
export function attemptDeliveries(input: BatchInput): Promise<string> {
  return processAll(input, (next) => continueAsNew<typeof attemptDeliveries>(next))
}
