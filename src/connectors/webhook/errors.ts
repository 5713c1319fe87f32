import { STATUS_CODES } from 'node:http'
import { DeliveryError, type TargetAnswer } from '../connector.ts'
import { finalStatusRows, isFinalAnswer } from '../shared/final-answers.ts'
import { waitOf, type AnswerHeaders } from '../shared/retry-after.ts'

/** The answers after which nothing is sent again, unless they say that they pass: by a time to wait, or in words. */
export const webhookFinalAnswers = finalStatusRows()

/** Maps a response that is no success. */
export const webhookError = (
  { statusCode, headers }: { statusCode: number; headers: AnswerHeaders },
  answer: TargetAnswer,
): DeliveryError => {
  const status = `the target answered ${statusCode} ${STATUS_CODES[statusCode] ?? ''}`.trimEnd()
  if (statusCode >= 300 && statusCode < 400) {
    const location = typeof headers.location === 'string' && URL.canParse(headers.location) ? ` to ${withoutQuery(headers.location)}` : ''
    return new DeliveryError(`http_${statusCode}`, `${status}, a redirect${location}, which the relay does not follow; correct url`, {
      permanent: false,
      answer,
    })
  }
  const waitMs = waitOf(headers, new Date())
  const isPage = /^text\/html\b/i.test(String(headers['content-type'] ?? ''))
  const permanent = isFinalAnswer({ status: statusCode, waitMs, text: answer.body ?? '', isPage })
  const details = { permanent, retryAfterMs: waitMs, answer }
  return statusCode === 401
    ? new DeliveryError('credentials_refused', `${status}: it refuses the credentials of the destination`, details)
    : new DeliveryError(`http_${statusCode}`, status, details)
}

/** Returns an address without its query, which may contain a key. */
const withoutQuery = (url: string) => {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}
