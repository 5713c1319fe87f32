import { continueAsNew, defineSignal, proxyActivities, setCurrentDetails, setHandler } from '@temporalio/workflow'
import { signals, type BatchActivities, type BatchInput } from './messages.ts'

const againSignal = defineSignal(signals.again)

const { workOffBatch } = proxyActivities<BatchActivities>({
  startToCloseTimeout: '5m',
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
})

// six events a batch or so: far below what the server warns of
const batchesPerRun = 100

const pastTense = { release: 'released', cancel: 'cancelled' } as const

/**
 * Releases or cancels the deliveries of a connection or destination, a batch at a time until none is left. There is one for a subject at a
 * time: whoever asks while it is at work makes it look once more before it ends.
 */
export async function workOff({ subject, done }: BatchInput): Promise<string> {
  let again = false
  setHandler(againSignal, () => {
    again = true
  })
  let total = done
  for (let run = 0; run < batchesPerRun; run += 1) {
    again = false
    const { count, stopped } = await workOffBatch(subject)
    total += count
    const told = `${pastTense[subject.action]} ${total}${stopped ? `, then stopped: ${stopped}` : ''}`
    setCurrentDetails(told)
    // the handler may have run during the batch
    if (count === 0 && !(again as boolean)) return told
  }
  return continueAsNew<typeof workOff>({ subject, done: total })
}
