import { createHash } from 'node:crypto'
import { once } from 'node:events'
import http, { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'

/** A request that was received completely. */
export interface Arrival {
  method: string
  url: string
  headers: IncomingHttpHeaders
  sizeBytes: number
  sha256: string
  /** The body, or its beginning if it is large. */
  body: Buffer
  socket: Socket
}

export interface HttpTarget extends AsyncDisposable {
  port: number
  origin: string
  arrivals: Arrival[]
  /** Returns the number of connections since the start. */
  connections(): number
  /** Sets the answer to all following requests. Initially 200. */
  answerWith(answer: (arrival: Arrival, response: ServerResponse) => void): void
  stop(): Promise<void>
}

const keptMaxBytes = 1024 * 1024

/** Starts a web server that keeps the requests it receives. */
export const startHttpTarget = async (tls?: https.ServerOptions): Promise<HttpTarget> => {
  let answer: Parameters<HttpTarget['answerWith']>[0] = (_, response) => void response.end('accepted')
  let connections = 0
  const arrivals: Arrival[] = []

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const hash = createHash('sha256')
    const kept: Buffer[] = []
    let sizeBytes = 0
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        hash.update(chunk)
        sizeBytes += chunk.length
        if (sizeBytes <= keptMaxBytes) kept.push(chunk)
      }
    } catch {
      return
    }
    const { method = '', url = '', headers } = request
    const arrival = { method, url, headers, sizeBytes, sha256: hash.digest('hex'), body: Buffer.concat(kept), socket: request.socket }
    arrivals.push(arrival)
    answer(arrival, response)
  }
  const listener = (request: IncomingMessage, response: ServerResponse) => void handle(request, response)
  const server = tls ? https.createServer(tls, listener) : http.createServer(listener)
  server.on('connection', () => {
    connections += 1
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    port,
    origin: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    arrivals,
    connections: () => connections,
    answerWith: (next) => {
      answer = next
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
