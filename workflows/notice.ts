import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
} from '@temporalio/workflow'
import { markdownText } from '../src/base/text.ts'
import { controlActivities } from './control.ts'
import { attemptRetry, type NoticeActivities, type NoticeInput } from './messages.ts'
import { unknownOutcome } from './unknown-outcome.ts'

// The rest of an attempt's time is for the database.
const spareMs = 30_000

/**
 * Sends a notice. The attempts are one activity, which Temporal repeats until the destination accepts the notice or the retry settings allow no
 * further attempt.
 */
export async function notice({ noticeId, attemptTimeoutMs }: NoticeInput): Promise<string> {
  const { sendNotice } = proxyActivities<NoticeActivities>({ startToCloseTimeout: attemptTimeoutMs + spareMs, retry: attemptRetry })
  try {
    const outcome = await sendNotice({ noticeId, attemptTimeoutMs })
    if (outcome.status !== 'delivered' && outcome.status !== 'cancelled') throw unknownOutcome(outcome)
    setCurrentDetails(`**${outcome.status}**`)
    return outcome.status
  } catch (thrown) {
    if (isCancellation(thrown)) {
      const { recordNoticeCancellation } = controlActivities<NoticeActivities>({ startToCloseTimeout: '1m', retry: attemptRetry })
      await CancellationScope.nonCancellable(() => recordNoticeCancellation({ noticeId }))
    } else if (thrown instanceof ActivityFailure && thrown.cause instanceof ApplicationFailure) {
      const { message } = thrown.cause
      setCurrentDetails(`**failed**: ${markdownText(message)}`)
      throw ApplicationFailure.nonRetryable(`not delivered: ${message}`, 'NoticeNotDelivered')
    }
    throw thrown
  }
}
