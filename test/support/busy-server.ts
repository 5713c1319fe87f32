import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { startHttpTarget } from './http-target.ts'

/** A target that refuses requests because it is too busy. */
export interface Busy {
  port: number
  /** The error code of an attempt against this server. */
  code: string
  stop(): Promise<void>
}

/** `throttled`: too many requests of this client. `overloaded`: too many requests of all clients. */
export type Load = 'throttled' | 'overloaded'

export const statusOf = (load: Load) => ({ throttled: 429, overloaded: 503 })[load]

/**
 * Starts a server that answers every request as a busy service does. Real servers cannot be made to answer like that.
 */
export const startBusyServer = async (load: Load, headers: Record<string, string>, body = ''): Promise<Busy> => {
  const server = await startHttpTarget()
  const status = statusOf(load)
  server.answerWith((_arrival, response) => response.writeHead(status, headers).end(body))
  return { port: server.port, code: `http_${status}`, stop: server.stop }
}

/** Starts a server that closes every connection as soon as it is open, as sshd does beyond MaxStartups. */
export const startClosingServer = async (): Promise<Busy> => {
  const server = createServer((socket) => socket.resume().end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    code: 'connection_failed',
    stop: async () => {
      server.close()
      await once(server, 'close')
    },
  }
}
