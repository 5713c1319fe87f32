import type { IncomingHttpHeaders } from 'node:http'
import { pipeline, Readable, Transform } from 'node:stream'
import type { StreamingBody } from '../capture/body.ts'
import { captureOf, durationMs, noResponse, type Capture, type RequestFacts, type ResponseFacts } from '../capture/capture.ts'
import type { CaptureQueue } from '../capture/queue.ts'
import { isOpaque } from '../capture/redact-body.ts'
import type { SealedQueries } from '../capture/redact.ts'
import type { Piece } from '../capture/stored-body.ts'
import { headersOf, type Answer } from './answer.ts'
import { parseQuery, splitTarget, type Query } from './command.ts'
import { isWorthReplaying } from './refusal.ts'

/** A request to the receiver, as it arrives over HTTP or as a replay repeats it. */
export interface ReceiverRequest {
  id: string
  method: string
  /** Request target, not decoded. */
  target: string
  /** Names in lower case. */
  headers: Record<string, string | undefined>
  sourceIp: string
  /** Read by `readBody` and `drainBody` only, which record it in `recordedBody`. */
  body: Readable
  recordedBody: StreamingBody
  receivedAt: Date
  /** Time by which a signature is judged: for a replay, the time of the original request. */
  signatureTime: Date
  replayOf: string | null
  /** True for a request of the relay itself: the management API has checked who asked for it, in place of address and signature. */
  isOwn: boolean
  /** Calls the listener when the client no longer waits for the answer, at once if it is gone already, or when it has the answer. */
  onAbandoned(listener: () => void): void
}

/** A request to the receiver and its answer, with everything that is captured of them. */
export interface Exchange {
  request: ReceiverRequest
  userSlug: string
  workspaceSlug: string
  query: Query
  /**
   * Sets the answer that is sent if the command's transaction commits. If another answer is sent in the end, `end` replaces the capture.
   * @param pieces the contents that hold the body of the request once the transaction has committed
   * @returns the capture to write in that transaction
   */
  prepareCapture(answer: Answer, pieces?: Piece[]): Promise<Capture>
  /**
   * Returns the answer to send. Its body is recorded while it is sent, unless the capture refers to the contents that it is read from.
   * Call this before the rest of the request is read: the answer decides if the body of the request is kept.
   */
  respond(answer: Answer): Answer
  /** Returns true if the body of a refused request is kept: a client may stop sending when it is answered, so it is read before the answer is sent. */
  needsBody(): boolean
  /**
   * Captures the exchange, unless a transaction has done so. Without an answer, the client closed the connection before.
   * @param at when the answer had been sent. The rest of a refused body may have taken longer.
   * @param pieces the contents as which the body of the answer was kept
   */
  end<Written>(
    write: (request: RequestFacts, response: ResponseFacts) => Written,
    how: 'complete' | 'aborted',
    at?: Date,
    pieces?: Piece[],
  ): Written | undefined
}

interface Response {
  answer: Answer
  body: StreamingBody
  /** True if a transaction writes the capture, provided that it commits. */
  isCommitted: boolean
  /** True if the body is not recorded, because the capture refers to the contents that it is read from. */
  isReferenced: boolean
}

// Clients append path segments of their own, for example a file name.
const receiverPath = /^\/receiver\/([^/]+)\/([^/]+)(?:\/.*)?$/

/** Returns true if a request target is below `/receiver/{userSlug}/{workspaceSlug}`. */
export const isReceiverTarget = (target: string): boolean => receiverPath.test(splitTarget(target).path)

export interface ExchangeDeps {
  captures: Pick<CaptureQueue, 'streamingBody' | 'bodyMaxBytes' | 'complete' | 'keepsRefusedBodies'>
  sealedQueries: Pick<SealedQueries, 'seal'>
}

const isRefusal = (status: number) => status >= 400 && status < 500

/** Returns true if the relay has failed. A refusal because a limit is reached, which anybody can cause, has no cause of its own. */
const isFailure = ({ status, refusal }: Answer): boolean => status >= 500 && (refusal === undefined || refusal.cause !== undefined)

export const createExchange = (request: ReceiverRequest, { captures, sealedQueries }: ExchangeDeps): Exchange => {
  const { path, query: queryString } = splitTarget(request.target)
  const [, userSlug = '', workspaceSlug = ''] = receiverPath.exec(path) ?? []
  const query = parseQuery(queryString)
  const querySealed = sealedQueries.seal(request.id, queryString)
  const requestFacts = requestFactsOf(request, { userSlug, workspaceSlug, path, queryString, querySealed, query })
  let response: Response | undefined
  let isRefusedBodyKept = false

  const startResponse = (answer: Answer): Response => {
    response?.body.release()
    const body = captures.streamingBody(request.sourceIp)
    response = { answer, body, isCommitted: false, isReferenced: false }
    // The headers and the first bytes of what is read from contents decide if it is recorded.
    if (answer.body instanceof Readable || answer.pieces) return response
    if (request.method !== 'HEAD') body.add(bytesOf(answer.body))
    body.end()
    return response
  }

  /** Decides by the answer if the body of the request is kept, which a replay needs. */
  const judgeBody = ({ status, refusal }: Answer): void => {
    const { recordedBody } = request
    // No command has begun to read it.
    const isUnread = recordedBody.sizeBytes() === 0
    if (!isRefusal(status)) return isUnread ? recordedBody.discard('unread') : undefined
    // Any other refused request may be hostile, and is never worth a replay.
    const isKept = refusal && isWorthReplaying(refusal.code) && captures.keepsRefusedBodies({ userSlug, workspaceSlug })
    if (!isKept) return recordedBody.discard('refused')
    // A larger body is not recorded.
    isRefusedBodyKept = Number(request.headers['content-length'] ?? 0) <= captures.bodyMaxBytes
    return undefined
  }

  const responseFactsOf = ({ answer, body }: Response, at = new Date(), pieces = answer.pieces): ResponseFacts => ({
    status: answer.status,
    errorCode: answer.refusal?.code ?? null,
    headers: headersOf(answer, request.id),
    body,
    pieces,
    isFailure: isFailure(answer),
    at,
  })

  return {
    request,
    userSlug,
    workspaceSlug,
    query,
    prepareCapture: (answer, pieces) => {
      const prepared = startResponse(answer)
      prepared.isCommitted = true
      return captureOf({ ...requestFacts, pieces }, responseFactsOf(prepared))
    },

    respond: (answer) => {
      judgeBody(answer)
      const started = response?.answer === answer ? response : startResponse(answer)
      if (typeof answer.body === 'string' || !(answer.body instanceof Readable || answer.pieces)) return answer
      if (!(Number(answer.headers['Content-Length']) <= captures.bodyMaxBytes)) {
        started.body.discard('too_large')
        return answer
      }
      // A body that may have to be redacted is recorded.
      started.isReferenced = answer.pieces !== undefined && isOpaque(headOf(answer.body, answer.pieces), contentTypeOf(answer))
      if (started.isReferenced) return answer
      if (answer.body instanceof Readable) return { ...answer, body: recordWhileSending(answer.body, started.body) }
      started.body.add(answer.body)
      started.body.end()
      return answer
    },

    needsBody: () => isRefusedBodyKept,

    end: (write, how, at = new Date(), pieces) => {
      if (!response) return write(requestFacts, noResponse(captures.streamingBody(request.sourceIp)))
      if (how === 'aborted') response.body.discard('incomplete')
      else if (response.isReferenced) response.body.end()
      if (!response.isCommitted) return write(requestFacts, responseFactsOf(response, at, pieces))
      captures.complete({ id: request.id, responseAt: at, durationMs: durationMs(requestFacts, { at }) })
      request.recordedBody.release()
      response.body.release()
      return undefined
    },
  }
}

interface Address {
  userSlug: string
  workspaceSlug: string
  path: string
  queryString: string
  querySealed: Buffer | null
  query: Query
}

const requestFactsOf = (request: ReceiverRequest, address: Address): RequestFacts => {
  const { userSlug, workspaceSlug, path, queryString, querySealed, query } = address
  const valueOf = (name: string) => query.parameters.find((parameter) => parameter.name.toLowerCase() === name)?.value ?? null
  return {
    id: request.id,
    channel: 'receiver',
    userSlug,
    workspaceSlug,
    method: request.method,
    uri: path,
    queryString,
    querySealed,
    repoId: valueOf('contrep'),
    docId: valueOf('docid'),
    headers: request.headers,
    body: request.recordedBody,
    sourceIp: request.sourceIp,
    requestAt: request.receivedAt,
    replayOf: request.replayOf,
  }
}

const contentTypeOf = ({ headers }: Answer): string => String(headers['Content-Type'] ?? '')

const bytesOf = (body: string | Buffer): Buffer => (typeof body === 'string' ? Buffer.from(body) : body)

/**
 * Returns the first bytes of an answer, which stay in its stream. If the stream has nothing buffered and its first piece was not recorded,
 * returns an empty buffer.
 */
const headOf = (body: Readable | Buffer, [first]: Piece[]): Buffer => {
  if (Buffer.isBuffer(body)) return body
  if (first && 'data' in first) return Buffer.from(first.data, 'base64')
  const head: unknown = body.read()
  if (!Buffer.isBuffer(head)) return Buffer.alloc(0)
  body.unshift(head)
  return head
}

const recordWhileSending = (source: Readable, body: StreamingBody): Readable => {
  const recorder = new Transform({
    transform: (chunk: Buffer, _, done) => {
      body.add(chunk)
      done(null, chunk)
    },
    flush: (done) => {
      body.end()
      done()
    },
  })
  // An error of either stream ends the other one. The sender of the answer sees it in its stream.
  return pipeline(source, recorder, () => {})
}

/** Joins the values of repeated headers. */
export const joinHeaders = (headers: IncomingHttpHeaders): ReceiverRequest['headers'] =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]))

/** Returns true if the request announces a body. Node treats any other request as one without. */
export const announcesBody = ({ headers }: Pick<ReceiverRequest, 'headers'>): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

// Reading a shorter body costs less than asking the database first.
const longBodyBytes = 256 * 1024

/** Returns true if the body may be long. A chunked body may have any length. */
export const mayBeLong = ({ headers }: Pick<ReceiverRequest, 'headers'>): boolean => !(Number(headers['content-length']) <= longBodyBytes)
