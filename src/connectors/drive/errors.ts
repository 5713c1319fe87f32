import type { DeliveryError } from '../connector.ts'
import { parseObject, type CloudResponse } from '../shared/cloud-api.ts'
import { cloudFinalAnswers, refusalErrors, type CloudRefusal } from '../shared/cloud-errors.ts'
import type { FinalAnswer } from '../shared/final-answers.ts'
import { retryAfterMs, waitOf } from '../shared/retry-after.ts'

const storageLimits = new Set(['storageQuotaExceeded', 'quotaExceeded', 'teamDriveStorageQuotaExceeded'])
const ownStorageLimits = new Set(['storageQuotaExceeded', 'teamDriveStorageQuotaExceeded'])
const countLimits = new Set([
  'numChildrenInNonRootLimitExceeded',
  'teamDriveFileLimitExceeded',
  'teamDriveHierarchyTooDeep',
  'myDriveHierarchyDepthLimitExceeded',
  'activeItemCreationLimitExceeded',
])
const disabled = new Set(['accessNotConfigured', 'SERVICE_DISABLED'])

// What Drive says with 403 that no time changes, in its old error form and in that of google.rpc.
const denials: Record<string, string> = {
  forbidden: 'the account has no permission to write',
  insufficientFilePermissions: 'the same',
  insufficientPermissions: 'the same',
  insufficientParentPermissions: 'the same',
  PERMISSION_DENIED: 'the same',
  IAM_PERMISSION_DENIED: 'the same',
  ACCESS_TOKEN_SCOPE_INSUFFICIENT: 'the same',
  appNotAuthorizedToFile: 'the application may not use the file',
  appNotAuthorizedToParent: 'the application may not use the folder',
  domainPolicy: 'the administrators of the domain forbid it',
  cannotAddParent: 'files cannot be added to the folder',
  teamDriveMembershipRequired: 'the account is no member of the shared drive',
  teamDrivesFolderMoveInNotSupported: 'the shared drive does not take it',
  fileIsReadOnly: 'the file cannot be changed',
  fileNotWritable: 'the same',
  fieldNotWritable: 'a property cannot be changed',
  cannotModifyViewersCanCopyContent: 'the same',
  CONSUMER_INVALID: 'the project of the account does not exist',
  CONSUMER_SUSPENDED: 'the project of the account is suspended',
  USER_PROJECT_DENIED: 'the account may not use the project',
}

// Limits and load, with whatever status they come. They are named in both error forms.
const passes =
  /rate.?limit|limit.?exceeded|daily.?limit|quota|resource.?exhausted|throttl|too.?many|backend|internal|unavailable|aborted|deadline|transient|timeout/i

/** The answers after which nothing is sent again. */
export const driveFinalAnswers: readonly FinalAnswer[] = cloudFinalAnswers('Drive', denials, [
  ...[...disabled].map((code) => ({ answer: `403 \`${code}\``, meaning: 'the Drive API is not enabled' })),
  ...[...countLimits].map((code) => ({ answer: `403 \`${code}\``, meaning: 'the folder or its drive has reached its limit of files' })),
  ...[...storageLimits].map((code) => ({ answer: `403 \`${code}\` without \`subject\``, meaning: 'a service account owns no storage' })),
])

/** Reads an error in the old form of Drive (`errors`), in that of google.rpc (`status`, `details`), or in both, the most exact code first. */
const readRefusal = ({ text, headers }: CloudResponse): CloudRefusal => {
  const { error } = parseObject(text)
  const { message, errors, status, details } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  const parts = [errors, details].flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : [])) as (Record<string, unknown> | null)[]
  const codes = [...parts.map((part) => part?.reason), status].filter((name): name is string => typeof name === 'string' && name !== '')
  const waits = parts.map((part) => (typeof part?.retryDelay === 'string' ? retryAfterMs(part.retryDelay, new Date()) : undefined))
  return {
    codes,
    message: typeof message === 'string' ? message : '',
    waitMs: waitOf(headers, new Date()) ?? waits.find((wait) => wait !== undefined),
  }
}

/** Maps a refusal by Google Drive. Retries everything that is not certainly permanent. */
export const driveError = (response: CloudResponse, subject?: string): DeliveryError => {
  const { status } = response
  const said = readRefusal(response)
  const { codes, message, waitMs } = said
  const { refusal, openRefusal, otherRefusal } = refusalErrors('Drive', response, said)
  const isNamed = (set: Set<string>) => codes.some((code) => set.has(code))

  if (status === 401) return refusal('token_refused', 'Drive refused the token')
  const isPassing = waitMs !== undefined || codes.some((code) => passes.test(code))
  if (status === 403) {
    // `quotaExceeded` is also what the limits of requests are called.
    if (isNamed(storageLimits) && (isNamed(ownStorageLimits) || /storage/i.test(message))) {
      const sentence =
        subject === undefined
          ? 'a service account owns no storage of its own; use a folder of a shared drive, or name a user in subject'
          : `the storage of ${subject} is full`
      // A user's storage can be freed, so the delivery is retried.
      return openRefusal('storage_quota_exceeded', sentence, subject === undefined)
    }
    if (isNamed(countLimits)) return refusal('folder_full', 'the folder or its drive has reached its limit of files; use another folder')
    if (isNamed(disabled)) {
      return refusal('api_disabled', 'the Google Drive API is not enabled in the project of the service account; enable it')
    }
    if (isPassing) return refusal('rate_limited', 'Drive accepts no more requests for now')
    if (codes.some((code) => Object.hasOwn(denials, code))) {
      const sentence = 'the account has no permission to write; make it a contributor (or an editor) of the folder'
      return openRefusal('access_denied', sentence, true)
    }
  }
  return otherRefusal(isPassing)
}
