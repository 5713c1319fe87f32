import { DeliveryError } from '../connector.ts'
import type { FixedErrorCode, OpenErrorCode } from '../error-codes.ts'
import { toTargetAnswer, type CloudResponse } from './cloud-api.ts'
import { codeRows, finalStatusRows, type FinalAnswer } from './final-answers.ts'
import { isPermanentStatus } from './final-statuses.ts'

// Statuses that cloud services also use for conditions that pass. They get no condition that a 412 could refer to.
const temporaryStatuses = [401, 404, 410, 412, 417, 428]

/**
 * Returns rows for the answers after which nothing is sent again.
 * @param denials what no time changes of those with 403, by their codes
 */
export const cloudFinalAnswers = (service: string, denials: Readonly<Record<string, string>>, more: FinalAnswer[] = []): FinalAnswer[] => [
  ...codeRows(denials, '403 '),
  ...more,
  {
    answer: `${finalStatusRows([...temporaryStatuses, 403])
      .map(({ answer }) => answer)
      .join(', ')}, with an error of ${service}`,
    meaning: 'what they mean [at a webhook](webhook.md#answers-that-are-final)',
  },
]

/** What a service says with a refusal. */
export interface CloudRefusal {
  /** The codes of the reason. None if the service has not said it. */
  codes: string[]
  message: string
  waitMs: number | undefined
}

/** Makes the errors for a refusal by a cloud service, each with the reason that the service names. */
export const refusalErrors = (service: string, response: CloudResponse, { codes, message, waitMs }: CloudRefusal) => {
  const { status } = response
  const reason = [codes[0] ?? '', message].filter((part) => part !== '').join(': ')
  const withReason = (sentence: string) => (reason ? `${sentence} (${reason})` : sentence)
  const details = { retryAfterMs: waitMs, answer: toTargetAnswer(response) }
  return {
    refusal: (code: FixedErrorCode, sentence: string) => new DeliveryError(code, withReason(sentence), details),
    openRefusal: (code: OpenErrorCode, sentence: string, permanent: boolean) =>
      new DeliveryError(code, withReason(sentence), { permanent, ...details }),
    /** Returns the error for a refusal without a code of its own. @param isPassing true if what the service says passes */
    otherRefusal: (isPassing: boolean): DeliveryError => {
      const isFinal = !isPassing && !temporaryStatuses.includes(status) && isPermanentStatus(status)
      if (isFinal && codes.length === 0) {
        const sentence = `something between the relay and ${service} answered ${status}, because the answer is not one of ${service}; check the proxies`
        return new DeliveryError('answer_unreadable', sentence, details)
      }
      return new DeliveryError(`http_${status}`, withReason(`${service} answered ${status}`), {
        permanent: isFinal && status !== 403,
        ...details,
      })
    },
  }
}
