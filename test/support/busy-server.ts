import { createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { startHttpTarget } from './http-target.ts'

/** A target that is too busy now. */
export interface Busy {
  port: number
  /** As an attempt ends with it. */
  code: string
  stop(): Promise<void>
}

/** How a target is too busy: it has had too much of us, or of everybody. */
export type Load = 'throttled' | 'overloaded'

export const statusOf = (load: Load) => ({ throttled: 429, overloaded: 503 })[load]

/** Answers every request as a service does that has too much to do. Stands in for a real one, which cannot be brought to it. */
export const startBusyServer = async (load: Load, headers: Record<string, string>, body = ''): Promise<Busy> => {
  const server = await startHttpTarget()
  const status = statusOf(load)
  server.answerWith((_arrival, response) => response.writeHead(status, headers).end(body))
  return { port: server.port, code: `http_${status}`, stop: server.stop }
}

/** Closes every connection as soon as it is open, as sshd does beyond MaxStartups. */
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
