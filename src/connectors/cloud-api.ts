import { cloudCall, type CallContext, type CloudAnswer, type CloudCall } from './cloud-call.ts'
import { DeliveryError, Interruption } from './connector.ts'

/** The API of a cloud during one attempt. */
export interface CloudApi {
  /**
   * A request with our token, by its path below the root or its whole address.
   * @throws DeliveryError for a status of 300 and more
   */
  call(path: string, call: CloudCall): Promise<CloudAnswer>
  /** A request to an upload session, whose address is its own key; the token stays away. Whatever the status. */
  callSession(url: string, call: CloudCall, signal?: AbortSignal): Promise<CloudAnswer>
  /** What must be found in no message of this attempt; addresses of upload sessions join it. */
  secrets: string[]
}

/** A document that the service has taken whole. */
export interface Uploaded {
  answer: CloudAnswer
  /** By this run: an earlier one may have sent the beginning. */
  bytesSent: number
}

export const createCloudApi = ({
  root,
  takeToken,
  forgetToken,
  refusalOf,
  secrets,
  context,
}: {
  root: string
  takeToken(): Promise<string>
  /** Called when the token was refused before its time. */
  forgetToken(): void
  refusalOf(answer: CloudAnswer): DeliveryError
  secrets: string[]
  context: CallContext
}): CloudApi => ({
  secrets,
  call: async (path, call) => {
    const token = await takeToken()
    secrets.push(token)
    const url = path.startsWith('/') ? `${root}${path}` : path
    // a page of a list names the next one: the token is for nobody else
    if (!url.startsWith(`${root}/`)) throw new DeliveryError('answer_unreadable', 'the service pointed to another host than its own')
    const answer = await cloudCall(url, { ...call, headers: { ...call.headers, authorization: `Bearer ${token}` } }, context)
    if (answer.status < 300) return answer
    if (answer.status === 401) forgetToken()
    throw refusalOf(answer)
  },
  callSession: (url, call, signal = context.signal) => cloudCall(url, call, { ...context, signal }),
})

/** What was asked for by its address is not there, or not any more. */
export const isMissing = (thrown: unknown): thrown is DeliveryError => thrown instanceof DeliveryError && thrown.code === 'http_404'

// for giving up what a failed attempt has begun
const tidyUpTimeoutMs = 1_500

/** Never throws: an upload session that stays shows nowhere, and expires by itself. */
export const giveUp = async (api: CloudApi, uploadUrl: string) => {
  await api.callSession(uploadUrl, { method: 'DELETE' }, AbortSignal.timeout(tidyUpTimeoutMs)).catch(() => {})
}

/** Sends to an upload session. One that fails or is cancelled is given up, unless another run goes on with it. */
export const orGiveUp = async <Sent>(api: CloudApi, uploadUrl: string, signal: AbortSignal, send: () => Promise<Sent>): Promise<Sent> => {
  try {
    return await send()
  } catch (thrown) {
    if (!(signal.reason instanceof Interruption)) await giveUp(api, uploadUrl)
    throw thrown
  }
}

/** An address to upload to, fit to be used, and never to be shown. @throws DeliveryError `answer_unreadable` */
export const takeUploadUrl = (api: CloudApi, url: unknown): string => {
  if (typeof url !== 'string' || !URL.canParse(url) || new URL(url).protocol !== 'https:') {
    throw new DeliveryError('answer_unreadable', 'the service opened an upload without telling its address')
  }
  api.secrets.push(url, new URL(url).search)
  return url
}
