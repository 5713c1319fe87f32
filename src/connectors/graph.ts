import { cloudCall, objectOf, targetAnswer, type CallContext, type CloudAnswer, type CloudCall } from './cloud-call.ts'
import { DeliveryError } from './connector.ts'
import { isPermanentStatus, retryAfterMs } from './http-answer.ts'

/** Microsoft Graph during one attempt. */
export interface Graph {
  /**
   * A request with our token, by its path below `/v1.0` or its whole address.
   * @throws DeliveryError for a status of 300 and more
   */
  call(path: string, call: CloudCall): Promise<CloudAnswer>
  /** A request to an upload session: the address is its own key, and a token would be refused. */
  callSession(url: string, call: CloudCall, signal?: AbortSignal): Promise<CloudAnswer>
  /** What must be found in no message of this attempt; addresses of upload sessions join it. */
  secrets: string[]
}

export const createGraph = ({
  root,
  takeToken,
  forgetToken,
  secrets,
  context,
}: {
  root: string
  takeToken(): Promise<string>
  forgetToken(): void
  secrets: string[]
  context: CallContext
}): Graph => ({
  secrets,
  call: async (path, call) => {
    const token = await takeToken()
    secrets.push(token)
    const url = path.startsWith('/') ? `${root}/v1.0${path}` : path
    // a page of a list names the next one: the token is for nobody else
    if (!url.startsWith(`${root}/`))
      throw new DeliveryError('answer_unreadable', `Graph pointed to ${new URL(url).host}, which is not Graph`)
    const answer = await cloudCall(url, { ...call, headers: { ...call.headers, authorization: `Bearer ${token}` } }, context)
    if (answer.status < 300) return answer
    if (answer.status === 401) forgetToken()
    throw graphRefusal(answer)
  },
  callSession: (url, call, signal = context.signal) => cloudCall(url, call, { ...context, signal }),
})

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
