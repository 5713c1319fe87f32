import { objectOf, targetAnswer, type CloudAnswer } from './cloud-call.ts'
import { DeliveryError } from './connector.ts'
import { isPermanentStatus, retryAfterMs } from './http-answer.ts'

const rates = new Set(['userRateLimitExceeded', 'rateLimitExceeded', 'dailyLimitExceeded', 'sharingRateLimitExceeded'])
const storage = new Set(['storageQuotaExceeded', 'quotaExceeded', 'teamDriveStorageQuotaExceeded'])
const counts = new Set([
  'numChildrenInNonRootLimitExceeded',
  'teamDriveFileLimitExceeded',
  'teamDriveHierarchyTooDeep',
  'activeItemCreationLimitExceeded',
])

/** A refusal of Drive as an operator understands it. Anything that is not surely final is worth another try. */
export const driveRefusal = (answer: CloudAnswer, subject?: string): DeliveryError => {
  const { status, headers, text } = answer
  const { message, errors } = (objectOf(text).error ?? {}) as { message?: unknown; errors?: unknown }
  const [first] = (Array.isArray(errors) ? errors : []) as { reason?: unknown }[]
  const reason = typeof first?.reason === 'string' ? first.reason : ''
  const said = [reason, message].filter((part) => typeof part === 'string' && part !== '').join(': ')
  const waitMs = retryAfterMs(headers['retry-after'], new Date())
  const refusal = (code: string, sentence: string, permanent: boolean) =>
    new DeliveryError(code, said ? `${sentence} (${said})` : sentence, { permanent, retryAfterMs: waitMs, answer: targetAnswer(answer) })

  if (status === 401) return refusal('token_refused', 'Drive did not take the token', false)
  if (status === 403) {
    if (rates.has(reason)) return refusal('rate_limited', 'Drive takes no more requests for now', false)
    if (storage.has(reason)) {
      return subject === undefined
        ? refusal(
            'storage_quota_exceeded',
            'a service account owns no storage of its own: use a folder of a shared drive, or name a user in subject',
            true,
          )
        : refusal('storage_quota_exceeded', `the storage of ${subject} is full`, false)
    }
    if (counts.has(reason)) return refusal('folder_full', 'the folder or its drive can hold no more files: use another folder', true)
    if (reason === 'accessNotConfigured') {
      return refusal('api_disabled', "the Google Drive API is not enabled in the service account's project: enable it", true)
    }
    return refusal(
      'access_denied',
      'the account may not write there: make it a contributor (or an editor) of the folder',
      waitMs === undefined,
    )
  }
  return refusal(`http_${status}`, `Drive answered ${status}`, isPermanentStatus(status) && status !== 404 && waitMs === undefined)
}
