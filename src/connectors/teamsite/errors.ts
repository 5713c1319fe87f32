import type { DeliveryError } from '../connector.ts'
import { parseObject, type CloudResponse } from '../shared/cloud-api.ts'
import { cloudFinalAnswers, refusalErrors, type CloudRefusal } from '../shared/cloud-errors.ts'
import type { FinalAnswer } from '../shared/final-answers.ts'
import { retryAfterMs, waitOf } from '../shared/retry-after.ts'

// What Graph and SharePoint say with 403 that no time changes. Both also answer 403 to requests that are too many, and so do firewalls.
const denials: Record<string, string> = {
  accessDenied: 'the application has no permission to write',
  forbidden: 'the same',
  unauthorized: 'the same',
  Authorization_RequestDenied: 'the same',
  '-2147024891, System.UnauthorizedAccessException': 'the same, as SharePoint says it',
  accessRestricted: 'access is restricted to the owner',
  notAllowed: 'the operation is not allowed here',
  notSupported: 'the library does not support the operation',
  provisioningNotAllowed: 'the site may not be used yet',
  malwareDetected: 'the document contains malware',
  virusSuspicious: 'the same',
}

const spelled = (code: string) => code.toLowerCase()
const isDenial = new Set(Object.keys(denials).map(spelled))

// Codes of conditions that pass, with whatever status Graph and the upload host of SharePoint send them: limits, load, conflicts, sessions.
const passes =
  /throttl|too ?many|limit|busy|unavailable|not ?available|time ?out|retry|conflict|modified|mismatch|lock|read.?only|generalexception|internal|unknownerror|fragment|session/i

const storageLimits = /^(?:quotaLimitReached|quotaExceeded|insufficientStorage)$/i

/** The answers after which nothing is sent again. */
export const teamsiteFinalAnswers: readonly FinalAnswer[] = cloudFinalAnswers('Graph', denials)

const textIn = (value: unknown): string => {
  if (typeof value === 'string') return value
  const { value: text } = (value ?? {}) as { value?: unknown }
  return typeof text === 'string' ? text : ''
}

/** Reads an error in the form of Graph, of OneDrive (a time to wait beside the code), or of SharePoint (`odata.error`), the most general code first. */
const readRefusal = ({ text, headers }: CloudResponse): CloudRefusal => {
  const { error, 'odata.error': older, error_description: description } = parseObject(text)
  const told = older ?? error
  const codes: string[] = []
  let waitMs = waitOf(headers, new Date())
  let inner: unknown = told
  // An inner error may have an inner error.
  for (let depth = 0; depth < 5 && typeof inner === 'object' && inner !== null; depth += 1) {
    const { code, innerError, innererror, retryAfterSeconds } = inner as Record<string, unknown>
    if (typeof code === 'string' && code !== '') codes.push(code)
    waitMs ??= retryAfterMs(typeof retryAfterSeconds === 'number' ? String(retryAfterSeconds) : undefined, new Date())
    inner = innerError ?? innererror
  }
  if (typeof told === 'string' && told !== '') codes.push(told)
  return { codes, message: textIn((told as { message?: unknown } | undefined)?.message) || textIn(description), waitMs }
}

/** Maps a refusal by Microsoft Graph. Retries everything that is not certainly permanent. */
export const graphError = (response: CloudResponse): DeliveryError => {
  const { status } = response
  const said = readRefusal(response)
  const { codes, waitMs } = said
  const { refusal, openRefusal, otherRefusal } = refusalErrors('Graph', response, said)

  if (status === 401) {
    return refusal(
      'token_refused',
      'Graph refused the token; check that the application has the permission Sites.Selected with the consent of an administrator',
    )
  }
  if (status === 507 || codes.some((code) => storageLimits.test(code))) return refusal('quota_exceeded', 'the storage of the site is full')
  if (status === 423) return refusal('locked', 'the file is locked; somebody has it checked out or open')
  const isPassing = waitMs !== undefined || codes.some((code) => passes.test(code))
  if (status === 403 && !isPassing && codes.some((code) => isDenial.has(spelled(code)))) {
    return openRefusal(
      'access_denied',
      'the application has no permission to write; grant it the role write on this site (Sites.Selected)',
      true,
    )
  }
  return otherRefusal(isPassing)
}
