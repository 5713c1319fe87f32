import { once } from 'node:events'
import { createServer } from 'node:net'
import { until } from './until.ts'

/** Listens on a port of this machine as soon as its program has left it, as another program would. */
export const takePort = async (port: number): Promise<AsyncDisposable> => {
  const listen = async () => {
    const server = createServer().listen({ port, host: '127.0.0.1' })
    return once(server, 'listening').then(
      () => server,
      () => undefined,
    )
  }
  const server = (await until(`port ${port} is taken`, listen))!
  return { [Symbol.asyncDispose]: async () => void server.close() }
}
