import { objectOf, targetAnswer, type CloudAnswer } from './cloud-call.ts'
import { DeliveryError } from './connector.ts'
import { isPermanentStatus, retryAfterMs } from './http-answer.ts'

// statuses that say something about this moment, whatever their number suggests
const passing = new Set([404, 410, 416, 423])

/** A refusal as an operator understands it. Anything that is not surely final is worth another try. */
export const graphRefusal = (answer: CloudAnswer): DeliveryError => {
  const { status, headers, text } = answer
  const { code, message } = (objectOf(text).error ?? {}) as { code?: unknown; message?: unknown }
  const said = [code, message].filter((part) => typeof part === 'string' && part !== '').join(': ')
  const waitMs = retryAfterMs(headers['retry-after'], new Date())
  const refusal = (ourCode: string, sentence: string, permanent: boolean) =>
    new DeliveryError(ourCode, said ? `${sentence} (${said})` : sentence, { permanent, retryAfterMs: waitMs, answer: targetAnswer(answer) })

  if (status === 401) {
    return refusal(
      'token_refused',
      'Graph did not take the token: has the application the permission Sites.Selected, and an administrator consented?',
      false,
    )
  }
  if (status === 507 || code === 'quotaLimitReached') return refusal('quota_exceeded', 'the storage of the site is full', false)
  if (status === 403 && waitMs === undefined) {
    return refusal('access_denied', 'the application may not write there: grant it the role write on this site (Sites.Selected)', true)
  }
  if (status === 423) return refusal('locked', 'the file is locked: somebody has it checked out or open', false)
  return refusal(`http_${status}`, `Graph answered ${status}`, isPermanentStatus(status) && !passing.has(status) && waitMs === undefined)
}
