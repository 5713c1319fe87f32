import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'

/** A request to a double, before its body is read. */
export interface DoubleRequest {
  method: string
  /** The decoded path. */
  path: string
  /** The URL, with the path as it was sent. */
  url: URL
  headers: IncomingHttpHeaders
  body: IncomingMessage
}

export interface DoubleResponse {
  status: number
  json?: unknown
  /** Instead of JSON. */
  text?: string
  /** Instead of JSON: a stored content, or the part of it that the request asks for. */
  content?: Buffer
  headers?: Record<string, string>
}

export interface Double extends AsyncDisposable {
  port: number
  /** Every request so far, as `METHOD /path`. */
  requests: string[]
  agents: Set<string>
  /**
   * Responses to the next requests whose `METHOD /path` matches, instead of the double's own. If the fault is late, the double has done
   * by then what the request asks for.
   * @param skip the number of matching requests that the double answers itself before
   */
  faults: { match: RegExp; response: DoubleResponse; times: number; isLate?: boolean; skip?: number }[]
  stop(): Promise<void>
}

/** Starts an HTTPS listener for a contract double, which stands in for a service that cannot be run for tests. */
export const startDouble = async (
  certificate: { key: string; cert: string },
  answer: (request: DoubleRequest) => Promise<DoubleResponse>,
): Promise<Double> => {
  const requests: string[] = []
  const agents = new Set<string>()
  const faults: Double['faults'] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', headers } = request
    // Built from the Host header, so that URLs in a response take the same way as the request, for example through a proxy.
    const url = new URL(request.url ?? '', `https://${headers.host}`)
    const path = decodeURIComponent(url.pathname)
    const line = `${method} ${path}`
    requests.push(line)
    agents.add(headers['user-agent'] ?? '')
    const found = faults.find(({ match, times }) => times > 0 && match.test(line))
    const isSkipped = found?.skip !== undefined && found.skip > 0
    if (found && isSkipped) found.skip! -= 1
    const fault = isSkipped ? undefined : found
    if (fault) fault.times -= 1
    try {
      const own = fault && !fault.isLate ? fault.response : await answer({ method, path, url, headers, body: request })
      const answered = fault?.response ?? own
      const { status, json, text: page, headers: more = {} } = answered.content ? partOf(answered.content, headers.range) : answered
      // Read the rest of the body even if it is not needed: a client that is still sending would see a closed connection.
      request.resume()
      if (!request.readableEnded) await once(request, 'end')
      const text = answered.content ? bytesOf(answered.content, headers.range) : (page ?? (json === undefined ? '' : JSON.stringify(json)))
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...more }).end(text)
    } catch {
      request.destroy()
    }
  }
  const server = https.createServer(certificate, (request, response) => void handle(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    agents,
    faults,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** A larger content is not kept: it would count as memory of the connector. */
export const keptMaxBytes = 8 * 1024 * 1024

const spanOf = (range: string | undefined) =>
  /^bytes=(\d+)-(\d+)$/
    .exec(range ?? '')
    ?.slice(1)
    .map(Number)

const bytesOf = (content: Buffer, range: string | undefined): Buffer => {
  const [start = 0, end = content.length - 1] = spanOf(range) ?? []
  return content.subarray(start, end + 1)
}

const partOf = (content: Buffer, range: string | undefined): DoubleResponse => {
  const [start = 0] = spanOf(range) ?? []
  if (range === undefined) return { status: 200 }
  return start < content.length || content.length === 0 ? { status: 206 } : { status: 416 }
}

/** Refuses all requests that match, as something before the double would, until it is stopped. */
export const refuseStep = (double: Double, match: RegExp, status: number) => {
  const fault = { match, response: { status, json: { error: { code: status, message: 'not for you' } } }, times: Infinity }
  double.faults.push(fault)
  return {
    stop: async () => {
      double.faults.splice(double.faults.indexOf(fault), 1)
    },
  }
}

export const textOf = async (body: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of body as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
