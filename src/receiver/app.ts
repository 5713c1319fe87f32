import { Readable } from 'node:stream'
import type { Context, Middleware } from 'koa'
import type { Metric } from 'prom-client'
import { newId, timeOfId } from '../base/ids.ts'
import { clientGoneStatus } from '../capture/capture.ts'
import type { ReplayableRequest } from '../capture/captured-requests.ts'
import type { CaptureQueue } from '../capture/queue.ts'
import { openStoredBody } from '../capture/stored-body.ts'
import type { MalformedAnswer, MalformedRequest } from '../http/malformed-requests.ts'
import type { ReadThrough } from '../migration/read-through.ts'
import { headersOf, refusalAnswer, sendAnswer, type Answer } from './answer.ts'
import { drainBody } from './body.ts'
import { announcesBody, createExchange, isReceiverTarget, joinHeaders, type ExchangeDeps, type ReceiverRequest } from './exchange.ts'
import { createExecute, type ExecuteDeps } from './execute.ts'
import { receiverLimits } from './limits.ts'
import { createReceiverLog } from './receiver-log.ts'
import { Refusal } from './refusal.ts'
import type { TestCreate } from './test-document.ts'

export interface ReceiverDeps extends Omit<ExecuteDeps, 'receiverLog'> {
  readThrough: ReadThrough
  captures: CaptureQueue
  sealedQueries: ExchangeDeps['sealedQueries']
}

export interface Receiver {
  /** Serves the content-server protocol below `/receiver/{userSlug}/{workspaceSlug}`. Other requests pass to the next middleware. */
  middleware: Middleware
  /**
   * Executes a captured request again, as if it arrived now. Only its signature is judged by the time of the original request.
   * Resolves after the new request has been answered and captured.
   * @returns the status of the answer
   */
  replay(request: ReplayableRequest, newRequestId: string): Promise<number>
  /** Executes a create of the relay itself. Resolves after it has been answered and captured. @returns the answer, if there is one */
  createTest(create: TestCreate): Promise<Answer | undefined>
  /** Refuses a request below `/receiver` that is no HTTP, and captures it. @returns the answer, or undefined for another request */
  refuseMalformed(request: MalformedRequest): MalformedAnswer | undefined
  metrics: Metric[]
}

export const createReceiver = (deps: ReceiverDeps): Receiver => {
  const { captures, log } = deps
  const { lingerTimeoutMs } = { ...receiverLimits, ...deps.limits }
  const receiverLog = createReceiverLog(log)
  const execute = createExecute({ ...deps, receiverLog })

  const middleware: Middleware = async (ctx, next) => {
    if (!isReceiverTarget(ctx.req.url ?? '')) return next()
    const closed = new Promise<Date>((resolve) => ctx.res.once('close', () => resolve(new Date())))
    const exchange = createExchange(requestOf(ctx, captures), deps)
    const { request } = exchange
    Object.assign(ctx.state, { route: '/receiver/:userSlug/:workspaceSlug', command: receiverLog.commandOf(exchange) })
    let drained: Promise<boolean> | undefined
    const outcome = await execute(exchange, async (answer) => {
      const sent = exchange.respond(answer)
      drained ??= drainBody(request, lingerTimeoutMs)
      // Closing a connection with unread bytes discards the answer, so read them first if the connection closes after the answer.
      if (exchange.needsBody() || !ctx.res.shouldKeepAlive) await drained
      else void drained.then((ended) => ended || ctx.req.destroy())
      sendAnswer(ctx, sent, request.id)
      receiverLog.answered(exchange, answer.status)
      void Promise.all([closed, answer.keptAs, drained])
        .then(([at, pieces]) => exchange.end(captures.add, ctx.res.writableFinished ? 'complete' : 'aborted', at, pieces))
        .catch((thrown: unknown) => log.error({ request_id: request.id, err: thrown }, 'failed to capture a request'))
    })
    if (outcome === 'client gone') {
      ctx.respond = false
      // The relay has not come to read what was sent completely.
      if (ctx.req.complete) request.recordedBody.discard('unread')
      ctx.req.destroy()
      exchange.end(captures.add, 'aborted')
    }
    return undefined
  }

  const replay = async (replayed: ReplayableRequest, id: string): Promise<number> => {
    const body = replayed.body ? openStoredBody(deps.contents.stores, replayed.body) : Readable.from([])
    const answer = await executeHere(replayOf(replayed, id, body, captures))
    body.destroy()
    return answer?.status ?? clientGoneStatus
  }

  /** Executes a request that arrives at no connection. Resolves after it has been answered and captured. */
  const executeHere = async (request: ReceiverRequest): Promise<Answer | undefined> => {
    const exchange = createExchange(request, deps)
    let how: 'complete' | 'aborted' = 'aborted'
    let given: Answer | undefined
    await execute(exchange, async (answer) => {
      given = answer
      const sent = exchange.respond(answer).body
      await drainBody(exchange.request, lingerTimeoutMs)
      how = sent instanceof Readable ? await readAnswer(sent, sent !== answer.body) : 'complete'
    })
    await exchange.end(captures.write, how, undefined, await given?.keptAs)
    return given
  }

  const createTest = (create: TestCreate) => executeHere(requestOfTest(create, captures))

  const refuseMalformed = (malformed: MalformedRequest): MalformedAnswer | undefined => {
    if (!isReceiverTarget(malformed.target)) return undefined
    const request = requestOfMalformed(malformed, captures)
    const exchange = createExchange(request, deps)
    const refusal = new Refusal('invalid_parameter', malformed.message)
    const answer = refusalAnswer(refusal, request.id)
    exchange.respond(answer)
    // It has none, or was not read.
    if (!announcesBody(request)) request.recordedBody.end()
    receiverLog.refused(exchange, refusal)
    exchange.end(captures.add, 'complete')
    return { status: answer.status, headers: headersOf(answer, request.id), body: answer.body }
  }

  return { middleware, replay, createTest, refuseMalformed, metrics: [...receiverLog.metrics, ...deps.readThrough.metrics] }
}

/** Returns a request without a client that waits for its answer. @param given what differs from a request that has just arrived */
const requestWith = (
  given: Pick<ReceiverRequest, 'id' | 'method' | 'target' | 'headers' | 'sourceIp' | 'body'> & Partial<ReceiverRequest>,
  captures: CaptureQueue,
): ReceiverRequest => ({
  recordedBody: captures.streamingBody(given.sourceIp),
  receivedAt: timeOfId(given.id),
  signatureTime: timeOfId(given.id),
  replayOf: null,
  isOwn: false,
  onAbandoned: () => {},
  ...given,
})

const requestOf = (ctx: Context, captures: CaptureQueue): ReceiverRequest => {
  const { req, res, method, ip: sourceIp } = ctx
  const onAbandoned: ReceiverRequest['onAbandoned'] = (listener) => {
    if (res.closed) listener()
    else res.once('close', listener)
  }
  const headers = joinHeaders(req.headers)
  return requestWith({ id: newId(), method, target: req.url ?? '', headers, sourceIp, body: req, onAbandoned }, captures)
}

const requestOfMalformed = ({ id, method, target, headers, sourceIp }: MalformedRequest, captures: CaptureQueue): ReceiverRequest =>
  requestWith({ id, method, target, headers, sourceIp, body: Readable.from([]) }, captures)

const replayOf = (replayed: ReplayableRequest, id: string, body: Readable, captures: CaptureQueue): ReceiverRequest => {
  const { id: original, httpMethod: method, requestHeaders: headers, requestAt: signatureTime, sourceIp } = replayed
  const target = `${replayed.uri}?${replayed.queryString}`
  return requestWith({ id, method, target, headers, sourceIp, body, signatureTime, replayOf: original }, captures)
}

const requestOfTest = ({ requestId: id, target, contentType, body: bytes }: TestCreate, captures: CaptureQueue): ReceiverRequest => {
  const headers = { 'content-type': contentType, 'content-length': String(bytes.length), 'user-agent': 'Document Relay, test document' }
  const body = Readable.from([bytes])
  return requestWith({ id, method: 'PUT', target, headers, sourceIp: '127.0.0.1', body, isOwn: true }, captures)
}

/** Reads the captured part of the answer of a replay. */
const readAnswer = async (body: Readable, isCaptured: boolean): Promise<'complete' | 'aborted'> => {
  try {
    if (isCaptured) for await (const chunk of body) void chunk
    else body.destroy()
    return 'complete'
  } catch {
    return 'aborted'
  }
}
