import { Readable } from 'node:stream'
import { request } from 'undici'
import { DeliveryError, type AttemptContext, type ByteSpan, type TargetAnswer } from '../connector.ts'
import { readResponse } from './http.ts'
import { during } from './operation.ts'
import { trackConsumption } from './payload-stream.ts'
import { cutBytes, endsBefore, rangeHeader } from './stored-bytes.ts'
import { canGoOn } from './upload-parts.ts'

/** The limits of one attempt's requests. */
export interface RequestContext extends Pick<AttemptContext, 'signal' | 'outbound' | 'connectTimeoutMs' | 'idleTimeoutMs'> {
  /** PEM. Trusted instead of the public authorities. */
  caCertificate?: string | undefined
}

export interface CloudRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Record<string, string>
  /** A stream must have exactly the length that `content-length` announces. */
  body?: string | Readable
}

/** A request with the token of the account. */
interface CloudCall extends CloudRequest {
  /** What it does, and where: an error of it begins with that. */
  operation: string
}

export interface CloudResponse {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

// Larger than any response to these requests: a page of a list has a few hundred entries of 300 bytes.
const responseMaxBytes = 1024 * 1024

// The form that Microsoft asks clients to use. Google accepts any name.
const userAgent = 'ISV|DocumentRelay|DocumentRelay/1.0'

/** Sends one HTTP request and returns its response, whatever its status. Does not follow redirects. */
export const sendCloudRequest = async (
  url: string,
  { method, headers, body }: CloudRequest,
  context: RequestContext,
): Promise<CloudResponse> => {
  const tracked = typeof body === 'object' ? trackConsumption(body, Number(headers?.['content-length'])) : undefined
  const response = await request(url, {
    method,
    headers: { 'user-agent': userAgent, accept: 'application/json', ...headers },
    body: tracked?.body ?? body ?? null,
    signal: context.signal,
    dispatcher: context.outbound.dispatcher({ connectTimeoutMs: context.connectTimeoutMs, caCertificate: context.caCertificate }),
    headersTimeout: context.idleTimeoutMs,
    bodyTimeout: context.idleTimeoutMs,
  })
  const answeredEarly = tracked !== undefined && !tracked.isConsumed()
  const text = await readResponse(response.body, {
    maxBytes: responseMaxBytes,
    timeoutMs: context.idleTimeoutMs,
    secrets: [],
    encoding: response.headers['content-encoding'],
  })
  if (answeredEarly && response.statusCode < 400) {
    throw new DeliveryError('answered_early', 'the service answered before it had read the whole request')
  }
  return { status: response.statusCode, headers: response.headers, text }
}

/** Parses a response as a JSON object. @returns an empty object if it is not one */
export const parseObject = (text: string): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/**
 * Parses what a service says of a file. Gateways also answer with errors, or ids of their own, and a status of success.
 * @returns an empty object if it is not about a file
 */
export const parseFile = (text: string): Record<string, unknown> => {
  const value = parseObject(text)
  return Array.isArray(value) || 'error' in value || 'errors' in value ? {} : value
}

/**
 * Returns the id of what a service has stored. A proxy or a portal in between may answer with a page and a status of success.
 * @throws DeliveryError `answer_unreadable` if the response has none
 */
export const requireId = (response: CloudResponse, service: string): string => {
  const { id } = parseFile(response.text)
  if (typeof id === 'string' && id.trim() !== '') return id
  throw new DeliveryError(
    'answer_unreadable',
    `${service} answered ${response.status} without the id of a file, so nothing shows that it has stored the document; check the proxies before it`,
    { answer: toTargetAnswer(response) },
  )
}

/** Returns a response in the form that is kept with an attempt. `withDeliveryErrors` cuts it to size. */
export const toTargetAnswer = ({ status, text }: CloudResponse): TargetAnswer => ({ status, body: text })

/** The API of a cloud service during one attempt. */
export interface CloudApi {
  /**
   * Sends a request with the access token, to a path below the API's root or to an address below it.
   * @throws DeliveryError for a status of 300 or more
   */
  request(path: string, call: CloudCall): Promise<CloudResponse>
  /**
   * Reads bytes of a file and passes them to `take`. Follows one redirect: its address is its own key, and gets no token.
   * @throws DeliveryError for a status that is no success, and what `take` throws
   */
  download(path: string, file: { operation: string; span: ByteSpan }, take: (bytes: AsyncIterable<Buffer>) => Promise<void>): Promise<void>
  /**
   * Sends a request to an upload session, whatever the status of the response. The session's address is its own key; no
   * token is sent.
   */
  requestSession(url: string, call: CloudRequest, signal?: AbortSignal): Promise<CloudResponse>
  /** The strings that no message of this attempt may contain. Addresses of upload sessions are added to it. */
  secrets: string[]
}

/** A document that the service has stored completely. */
export interface CompletedUpload {
  response: CloudResponse
  /** The bytes that this run has sent. An earlier run may have sent the beginning. */
  bytesSent: number
}

export const createCloudApi = ({
  root,
  getToken,
  invalidateToken,
  toError,
  secrets,
  context,
}: {
  root: string
  getToken(): Promise<string>
  /** Called after the service has refused the token before its expiry. */
  invalidateToken(refused: string): void
  toError(response: CloudResponse): DeliveryError
  secrets: string[]
  context: RequestContext
}): CloudApi => ({
  secrets,
  request: async (path, { operation, ...call }) => {
    const token = await during('sign-in', getToken)
    secrets.push(token)
    return during(operation, async () => {
      const url = path.startsWith('/') ? `${root}${path}` : path
      // A page of a list contains the address of the next page. The token must not be sent to any other host.
      if (!url.startsWith(`${root}/`)) throw new DeliveryError('answer_unreadable', 'the service referred to a host other than its own')
      const response = await sendCloudRequest(url, { ...call, headers: { ...call.headers, authorization: `Bearer ${token}` } }, context)
      if (response.status < 300) return response
      if (response.status === 401) invalidateToken(token)
      throw toError(response)
    })
  },
  download: async (path, { operation, span }, take) => {
    const token = await during('sign-in', getToken)
    secrets.push(token)
    await during(operation, async () => {
      const open = (url: string, headers: Record<string, string>) =>
        request(url, {
          headers: { 'user-agent': userAgent, range: rangeHeader(span), ...headers },
          signal: context.signal,
          dispatcher: context.outbound.dispatcher({ connectTimeoutMs: context.connectTimeoutMs, caCertificate: context.caCertificate }),
          headersTimeout: context.idleTimeoutMs,
          bodyTimeout: context.idleTimeoutMs,
        })
      let found = await open(`${root}${path}`, { authorization: `Bearer ${token}` })
      if (found.statusCode === 401) invalidateToken(token)
      if (found.statusCode === 302) {
        found.body.on('error', () => {}).destroy()
        const url = [found.headers.location].flat()[0]
        found = await open(requireSecretUrl(secrets, url, 'the service referred to a file without a valid https address'), {})
      }
      const { statusCode: status, headers, body } = found
      if (status < 300 || endsBefore(status)) {
        try {
          await take(endsBefore(status) ? Readable.from([]) : cutBytes(body, span, status === 206 ? span.start : 0))
        } finally {
          body.on('error', () => {}).destroy()
        }
        return
      }
      const options = { maxBytes: responseMaxBytes, timeoutMs: context.idleTimeoutMs, secrets: [], encoding: headers['content-encoding'] }
      throw toError({ status, headers, text: await readResponse(body, options) })
    })
  },
  requestSession: (url, call, signal = context.signal) => sendCloudRequest(url, call, { ...context, signal }),
})

/** Returns `true` for the error of a request whose address does not exist (any more). */
export const isNotFound = (thrown: unknown): thrown is DeliveryError => thrown instanceof DeliveryError && thrown.code === 'http_404'

/** Returns `true` for the answer of an upload session that the service does not know (any more). */
export const isGone = ({ status }: CloudResponse) => status === 404 || status === 410

/** Returns the error for such an answer to a part. */
export const uploadExpired = (service: string, response: CloudResponse) =>
  new DeliveryError('upload_expired', `${service} ended the upload session before the document was complete; the upload starts again`, {
    answer: toTargetAnswer(response),
  })

// The time for cleaning up after a failed attempt, in milliseconds.
const cleanUpTimeoutMs = 1_500

/** Never throws: a session that remains is visible nowhere and expires by itself. */
export const abortSession = async (api: CloudApi, uploadUrl: string) => {
  await api.requestSession(uploadUrl, { method: 'DELETE' }, AbortSignal.timeout(cleanUpTimeoutMs)).catch(() => {})
}

/** An upload session, as an attempt uses it. */
interface SessionRun {
  uploadUrl: string
  context: Pick<AttemptContext, 'signal' | 'isLast'>
  /** How often in succession the session has answered with a fault, and taken nothing. */
  faults: number
  /** Saves that number for the next attempt. */
  saveFaults(faults: number): void
}

// `startsAgain` knows of a document that could not be read.
const unread = new AbortController().signal

// A session can be broken for good while its service works.
const maxFaults = 3

/**
 * Runs `send`, and decides what becomes of the upload session if that fails. The session stays for an attempt that can continue it: after a
 * fault or a refusal that passes, the end of the time of the attempt, or a stop of the worker. Otherwise it is aborted.
 * @param send calls `onStored` when the session has taken a part
 */
export const withUploadSession = async <Sent>(
  api: CloudApi,
  { uploadUrl, context, faults, saveFaults }: SessionRun,
  send: (onStored: () => void) => Promise<Sent>,
): Promise<Sent> => {
  const goesOn = canGoOn(context, (thrown) => !startsAgain(thrown))
  let known = faults
  const onStored = () => {
    known = 0
  }
  try {
    return await send(onStored)
  } catch (thrown) {
    if (!context.signal.aborted && isFault(thrown)) known += 1
    if (!goesOn(thrown, unread) || known >= maxFaults) await abortSession(api, uploadUrl)
    else if (known !== faults) saveFaults(known)
    throw thrown
  }
}

// The session is gone, or what it has, or the content that it got, is not what it should be.
const spoiled = new Set(['content_unreadable', 'content_altered', 'upload_out_of_step', 'upload_expired', 'http_409', 'http_412'])

const startsAgain = (thrown: unknown): boolean => {
  if (!(thrown instanceof DeliveryError)) return false
  // A page in place of a refusal changes nothing. In place of a success, it leaves open what was stored.
  if (thrown.code === 'answer_unreadable') return !(Number(thrown.answer?.status) >= 400)
  return thrown.permanent || spoiled.has(thrown.code)
}

// Load, limits, locks and full storage.
const passingStatuses = new Set([423, 429, 503, 504, 507])

/** Returns true for an answer that can mean that the session is broken. */
const isFault = (thrown: unknown): boolean => {
  if (!(thrown instanceof DeliveryError) || thrown.retryAfterMs !== undefined || thrown.code === 'rate_limited') return false
  const status = thrown.answer?.status
  return status !== undefined && !passingStatuses.has(Number(status))
}

/** Checks the address of an upload session and registers it as a secret. @throws DeliveryError `answer_unreadable` */
export const requireUploadUrl = (api: CloudApi, url: unknown): string =>
  requireSecretUrl(api.secrets, url, 'the service opened an upload session without a valid https address')

const requireSecretUrl = (secrets: string[], url: unknown, problem: string): string => {
  if (typeof url !== 'string' || !URL.canParse(url) || new URL(url).protocol !== 'https:')
    throw new DeliveryError('answer_unreadable', problem)
  secrets.push(url, new URL(url).search)
  return url
}
