import { DeliveryError } from '../connector.ts'
import type { FixedErrorCode } from '../error-codes.ts'
import { parseObject, toTargetAnswer, type CloudResponse } from '../shared/cloud-api.ts'
import { finalStatusRows, type FinalAnswer } from '../shared/final-answers.ts'
import { isPermanentStatus } from '../shared/final-statuses.ts'
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

const temporaryStatuses = [401, 404, 410, 412, 417, 428]

/** The answers after which nothing is sent again. */
export const driveFinalAnswers: readonly FinalAnswer[] = [
  ...Object.entries(denials).map(([code, meaning]) => ({ answer: `403 \`${code}\``, meaning })),
  ...[...disabled].map((code) => ({ answer: `403 \`${code}\``, meaning: 'the Drive API is not enabled' })),
  ...[...countLimits].map((code) => ({ answer: `403 \`${code}\``, meaning: 'the folder or its drive has reached its limit of files' })),
  ...[...storageLimits].map((code) => ({ answer: `403 \`${code}\` without \`subject\``, meaning: 'a service account owns no storage' })),
  ...finalStatusRows([...temporaryStatuses, 403]).map(({ answer, meaning }) => ({ answer: `${answer} with an error of Drive`, meaning })),
]

interface DriveRefusal {
  /** All that name the reason, the most exact first. None if Drive has not said it. */
  names: string[]
  message: string
  waitMs: number | undefined
}

/** Reads an error in the old form of Drive (`errors`), in that of google.rpc (`status`, `details`), or in both. */
const readRefusal = ({ text, headers }: CloudResponse): DriveRefusal => {
  const { error } = parseObject(text)
  const { message, errors, status, details } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  const parts = [errors, details].flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : [])) as (Record<string, unknown> | null)[]
  const names = [...parts.map((part) => part?.reason), status].filter((name): name is string => typeof name === 'string' && name !== '')
  const waits = parts.map((part) => (typeof part?.retryDelay === 'string' ? retryAfterMs(part.retryDelay, new Date()) : undefined))
  return {
    names,
    message: typeof message === 'string' ? message : '',
    waitMs: waitOf(headers, new Date()) ?? waits.find((wait) => wait !== undefined),
  }
}

/** Maps a refusal by Google Drive. Retries everything that is not certainly permanent. */
export const driveError = (response: CloudResponse, subject?: string): DeliveryError => {
  const { status } = response
  const { names, message, waitMs } = readRefusal(response)
  const reason = [names[0] ?? '', message].filter((part) => part !== '').join(': ')
  const withReason = (sentence: string) => (reason ? `${sentence} (${reason})` : sentence)
  const details = { retryAfterMs: waitMs, answer: toTargetAnswer(response) }
  const refusal = (code: FixedErrorCode, sentence: string) => new DeliveryError(code, withReason(sentence), details)
  const isNamed = (set: Set<string>) => names.some((name) => set.has(name))

  if (status === 401) return refusal('token_refused', 'Drive refused the token')
  const isPassing = waitMs !== undefined || names.some((name) => passes.test(name))
  if (status === 403) {
    // `quotaExceeded` is also what the limits of requests are called.
    if (isNamed(storageLimits) && (isNamed(ownStorageLimits) || /storage/i.test(message))) {
      const sentence =
        subject === undefined
          ? 'a service account owns no storage of its own; use a folder of a shared drive, or name a user in subject'
          : `the storage of ${subject} is full`
      // A user's storage can be freed, so the delivery is retried.
      return new DeliveryError('storage_quota_exceeded', withReason(sentence), { permanent: subject === undefined, ...details })
    }
    if (isNamed(countLimits)) return refusal('folder_full', 'the folder or its drive has reached its limit of files; use another folder')
    if (isNamed(disabled)) {
      return refusal('api_disabled', 'the Google Drive API is not enabled in the project of the service account; enable it')
    }
    if (isPassing) return refusal('rate_limited', 'Drive accepts no more requests for now')
    if (names.some((name) => Object.hasOwn(denials, name))) {
      const sentence = 'the account has no permission to write; make it a contributor (or an editor) of the folder'
      return new DeliveryError('access_denied', withReason(sentence), { permanent: true, ...details })
    }
  }
  const isFinal = !isPassing && !temporaryStatuses.includes(status) && isPermanentStatus(status)
  if (isFinal && names.length === 0) {
    const sentence = `something between the relay and Drive answered ${status}, because the answer is not one of Drive; check the proxies`
    return new DeliveryError('answer_unreadable', sentence, details)
  }
  return new DeliveryError(`http_${status}`, withReason(`Drive answered ${status}`), {
    permanent: isFinal && status !== 403,
    ...details,
  })
}
