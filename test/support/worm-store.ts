import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** How a store refuses a request. */
export interface StoreRefusal {
  status: number
  code: string
  message?: string
}

/** A store that keeps what it has taken: write once, read many. */
export interface WormStore {
  port: number
  /** Whether connections are closed instead of the answers to requests that have stored something. Initially not. */
  loseAnswers(loses: boolean): void
  /** How reading is refused. Initially it is not. */
  refuseReading(refusal: StoreRefusal | undefined): void
  /** Returns the number of answers that were lost. */
  lost(): number
  /** `METHOD path?query` of every request. */
  requests: string[]
  stop(): Promise<void>
}

interface Dialect {
  /** Whether a request, once answered with success, has stored what it names. */
  stores(method: string, query: URLSearchParams): boolean
  /** Returns what a request names. */
  nameOf(url: URL): string
  headers(refusal: StoreRefusal): Record<string, string>
}

/** The protocols between which the difference matters here. */
const dialects = {
  s3: {
    stores: (method, query) =>
      (method === 'PUT' && !query.has('partNumber') && !query.has('tagging')) || (method === 'POST' && query.has('uploadId')),
    nameOf: ({ pathname }) => pathname,
    headers: () => ({}),
  },
  blob: {
    stores: (method, query) => method === 'PUT' && (!query.has('comp') || query.get('comp') === 'blocklist'),
    nameOf: ({ pathname }) => pathname,
    headers: ({ code }) => ({ 'x-ms-error-code': code, 'x-ms-request-id': 'of-the-policy' }),
  },
  'content-server': {
    stores: (method) => method === 'PUT',
    nameOf: ({ searchParams }) => `${searchParams.get('docId')}/${searchParams.get('compId')}`,
    headers: ({ code }) => ({ 'X-ErrorDescription': code }),
  },
} satisfies Record<string, Dialect>

/**
 * Starts a proxy before a store that enforces a policy, as immutable containers, locked objects and write-only accounts do: a name that is
 * stored cannot be written again. What it forwards is stored by the real server.
 * @param refusal is the answer to a write to such a name
 */
export const startWormStore = async (targetPort: number, protocol: keyof typeof dialects, refusal: StoreRefusal): Promise<WormStore> => {
  const dialect: Dialect = dialects[protocol]
  const stored = new Set<string>()
  const requests: string[] = []
  let reading: StoreRefusal | undefined
  let losesAnswers = false
  let lost = 0

  const refuse = (request: IncomingMessage, response: ServerResponse, refused: StoreRefusal) => {
    const { status, code, message = 'This operation is not permitted by the policy.' } = refused
    const body = `<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`
    request
      .resume()
      .on('end', () => response.writeHead(status, { 'content-type': 'application/xml', ...dialect.headers(refused) }).end(body))
  }
  const server = http.createServer((request, response) => {
    const { method = '', url = '', headers } = request
    const parsed = new URL(url, 'http://store')
    const name = dialect.nameOf(parsed)
    requests.push(`${method} ${url}`)
    const isRead = method === 'GET' || method === 'HEAD'
    const isUndone = method === 'DELETE'
    if (isRead && reading) return refuse(request, response, reading)
    if (!isRead && !isUndone && stored.has(name)) return refuse(request, response, refusal)
    const upstream = http.request({ host: '127.0.0.1', port: targetPort, method, path: url, headers, agent: false }, (answer) => {
      const { statusCode = 0 } = answer
      if (statusCode < 300 && dialect.stores(method, parsed.searchParams)) {
        stored.add(name)
        if (losesAnswers) {
          lost += 1
          request.socket.resetAndDestroy()
          return
        }
      }
      response.writeHead(statusCode, answer.headers)
      answer.pipe(response)
    })
    upstream.on('error', () => response.destroy())
    response.on('close', () => upstream.destroy())
    request.pipe(upstream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    loseAnswers: (loses) => {
      losesAnswers = loses
    },
    refuseReading: (next) => {
      reading = next
    },
    lost: () => lost,
    requests,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
