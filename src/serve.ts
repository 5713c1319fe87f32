import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa, { type Middleware } from 'koa'
import type { Config } from './config.ts'
import { UserError } from './errors.ts'
import type { Log } from './log.ts'

type ServerConfig = Pick<
  Config,
  | 'RELAY_PORT'
  | 'RELAY_HOST'
  | 'RELAY_BASE_URL'
  | 'RELAY_TRUST_PROXY'
  | 'RELAY_HTTP_HEADERS_TIMEOUT_MS'
  | 'RELAY_HTTP_IDLE_TIMEOUT_MS'
  | 'RELAY_HTTP_MAX_HEADER_BYTES'
  | 'RELAY_SHUTDOWN_GRACE_MS'
>

export interface Listening {
  baseUrl: string
  port: number
  /** Takes no new request, lets those under way finish within the grace period, then cuts them off. */
  close(): Promise<void>
}

/** One HTTP server for everything we answer: each middleware takes what is its own and passes the rest on. */
export const serve = async (middlewares: Middleware[], config: ServerConfig, log: Log): Promise<Listening> => {
  // of several addresses the last one counts: the proxy in front of us wrote it, the others anybody may have written
  const app = new Koa({ proxy: config.RELAY_TRUST_PROXY, maxIpsCount: 1 })
  for (const middleware of middlewares) app.use(middleware)
  app.on('error', (thrown: NodeJS.ErrnoException) => {
    // a client that hung up is its own affair
    if (thrown.code === 'ECONNRESET' || thrown.code === 'EPIPE' || thrown.code === 'ERR_STREAM_PREMATURE_CLOSE') return
    log.error({ err: thrown }, 'a request failed outside of every handler')
  })

  const answer = app.callback()
  const server = createServer(
    {
      headersTimeout: config.RELAY_HTTP_HEADERS_TIMEOUT_MS,
      // a large document may take long: what ends a dead upload is the idle timeout
      requestTimeout: 0,
      maxHeaderSize: config.RELAY_HTTP_MAX_HEADER_BYTES,
      connectionsCheckingInterval: 5_000,
    },
    (request, response) => void answer(request, response),
  )
  server.timeout = config.RELAY_HTTP_IDLE_TIMEOUT_MS
  await listen(server, config)

  const { port } = server.address() as AddressInfo
  return {
    baseUrl: config.RELAY_BASE_URL ?? `http://${isAnyAddress(config.RELAY_HOST) ? '127.0.0.1' : config.RELAY_HOST}:${port}`,
    port,
    close: () => close(server, config.RELAY_SHUTDOWN_GRACE_MS),
  }
}

const isAnyAddress = (host: string) => host === '0.0.0.0' || host === '::'

const listen = (server: Server, config: ServerConfig) =>
  new Promise<void>((resolve, reject) => {
    const refuse = ({ code, message }: NodeJS.ErrnoException) =>
      reject(new UserError(code === 'EADDRINUSE' ? `port ${config.RELAY_PORT} is in use: choose another RELAY_PORT` : message))
    server.once('error', refuse)
    server.listen(config.RELAY_PORT, config.RELAY_HOST, () => {
      server.off('error', refuse)
      resolve()
    })
  })

const close = (server: Server, graceMs: number) =>
  new Promise<void>((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs)
    server.close(() => {
      clearTimeout(cut)
      resolve()
    })
    server.closeIdleConnections()
  })
