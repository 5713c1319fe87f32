import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface ReceivedCall {
  headers: IncomingHttpHeaders
  sizeBytes: number
  sha256: string
}

/** A web server that takes whatever is posted and remembers its digest. */
export const startWebhookSink = async () => {
  const calls: ReceivedCall[] = []
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const hash = createHash('sha256')
    let sizeBytes = 0
    try {
      for await (const chunk of request as AsyncIterable<Buffer>) {
        hash.update(chunk)
        sizeBytes += chunk.length
      }
    } catch {
      // the sender went away in mid-body: nothing was received
      return
    }
    calls.push({ headers: request.headers, sizeBytes, sha256: hash.digest('hex') })
    response.end('taken\n')
  }
  const server = createServer((request, response) => void take(request, response))
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
