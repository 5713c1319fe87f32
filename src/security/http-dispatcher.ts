import http, { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import https from 'node:https'
import { Readable } from 'node:stream'
import { Dispatcher, errors } from 'undici'
import { headOf } from './answer-head.ts'

/** The agents of Node's http module that open the connections. */
export interface HttpAgents {
  http: http.Agent
  https: https.Agent
  close(): Promise<void>
}

const defaultTimeoutMs = 300_000

/**
 * Sends the requests of undici with Node's http module. undici's own client closes the connection, and forgets the answer, if a server sends
 * an informational answer that was not asked for (IIS: 100 to every POST), folds a header, or ends its lines without CR. A target that has taken the
 * document then gets it again and again.
 *
 * Once the status line has arrived, there is an answer with that status, whatever happens to the rest: its headers are missing then, and its
 * body fails with the error.
 */
export class HttpDispatcher extends Dispatcher {
  readonly #agents: HttpAgents

  constructor(agents: HttpAgents) {
    super()
    this.#agents = agents
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    send(this.#agents, options, handler)
    return true
  }

  /** Closes the connections after the running requests have ended. */
  override close(): Promise<void>
  override close(callback: () => void): void
  override close(callback?: () => void): Promise<void> | void {
    const closed = this.#agents.close()
    return callback ? void closed.then(callback) : closed
  }
}

const send = (agents: HttpAgents, options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) => {
  const { method, path, body, headersTimeout, bodyTimeout } = options
  const { protocol, hostname, port } = new URL(String(options.origin))
  const isTls = protocol === 'https:'
  let request: ClientRequest | undefined
  let response: IncomingMessage | undefined
  let isOver = false
  let reason: Error | null = null
  const clock = createClock((error) => fail(error))

  const finish = () => {
    isOver = true
    clock.stop()
    if (body instanceof Readable) body.destroy()
    // The target has answered before it had everything. The rest would be taken for another request.
    if (request?.writableEnded === false) request.destroy()
  }
  const fail = (error: Error) => {
    if (isOver) return
    const status = response || reason || !request ? undefined : headOf(request)?.status()
    finish()
    request?.destroy()
    if (status !== undefined) handler.onResponseStart?.(controller, status, {}, '')
    handler.onResponseError?.(controller, error)
  }
  const controller: Dispatcher.DispatchController = {
    get aborted() {
      return reason !== null
    },
    get reason() {
      return reason
    },
    get paused() {
      return response?.isPaused() ?? false
    },
    abort: (error) => {
      reason ??= error
      fail(error)
    },
    pause: () => {
      response?.pause()
      clock.stop()
    },
    resume: () => {
      response?.resume()
      if (!isOver) clock.start(bodyTimeout, errors.BodyTimeoutError)
    },
  }

  const waitForHead = () => {
    if (!isOver && !response) clock.start(headersTimeout, errors.HeadersTimeoutError)
  }
  const open = (): ClientRequest => {
    const opened = (isTls ? https : http).request({
      agent: isTls ? agents.https : agents.http,
      host: hostname,
      port: port || (isTls ? 443 : 80),
      method,
      path,
      headers: headersOf(options.headers),
    })
    const lose = (error: Error) => {
      if (isOver || opened !== request) return
      if (!response && isSafe(options) && isClosedByServer(opened)) request = open().end()
      else fail(error)
    }
    opened.on('error', lose)
    opened.on('socket', waitForHead)
    // After a 101 with the headers of a protocol, there is no other event.
    opened.on('close', () => {
      if (!response) lose(Object.assign(new Error('the connection was closed before an answer'), { code: 'ECONNRESET' }))
    })
    opened.on('response', receive)
    return opened
  }
  const receive = (answer: IncomingMessage) => {
    if (isOver) return
    if (answer.statusCode === 101) return fail(switched())
    response = answer
    clock.start(bodyTimeout, errors.BodyTimeoutError)
    answer.on('error', fail)
    answer.on('end', () => {
      if (isOver) return
      finish()
      handler.onResponseEnd?.(controller, answer.trailers)
    })
    handler.onResponseStart?.(controller, answer.statusCode ?? 0, valuesOf(answer.rawHeaders), answer.statusMessage ?? '')
    answer.on('data', (chunk: Buffer) => {
      if (isOver) return
      clock.start(bodyTimeout, errors.BodyTimeoutError)
      handler.onResponseData?.(controller, chunk)
    })
  }

  try {
    handler.onRequestStart?.(controller, null)
    if (isOver) return
    request = open()
  } catch (thrown) {
    fail(thrown as Error)
    return
  }
  if (body instanceof Readable) sendStream(request, body, waitForHead).catch(fail)
  else request.end(body ?? undefined)
}

/** Tells whether a request may be sent twice. */
const isSafe = ({ method, body }: Dispatcher.DispatchOptions): boolean => (method === 'GET' || method === 'HEAD') && !body

/**
 * Tells whether a request was lost because the server closed a kept connection while the request was on its way (RFC 9112, 9.3.1). The next
 * attempt takes another connection; a new one is not a kept one.
 */
const isClosedByServer = (request: ClientRequest): boolean => request.reusedSocket && headOf(request)?.status() === undefined

const switched = () => Object.assign(new Error('the server switched to a protocol that nobody asked for'), { code: 'ECONNRESET' })

/** Writes a stream as fast as the server takes it. @param onWritten is called for each chunk: no answer is expected while it is sent */
const sendStream = async (request: ClientRequest, body: Readable, onWritten: () => void): Promise<void> => {
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (request.destroyed) return
    if (!request.write(chunk)) await drained(request)
    onWritten()
  }
  request.end()
}

const drained = (request: ClientRequest) =>
  new Promise<void>((resolve) => {
    const done = () => {
      request.off('drain', done).off('close', done)
      resolve()
    }
    request.on('drain', done).on('close', done)
    if (request.destroyed) done()
  })

/** Creates the one timeout that runs at a time. */
const createClock = (onTimeout: (error: Error) => void) => {
  let timer: NodeJS.Timeout | undefined
  const stop = () => clearTimeout(timer)
  return {
    stop,
    /** @param timeoutMs null for the default, 0 for none */
    start: (timeoutMs: number | null | undefined, TimeoutError: new () => Error) => {
      stop()
      if (timeoutMs !== 0) timer = setTimeout(() => onTimeout(new TimeoutError()), timeoutMs ?? defaultTimeoutMs)
    },
  }
}

const headersOf = (headers: Dispatcher.DispatchOptions['headers']): http.OutgoingHttpHeaders => {
  if (!headers) return {}
  if (Array.isArray(headers) || Symbol.iterator in headers) throw new TypeError('headers must be an object')
  return headers
}

/** Returns the values of each header: a list if there are several. */
const valuesOf = (rawHeaders: string[]): IncomingHttpHeaders => {
  const values = new Map<string, string | string[]>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    const known = values.get(name)
    values.set(name, known === undefined ? rawHeaders[at + 1]! : [known, rawHeaders[at + 1]!].flat())
  }
  return Object.fromEntries(values)
}
