import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface ReceivedCall {
  headers: IncomingHttpHeaders
  sizeBytes: number
  sha256: string
}

/** Starts a web server that accepts every request and records the size and digest of its body. */
export const startWebhookSink = async () => {
  const calls: ReceivedCall[] = []
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const hash = createHash('sha256')
    let sizeBytes = 0
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        hash.update(chunk)
        sizeBytes += chunk.length
      }
    } catch {
      // The sender disconnected before the end of the body. Do not record the request.
      return
    }
    calls.push({ headers: request.headers, sizeBytes, sha256: hash.digest('hex') })
    response.end('received\n')
  }
  const server = createServer((request, response) => void receive(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/documents`,
    calls,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
