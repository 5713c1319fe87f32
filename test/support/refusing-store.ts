import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Refusal {
  status: number
  headers?: Record<string, string>
  body?: string
}

export interface RefusingStore extends AsyncDisposable {
  port: number
  /** `METHOD path?query` of every request. */
  requests: string[]
  /** The bytes of all bodies so far, those of refused requests included. */
  receivedBytes(): number
  stop(): Promise<void>
}

/**
 * Starts a proxy before a store that refuses some requests, after it has read their bodies. What it forwards reaches the real server.
 * @param refuses returns the answer to a request that is not forwarded
 */
export const startRefusingStore = async (
  targetPort: number,
  refuses: (request: IncomingMessage, url: URL) => Refusal | undefined,
): Promise<RefusingStore> => {
  const requests: string[] = []
  let receivedBytes = 0
  const server = http.createServer((request, response) => {
    const { method = '', url = '', headers } = request
    requests.push(`${method} ${url}`)
    request.on('data', (chunk: Buffer) => {
      receivedBytes += chunk.length
    })
    const refusal = refuses(request, new URL(url, 'http://store'))
    if (refusal) {
      request.resume().on('end', () => response.writeHead(refusal.status, refusal.headers).end(refusal.body))
      return
    }
    const upstream = http.request({ host: '127.0.0.1', port: targetPort, method, path: url, headers, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(response)
    })
    upstream.on('error', () => request.socket.destroy())
    response.on('close', () => upstream.destroy())
    request.pipe(upstream)
  })
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
    receivedBytes: () => receivedBytes,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
