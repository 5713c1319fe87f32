import { ApplicationFailure, CancellationScope, isCancellation, proxyActivities, setCurrentDetails, sleep } from '@temporalio/workflow'
import { markdownText } from '../src/base/text.ts'
import { controlActivities } from './control.ts'
import type { NoticeActivities, NoticeInput } from './messages.ts'
import { unknownOutcome } from './unknown-outcome.ts'

// The rest of an attempt's time is for the database.
const spareMs = 30_000

const retry = { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '15s' } as const

/** Sends a notice, again and again until its destination accepts it or the retry settings allow no further attempt. */
export async function notice({ noticeId, attemptTimeoutMs }: NoticeInput): Promise<string> {
  const { recordNoticeCancellation } = controlActivities<NoticeActivities>({ startToCloseTimeout: '1m', retry })
  const { sendNotice } = proxyActivities<NoticeActivities>({ startToCloseTimeout: attemptTimeoutMs + spareMs, retry })
  try {
    for (;;) {
      const outcome = await sendNotice({ noticeId, attemptTimeoutMs })
      setCurrentDetails('error' in outcome ? `**${outcome.status}**: ${markdownText(outcome.error)}` : `**${outcome.status}**`)
      if (outcome.status === 'failed') throw ApplicationFailure.nonRetryable(`not delivered: ${outcome.error}`, 'NoticeNotDelivered')
      if (outcome.status === 'delivered' || outcome.status === 'cancelled') return outcome.status
      if (outcome.status !== 'retrying') throw unknownOutcome(outcome)
      await sleep(outcome.delayMs)
    }
  } catch (thrown) {
    if (isCancellation(thrown)) await CancellationScope.nonCancellable(() => recordNoticeCancellation({ noticeId }))
    throw thrown
  }
}
