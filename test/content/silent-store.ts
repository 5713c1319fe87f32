import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'

export interface SilentStore extends AsyncDisposable {
  endpoint: string
  /** The requests that have arrived, of a store that reads them: method, and query. */
  requests: string[]
}

const listen = async (server: Server, requests: string[] = []): Promise<SilentStore> => {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  }
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, [Symbol.asyncDispose]: stop }
}

/** Starts a server that accepts connections, and hands them over: it answers what the caller makes it answer. */
export const startSilentServer = (onConnection: (socket: Socket) => void): Promise<SilentStore> => listen(createServer(onConnection))

/** Starts an object store that answers requests as the caller has it. */
export const startStoreDouble = (
  answer: (request: IncomingMessage, response: ServerResponse, number: number) => void,
): Promise<SilentStore> => {
  const requests: string[] = []
  const server = createHttpServer((request, response) => {
    requests.push(`${request.method} ${request.url?.split('?')[1] ?? ''}`)
    response.on('error', () => {})
    answer(request, response, requests.length)
  })
  return listen(server, requests)
}
