import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'

/** A request as a double sees it, its body not yet read. */
export interface Asked {
  method: string
  /** Decoded. */
  path: string
  /** As it came. */
  url: URL
  headers: IncomingHttpHeaders
  body: IncomingMessage
}

export interface Said {
  status: number
  json?: unknown
  headers?: Record<string, string>
}

export interface Double {
  port: number
  /** Every request so far, as `METHOD /path`. */
  asked: string[]
  agents: Set<string>
  /** Answers the next requests whose `METHOD /path` fits, in place of the double. */
  faults: { match: RegExp; say: Said; times: number }[]
  stop(): Promise<void>
}

/** An HTTPS listener for contract doubles, which stand in for services nobody can run at home. */
export const startDouble = async (certificate: { key: string; cert: string }, answer: (asked: Asked) => Promise<Said>): Promise<Double> => {
  const asked: string[] = []
  const agents = new Set<string>()
  const faults: Double['faults'] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', headers } = request
    // by the address it was called under, so that what it names in an answer is reached the same way
    const url = new URL(request.url ?? '', `https://${headers.host}`)
    const path = decodeURIComponent(url.pathname)
    const line = `${method} ${path}`
    asked.push(line)
    agents.add(headers['user-agent'] ?? '')
    const fault = faults.find(({ match, times }) => times > 0 && match.test(line))
    if (fault) fault.times -= 1
    try {
      const { status, json, headers: more = {} } = fault?.say ?? (await answer({ method, path, url, headers, body: request }))
      // what was not wanted is read all the same: a client that still sends would see a cut connection
      request.resume()
      if (!request.readableEnded) await once(request, 'end')
      const text = json === undefined ? '' : JSON.stringify(json)
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...more }).end(text)
    } catch {
      request.destroy()
    }
  }
  const server = https.createServer(certificate, (request, response) => void handle(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    agents,
    faults,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export const textOf = async (body: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of body as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
