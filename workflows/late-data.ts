import { isCancellation, proxyActivities, setHandler } from '@temporalio/workflow'
import { markdownText } from '../src/base/text.ts'
import { moreDataSignal, type LateDataActivities, type LateDataInput } from './messages.ts'

// A try ends within two minutes. The rest is for the database.
const tryTimeoutMs = 180_000
// The activity gives up after a day.
const giveUpAfterMs = 25 * 3_600_000

/** Brings data that was found after a delivery has succeeded to the copy at the destination, without the bytes of the document. */
export async function lateData({ documentId, destination }: LateDataInput): Promise<'updated' | 'gone'> {
  const { updateCopy } = proxyActivities<LateDataActivities>({
    startToCloseTimeout: tryTimeoutMs,
    scheduleToCloseTimeout: giveUpAfterMs,
    summary: `to ${markdownText(destination.name)}`,
    // For failures of the relay itself. A try that fails says when the next one is due.
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  })
  let isMore = false
  setHandler(moreDataSignal, () => void (isMore = true), {
    description: 'The relay sends it when more was found. It may be sent at any time.',
  })
  for (;;) {
    isMore = false
    try {
      const outcome = await updateCopy({ documentId, destination })
      if (!isMore) return outcome
    } catch (thrown) {
      if (!isMore || isCancellation(thrown)) throw thrown
    }
  }
}
