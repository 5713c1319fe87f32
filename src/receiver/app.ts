import type { Context, Middleware } from 'koa'
import { Readable } from 'node:stream'
import type { CaptureQueue } from '../capture/queue.ts'
import type { Config } from '../config.ts'
import type { RepeatableRequest } from '../db/captured-requests.ts'
import { newId, timeOfId } from '../ids.ts'
import { send } from './answer.ts'
import { readRest } from './body.ts'
import { createExchange, isOwn } from './exchange.ts'
import { flatHeaders, type Incoming } from './incoming.ts'
import { createProcess, type ProcessDeps } from './process.ts'

export interface ReceiverDeps extends ProcessDeps {
  captures: CaptureQueue
  config: ProcessDeps['config'] & Pick<Config, 'RELAY_HTTP_LINGER_TIMEOUT_MS' | 'CAPTURE_REPLAY_TIMEOUT_MS'>
}

export interface Receiver {
  /** The content server that source systems see. Passes on whatever is not below /receiver/{userSlug}/{workspaceSlug}. */
  middleware: Middleware
  /**
   * Takes a captured request once more, as if it came in now; only its signature is judged as of then.
   * @returns the new request's id, once it has been answered and captured
   */
  replay(request: RepeatableRequest): Promise<string>
}

export const createReceiver = (deps: ReceiverDeps): Receiver => {
  const { captures, config, log } = deps
  const process = createProcess(deps)

  const middleware: Middleware = async (ctx, next) => {
    if (!isOwn(ctx.req.url ?? '')) return next()
    const closed = new Promise<void>((resolve) => ctx.res.once('close', () => resolve()))
    const exchange = createExchange(incomingOf(ctx, captures), captures)
    let rest: Promise<boolean> | undefined
    const outcome = await process(exchange, async (answer) => {
      rest ??= readRest(exchange.incoming, config.RELAY_HTTP_LINGER_TIMEOUT_MS)
      // a connection that closes after the answer would take the answer with it, were there anything unread
      if (!ctx.res.shouldKeepAlive) await rest
      else void rest.then((ended) => ended || ctx.req.destroy())
      send(ctx, exchange.passing(answer), exchange.incoming.id)
      void Promise.all([closed, rest])
        .then(() => exchange.end(captures.add, ctx.res.writableFinished ? 'whole' : 'broken off'))
        .catch((thrown: unknown) => log.error({ requestId: exchange.incoming.id, err: thrown }, 'a request could not be captured'))
    })
    if (outcome === 'client gone') {
      ctx.respond = false
      ctx.req.destroy()
      exchange.end(captures.add, 'broken off')
    }
    return undefined
  }

  const replay = async (request: RepeatableRequest): Promise<string> => {
    const exchange = createExchange(incomingAgain(request, captures, config.CAPTURE_REPLAY_TIMEOUT_MS), captures)
    let how: 'whole' | 'broken off' = 'broken off'
    await process(exchange, async (answer) => {
      await readRest(exchange.incoming, config.RELAY_HTTP_LINGER_TIMEOUT_MS)
      const { body } = exchange.passing(answer)
      how = body instanceof Readable ? await readAnswer(body, body !== answer.body) : 'whole'
    })
    await exchange.end(captures.write, how)
    return exchange.incoming.id
  }

  return { middleware, replay }
}

const incomingOf = (ctx: Context, captures: CaptureQueue): Incoming => {
  const id = newId()
  const receivedAt = timeOfId(id)
  return {
    id,
    method: ctx.method,
    target: ctx.req.url ?? '',
    headers: flatHeaders(ctx.req.headers),
    sourceIp: ctx.ip,
    body: ctx.req,
    passing: captures.passingBody(),
    receivedAt,
    judgedAt: receivedAt,
    replayOf: null,
    isGone: () => ctx.req.socket.destroyed,
  }
}

const incomingAgain = (request: RepeatableRequest, captures: CaptureQueue, timeoutMs: number): Incoming => {
  const id = newId()
  const deadline = Date.now() + timeoutMs
  return {
    id,
    method: request.httpMethod,
    target: `${request.uri}?${request.queryString}`,
    headers: request.requestHeaders,
    sourceIp: request.sourceIp,
    body: Readable.from(request.body ? [request.body] : []),
    passing: captures.passingBody(),
    receivedAt: timeOfId(id),
    judgedAt: request.requestAt,
    replayOf: request.id,
    isGone: () => Date.now() > deadline,
  }
}

/** Reads an answer that nobody waits for as far as it is captured. */
const readAnswer = async (body: Readable, isCaptured: boolean): Promise<'whole' | 'broken off'> => {
  try {
    if (isCaptured) for await (const piece of body) void piece
    else body.destroy()
    return 'whole'
  } catch {
    return 'broken off'
  }
}
