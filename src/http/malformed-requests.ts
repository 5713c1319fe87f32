import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Counter, type Metric } from 'prom-client'
import { freeMemory } from '../base/free-memory.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { plainText, plainValue } from '../base/text.ts'
import type { Config } from '../config/config.ts'
import { maxHeaderBytes, safeHeaders } from './limits.ts'
import { explainMalformed, malformedReasons, readMalformedHead, type Explanation, type MalformedHead } from './malformed-head.ts'

/** A request that is refused before any surface can serve it. */
export interface MalformedRequest extends MalformedHead {
  id: string
  sourceIp: string
  /** What is wrong with it, in words for the sender. */
  message: string
}

/** How a request is refused. */
export interface MalformedAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

export interface MalformedRequestsOptions {
  config: Pick<Config, 'RELAY_TRUST_PROXY'>
  log: Log
  /** Answers and records a malformed request in the form of its surface. @returns undefined if no surface has a form of its own for it */
  refuse?: (request: MalformedRequest) => MalformedAnswer | undefined
}

export interface MalformedRequests {
  /** Refuses what the parser of a server refuses. */
  attach(server: Server): void
  /** @returns false if the request was refused, although the parser has read it */
  admit(request: IncomingMessage, response: ServerResponse): boolean
  metrics: Metric[]
}

interface ParserError extends NodeJS.ErrnoException {
  reason?: string
  rawPacket?: Buffer
  bytesParsed?: number
}

// A client that is still sending would see a reset connection instead of the answer.
const lingerMs = 2_000
const pathMaxCharacters = 500
const addressMaxCharacters = 45
const nothing = Buffer.alloc(0)

const statuses: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, HPE_CHUNK_EXTENSIONS_OVERFLOW: 413, ERR_HTTP_REQUEST_TIMEOUT: 408 }

/** @param method of the request: the answer to a HEAD has no body, whatever its length says */
const textOf = ({ status, headers, body }: MalformedAnswer, method?: string): string => {
  const lines = Object.entries({ ...headers, connection: 'close', 'content-length': Buffer.byteLength(body) })
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...lines.map(([name, value]) => `${name}: ${value}`),
    '',
    method === 'HEAD' ? '' : body,
  ].join('\r\n')
}

const joined = (headers: IncomingMessage['headers']): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? []].flat().join(', ')]))

// RFC 3986, 3.2.2 and 3.2.3.
const hostPattern = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i

/** Returns why a proxy and the relay could take a request for one to different hosts (RFC 9112, 3.2), or undefined. */
const problemOfHost = ({ httpVersion, rawHeaders, headers: { host } }: IncomingMessage): string | undefined => {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) if (rawHeaders[at]!.toLowerCase() === 'host') hosts += 1
  if (hosts > 1) return 'the header Host is there more than once'
  if (host === undefined) return httpVersion === '1.1' ? 'the header Host is missing, which HTTP/1.1 requires' : undefined
  return hostPattern.test(host) ? undefined : 'the header Host is no name or address with a port'
}

/**
 * Refuses with a reason what Node would refuse without a trace: request lines with blanks or umlauts, long headers, and whatever else is no
 * HTTP/1.1. Each such request is counted, logged and answered, and its surface records it.
 */
export const createMalformedRequests = ({ config, log, refuse }: MalformedRequestsOptions): MalformedRequests => {
  const refused = new Counter({
    name: 'relay_http_malformed_requests_total',
    help: 'Requests that are no HTTP/1.1 as it is served here, by reason',
    labelNames: ['reason'],
    registers: [],
  })
  for (const reason of malformedReasons) refused.inc({ reason }, 0)
  const answered = new WeakSet<Socket>()
  const running = new WeakMap<Socket, Set<ServerResponse>>()
  // The parser reports an error with the packet in which it stands. The head may have begun in an earlier one.
  const begun = new WeakMap<Socket, Buffer>()
  const hasEndedHead = new WeakSet<Socket>()

  /** Keeps the bytes of a head that is not complete. Called when the parser has read the packet, and has copied what belongs to a body. */
  const keep = (socket: Socket, packet: Buffer): void => {
    const isHead = !hasEndedHead.delete(socket) && !running.get(socket)?.size
    if (isHead) begun.set(socket, Buffer.concat([begun.get(socket) ?? nothing, packet]).subarray(0, maxHeaderBytes))
    else begun.delete(socket)
    freeMemory(packet)
  }

  const sourceIpOf = ({ remoteAddress = '' }: Socket, headers: Record<string, string>): string => {
    const forwarded = config.RELAY_TRUST_PROXY ? headers['x-forwarded-for']?.split(',').at(-1)?.trim() : undefined
    return plainValue(forwarded || remoteAddress, addressMaxCharacters)
  }

  /** Counts, logs and records a refusal. @returns how it is answered */
  const refusalOf = (
    socket: Socket,
    head: MalformedHead | undefined,
    { reason, message }: Explanation,
    status: number,
  ): MalformedAnswer => {
    refused.inc({ reason })
    const id = newId()
    const sourceIp = sourceIpOf(socket, head?.headers ?? {})
    const facts = { event: 'http.malformed', request_id: id, code: reason, reason: message, source_ip: sourceIp }
    // Without the query, which has the signature. Anybody can send what is no request at all.
    if (head)
      log.info({ ...facts, method: head.method, path: plainText(head.target.split('?', 1)[0]!, pathMaxCharacters) }, 'malformed request')
    else log.debug(facts, 'malformed request')
    const own = head && refuse?.({ ...head, id, sourceIp, message })
    if (own) return own
    return {
      status,
      headers: {
        ...safeHeaders,
        'content-type': 'application/json',
        'x-relay-request-id': id,
        'x-errordescription': `invalid_request: ${message}`,
      },
      body: JSON.stringify({ error: { code: 'invalid_request', message, request_id: id } }),
    }
  }

  const onError = (error: ParserError, socket: Socket): void => {
    if (answered.has(socket)) return
    answered.add(socket)
    const earlier = begun.get(socket) ?? nothing
    const bytes = Buffer.concat([earlier, error.rawPacket ?? nothing])
    const isRefused = error.code?.startsWith('HPE_') || error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
    // The connection itself has failed, or nothing has arrived: a probe of a load balancer, or a connection in reserve.
    if (!isRefused || !socket.writable || bytes.length === 0) return void socket.destroy()
    const responses = [...(running.get(socket) ?? [])]
    const errorAt = earlier.length + (error.bytesParsed ?? error.rawPacket?.length ?? 0)
    const explanation = explainMalformed(error, bytes, errorAt)
    // The surface that is serving a request records that its body breaks off.
    const head = responses.length > 0 && explanation.reason === 'body' ? undefined : readMalformedHead(bytes, errorAt)
    const answer = refusalOf(socket, head, explanation, statuses[error.code!] ?? 400)
    // It would stand between the bytes of another answer.
    if (responses.some(({ headersSent }) => headersSent)) return void socket.destroy()
    socket.end(textOf(answer, head?.method))
    if (responses.length > 0) return socket.destroySoon()
    const linger = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('close', () => clearTimeout(linger)).once('end', () => socket.destroy())
  }

  const refuseRead = ({ socket, method = '', url = '', headers }: IncomingMessage, explanation: Explanation, status: number) =>
    refusalOf(socket, { method, target: url, headers: joined(headers) }, explanation, status)

  const respond = (request: IncomingMessage, response: ServerResponse, explanation: Explanation, status: number): void => {
    const { status: answeredStatus, headers, body } = refuseRead(request, explanation, status)
    request.resume()
    response.sendDate = false
    response.writeHead(answeredStatus, { ...headers, connection: 'close' }).end(body)
  }

  return {
    attach: (server) => {
      server.on('connection', (socket: Socket) => socket.on('data', (packet: Buffer) => keep(socket, packet)))
      server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
        hasEndedHead.add(socket)
        const responses = running.get(socket) ?? new Set()
        running.set(socket, responses.add(response))
        response.once('close', () => responses.delete(response))
      })
      server.on('clientError', onError as (error: Error, socket: unknown) => void)
      server.on('checkExpectation', (request, response) =>
        respond(request, response, { reason: 'expectation', message: 'the header Expect asks for something else than 100-continue' }, 417),
      )
      server.on('connect', (request, socket) => {
        const explanation: Explanation = { reason: 'method', message: 'the relay is no proxy: the method CONNECT is not served' }
        socket.end(textOf(refuseRead(request, explanation, 405)))
      })
    },

    admit: (request, response) => {
      const message = problemOfHost(request)
      if (message === undefined) return true
      respond(request, response, { reason: 'host', message }, 400)
      return false
    },

    metrics: [refused],
  }
}
