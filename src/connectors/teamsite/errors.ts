import { DeliveryError } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import { parseObject, toTargetAnswer, type CloudResponse } from '../shared/cloud-api.ts'
import { isPermanentStatus, retryAfterMs } from '../shared/http.ts'

// Statuses that Graph also uses for conditions that pass.
const temporaryStatuses = new Set([404, 410, 416, 423])

/** Maps a refusal by Microsoft Graph. Retries everything that is not certainly permanent. */
export const graphError = (response: CloudResponse): DeliveryError => {
  const { status, headers, text } = response
  const { code, message } = (parseObject(text).error ?? {}) as { code?: unknown; message?: unknown }
  const reason = [code, message].filter((part) => typeof part === 'string' && part !== '').join(': ')
  const withReason = (sentence: string) => (reason ? `${sentence} (${reason})` : sentence)
  const details = { retryAfterMs: retryAfterMs(headers['retry-after'], new Date()), answer: toTargetAnswer(response) }
  const isThrottled = details.retryAfterMs !== undefined
  const refusal = (ourCode: FixedErrorCode, sentence: string) => new DeliveryError(ourCode, withReason(sentence), details)

  if (status === 401) {
    return refusal(
      'token_refused',
      'Graph refused the token; check that the application has the permission Sites.Selected with the consent of an administrator',
    )
  }
  if (status === 507 || code === 'quotaLimitReached') return refusal('quota_exceeded', 'the storage of the site is full')
  if (status === 403 && !isThrottled) {
    return new DeliveryError(
      'access_denied',
      withReason('the application has no permission to write; grant it the role write on this site (Sites.Selected)'),
      { permanent: true, ...details },
    )
  }
  if (status === 423) return refusal('locked', 'the file is locked; somebody has it checked out or open')
  return new DeliveryError(`http_${status}`, withReason(`Graph answered ${status}`), {
    permanent: isPermanentStatus(status) && !temporaryStatuses.has(status) && !isThrottled,
    ...details,
  })
}
