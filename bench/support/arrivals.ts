import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A document at the target: when its last byte was received, by `performance.now()`, and its id in the relay. */
export interface Arrival {
  atMs: number
  documentId: string
}

/** Starts a web server that accepts documents, and tells when each has arrived. */
export const startArrivals = async () => {
  const expected = new Map<string, (arrival: Arrival) => void>()
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    request.resume()
    await once(request, 'end')
    const docId = String(request.headers['x-relay-doc-id'])
    expected.get(docId)?.({ atMs: performance.now(), documentId: String(request.headers['x-relay-document-id']) })
    expected.delete(docId)
    response.end()
  }
  const server = createServer((request, response) => void receive(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/documents`,
    /** Waits for a document. Call it before the document is sent. */
    arrival: (docId: string): Promise<Arrival> => new Promise((resolve) => expected.set(docId, resolve)),
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
