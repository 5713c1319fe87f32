import { DeliveryError } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import { parseObject, toTargetAnswer, type CloudResponse } from '../shared/cloud-api.ts'
import { isPermanentStatus, retryAfterMs } from '../shared/http.ts'

const rateLimits = new Set(['userRateLimitExceeded', 'rateLimitExceeded', 'dailyLimitExceeded', 'sharingRateLimitExceeded'])
const storageLimits = new Set(['storageQuotaExceeded', 'quotaExceeded', 'teamDriveStorageQuotaExceeded'])
const countLimits = new Set([
  'numChildrenInNonRootLimitExceeded',
  'teamDriveFileLimitExceeded',
  'teamDriveHierarchyTooDeep',
  'activeItemCreationLimitExceeded',
])

/** Maps a refusal by Google Drive. Retries everything that is not certainly permanent. */
export const driveError = (response: CloudResponse, subject?: string): DeliveryError => {
  const { status, headers, text } = response
  const { message, errors } = (parseObject(text).error ?? {}) as { message?: unknown; errors?: unknown }
  const [first] = (Array.isArray(errors) ? errors : []) as { reason?: unknown }[]
  const name = typeof first?.reason === 'string' ? first.reason : ''
  const reason = [name, message].filter((part) => typeof part === 'string' && part !== '').join(': ')
  const withReason = (sentence: string) => (reason ? `${sentence} (${reason})` : sentence)
  const details = { retryAfterMs: retryAfterMs(headers['retry-after'], new Date()), answer: toTargetAnswer(response) }
  const isThrottled = details.retryAfterMs !== undefined
  const refusal = (code: FixedErrorCode, sentence: string) => new DeliveryError(code, withReason(sentence), details)

  if (status === 401) return refusal('token_refused', 'Drive refused the token')
  if (status === 403) {
    if (rateLimits.has(name)) return refusal('rate_limited', 'Drive accepts no more requests for now')
    if (storageLimits.has(name)) {
      const sentence =
        subject === undefined
          ? 'a service account owns no storage of its own; use a folder of a shared drive, or name a user in subject'
          : `the storage of ${subject} is full`
      // A user's storage can be freed, so the delivery is retried.
      return new DeliveryError('storage_quota_exceeded', withReason(sentence), { permanent: subject === undefined, ...details })
    }
    if (countLimits.has(name)) return refusal('folder_full', 'the folder or its drive has reached its limit of files; use another folder')
    if (name === 'accessNotConfigured') {
      return refusal('api_disabled', 'the Google Drive API is not enabled in the project of the service account; enable it')
    }
    return new DeliveryError(
      'access_denied',
      withReason('the account has no permission to write; make it a contributor (or an editor) of the folder'),
      { permanent: !isThrottled, ...details },
    )
  }
  return new DeliveryError(`http_${status}`, withReason(`Drive answered ${status}`), {
    permanent: isPermanentStatus(status) && status !== 404 && !isThrottled,
    ...details,
  })
}
