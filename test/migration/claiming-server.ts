import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** How the bytes of an answer end. An answer that is cut breaks off after half of them. */
export const framings = ['length', 'chunked', 'until closed', 'cut length', 'cut chunked'] as const
type Framing = (typeof framings)[number]

/** A component as the server describes it, and as it sends it. */
export interface Claim {
  /** Header lines about the size in its part of info, without line breaks. Null if info leaves it out. */
  infoSize: string[] | null
  /** Header lines that replace the content type of its part of info. */
  infoType?: string[]
  bytes: Buffer
  framing: Framing
  /** What its second half waits for. */
  rest?: Promise<void>
  /** Further headers of the answer to get. */
  headers?: Record<string, string>
}

/** Returns the line of info that tells a size as the protocol demands it. */
export const told = (size: number | string) => [`X-Content-Length: ${size}`]

const send = async ({ bytes, framing, rest, headers = {} }: Claim, response: ServerResponse) => {
  const type = { 'content-type': 'application/pdf', ...headers }
  const middle = Math.floor(bytes.length / 2)
  // An answer that waits for the end of its connection has no framing of HTTP.
  if (framing === 'until closed') {
    const lines = Object.entries({ ...type, connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`)
    response.socket!.end(Buffer.concat([Buffer.from(`HTTP/1.1 200 OK\r\n${lines.join('')}\r\n`), bytes]))
    return
  }
  response.writeHead(200, { ...type, ...(framing.endsWith('length') && { 'content-length': bytes.length }) })
  if (!framing.startsWith('cut')) {
    response.write(bytes.subarray(0, middle))
    await rest
    response.end(bytes.subarray(middle))
    return
  }
  response.flushHeaders()
  response.write(bytes.subarray(0, middle), () => response.socket?.end())
}

/** Starts a content server whose documents have components that it describes in one way and sends in another. */
export const startClaimingServer = async () => {
  const documents = new Map<string, Record<string, Claim>>()
  const requests: string[] = []
  const server = createServer((request, response) => {
    const [command = '', ...pairs] = (request.url ?? '').slice((request.url ?? '').indexOf('?') + 1).split('&')
    const parameters = Object.fromEntries(pairs.map((pair) => pair.split('=')))
    const [docId, compId] = [parameters['docId'] ?? '', parameters['compId']]
    requests.push([command, docId, compId].filter(Boolean).join(' '))
    if (command === 'serverInfo') return void response.end('contRep="Z1";contRepStatus="running";\r\n')
    const document = documents.get(docId)
    if (!document) return void response.writeHead(404).end()
    if (command === 'get') {
      const claim = document[compId ?? 'data']
      if (!claim) return void response.writeHead(404).end()
      return void send(claim, response)
    }
    const parts = Object.entries(document).flatMap(([name, { infoSize, infoType = ['Content-Type: application/pdf'] }]) => {
      if (!infoSize) return []
      const lines = [`X-compId: ${name}`, ...infoType, 'Content-Length: 0', ...infoSize, 'X-compStatus: online']
      return [`--B\r\n${lines.join('\r\n')}\r\n\r\n\r\n`]
    })
    response.writeHead(200, { 'content-type': 'multipart/form-data; boundary=B' })
    return void response.end(`${parts.length === 0 ? '--B\r\n' : ''}${parts.join('')}--B--\r\n`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/archive`,
    documents,
    /** Every request so far, as `command docId compId`. */
    requests,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
