import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import Koa, { type Middleware } from 'koa'
import { UserError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/config.ts'
import type { ConnectionLimit } from './connection-limit.ts'

type ServerConfig = Pick<
  Config,
  'RELAY_PORT' | 'RELAY_WORKER_PORT' | 'RELAY_HOST' | 'RELAY_BASE_URL' | 'RELAY_TRUST_PROXY' | 'RELAY_DRAIN_MS' | 'RELAY_SHUTDOWN_GRACE_MS'
>

// In which a client must send its request headers.
const headersTimeoutMs = 30_000
// Of the request line and headers together. A signed URL with long names needs 4 KiB.
const maxHeaderBytes = 64 * 1_024
// Without any transferred byte, the connection of a running request is closed.
export const idleTimeoutMs = 60_000

/** The setting that names the port: the API and the worker listen on one port each. */
type PortVariable = 'RELAY_PORT' | 'RELAY_WORKER_PORT'

export interface HttpServer {
  baseUrl: string
  port: number
  /** Goes on serving for RELAY_DRAIN_MS, and ends the connection of each request with its answer. */
  drain(): Promise<void>
  /**
   * Stops accepting requests, lets running ones finish within RELAY_SHUTDOWN_GRACE_MS, then closes their connections.
   */
  close(): Promise<void>
}

/**
 * Starts the HTTP server that all surfaces share.
 * @throws `UserError` if the port is in use or the address cannot be bound
 */
export const startHttpServer = async (
  middlewares: Middleware[],
  portVariable: PortVariable,
  config: ServerConfig,
  log: Log,
  connections: Pick<ConnectionLimit, 'attach' | 'middleware'>,
): Promise<HttpServer> => {
  // Use only the last address of X-Forwarded-For: the proxy in front of the relay wrote it. A client can forge the
  // others.
  const app = new Koa({ proxy: config.RELAY_TRUST_PROXY, maxIpsCount: 1 })
  let isDraining = false
  app.use((context, next) => {
    context.set(safeHeaders)
    // A proxy would send its next request on this connection at the moment at which the server closes it.
    if (isDraining) context.set('connection', 'close')
    return next()
  })
  app.use(connections.middleware)
  for (const middleware of middlewares) app.use(middleware)
  app.on('error', (thrown: NodeJS.ErrnoException) => {
    if (isBrokenOff(thrown)) log.debug({ reason: thrown.message, code: thrown.code }, 'a client broke off its request')
    else log.error({ err: thrown }, 'a request failed outside every error handler')
  })

  const handle = app.callback()
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      // No limit for a whole request, because a large document may take long. The idle timeout ends a stalled upload.
      requestTimeout: 0,
      maxHeaderSize: maxHeaderBytes,
      connectionsCheckingInterval: 5_000,
    },
    (request, response) => void handle(request, response),
  )
  connections.attach(server)
  server.timeout = idleTimeoutMs
  await listen(server, portVariable, config)

  const { port } = server.address() as AddressInfo
  return {
    baseUrl: config.RELAY_BASE_URL ?? `http://${isAnyAddress(config.RELAY_HOST) ? '127.0.0.1' : config.RELAY_HOST}:${port}`,
    port,
    drain: async () => {
      isDraining = true
      await pause(config.RELAY_DRAIN_MS)
    },
    close: () => close(server, config.RELAY_SHUTDOWN_GRACE_MS),
  }
}

/** Headers of every response, unless the surface that answers sets its own. */
const safeHeaders = { 'x-content-type-options': 'nosniff', 'content-security-policy': "default-src 'none'; frame-ancestors 'none'" }

const brokenOffCodes = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_HTTP_REQUEST_TIMEOUT'])

/** Returns true if the client closed the connection, or sent bytes that are not HTTP. This is not an error of the relay. */
const isBrokenOff = ({ code }: NodeJS.ErrnoException): boolean =>
  code !== undefined && (brokenOffCodes.has(code) || code.startsWith('HPE_'))

const isAnyAddress = (host: string) => host === '0.0.0.0' || host === '::'

const listen = (server: Server, portVariable: PortVariable, config: ServerConfig) =>
  new Promise<void>((resolve, reject) => {
    const fail = ({ code, message }: NodeJS.ErrnoException) =>
      reject(
        new UserError(
          code === 'EADDRINUSE' ? `Port ${config[portVariable]} is already in use. Set ${portVariable} to a free port.` : message,
        ),
      )
    server.once('error', fail)
    server.listen(config[portVariable], config.RELAY_HOST, () => {
      server.off('error', fail)
      resolve()
    })
  })

const close = (server: Server, graceMs: number) =>
  new Promise<void>((resolve) => {
    const forceClose = setTimeout(() => server.closeAllConnections(), graceMs)
    server.close(() => {
      clearTimeout(forceClose)
      resolve()
    })
    server.closeIdleConnections()
  })
