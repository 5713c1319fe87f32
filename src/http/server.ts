import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import Koa, { type Middleware } from 'koa'
import { UserError } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { counterOf, gaugeOf } from '../base/metrics.ts'
import type { Config } from '../config/config.ts'
import { sourceOf } from '../security/address-filter.ts'
import { headersTimeoutMs, maxHeaderBytes, safeHeaders } from './limits.ts'
import { createMalformedRequests, type MalformedRequests } from './malformed-requests.ts'

type ServerConfig = Pick<
  Config,
  PortVariable | 'RELAY_HOST' | 'RELAY_BASE_URL' | 'RELAY_TRUST_PROXY' | 'RELAY_DRAIN_MS' | 'RELAY_SHUTDOWN_GRACE_MS'
>

// Without any transferred byte, the connection of a running request is closed.
export const idleTimeoutMs = 60_000
// Between two requests. Longer than nginx and the load balancers of AWS keep an idle connection by default (60 s): otherwise, one of them may
// send a request on a connection that the relay is closing, must not repeat it, and answers 502.
const keepAliveTimeoutMs = 75_000

/** The setting that names the port: the surfaces, the probes of the API, or those of a worker. */
export type PortVariable = 'RELAY_PORT' | 'RELAY_PROBES_PORT' | 'RELAY_WORKER_PORT'

export interface HttpServer {
  baseUrl: string
  /** Address at which this process reaches itself, whatever RELAY_BASE_URL says. */
  localUrl: string
  port: number
  /** Goes on serving for RELAY_DRAIN_MS, and ends the connection of each request with its answer. */
  drain(): Promise<void>
  /**
   * Stops accepting requests, lets running ones finish within RELAY_SHUTDOWN_GRACE_MS, then closes their connections.
   */
  close(): Promise<void>
}

// Eleven were counted for an answer whose body is compressed, and traces add one.
const closeListenersMax = 20

/**
 * Starts the HTTP server that all surfaces share.
 * @throws `UserError` if the port is in use or the address cannot be bound
 */
export const startHttpServer = async (
  middlewares: Middleware[],
  portVariable: PortVariable,
  config: ServerConfig,
  log: Log,
  connections: Pick<ConnectionLimit, 'attach' | 'admit' | 'middleware'>,
  malformed: Pick<MalformedRequests, 'attach' | 'admit'> = createMalformedRequests({ config, log }),
): Promise<HttpServer> => {
  // Use only the last address of X-Forwarded-For: the proxy in front of the relay wrote it. A client can forge the
  // others.
  const app = new Koa({ proxy: config.RELAY_TRUST_PROXY, maxIpsCount: 1 })
  let isDraining = false
  app.use(async (context, next) => {
    context.set(safeHeaders)
    // Log, limits, traces, the surface and the stream of the body wait for the end of each response. Node takes more than ten for a leak.
    context.res.setMaxListeners(closeListenersMax)
    // A proxy would send its next request on this connection at the moment at which the server closes it.
    if (isDraining) context.set('connection', 'close')
    await next()
    if (context.req.socket.destroyed) dropAnswer(context)
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
      keepAliveTimeout: keepAliveTimeoutMs,
      maxHeaderSize: maxHeaderBytes,
      connectionsCheckingInterval: 5_000,
      // Node would refuse such a request without a word.
      requireHostHeader: false,
    },
    (request, response) => {
      if (connections.admit(request, response) && malformed.admit(request, response)) void handle(request, response)
    },
  )
  server.on('checkContinue', (request, response) => {
    // Behind another answer on the same connection, the response has no socket yet. Node 24.21 would then write "100 Continue" between the
    // header and the body of this answer. Without it, the client sends its body after a moment, and the connection ends with the answer.
    if (response.socket) response.writeContinue()
    server.emit('request', request, response)
  })
  connections.attach(server)
  malformed.attach(server)
  server.timeout = idleTimeoutMs
  await listen(server, portVariable, config)

  const { port } = server.address() as AddressInfo
  const localUrl = `http://${isAnyAddress(config.RELAY_HOST) ? '127.0.0.1' : config.RELAY_HOST}:${port}`
  return {
    baseUrl: config.RELAY_BASE_URL ?? localUrl,
    localUrl,
    port,
    drain: async () => {
      isDraining = true
      await pause(config.RELAY_DRAIN_MS)
    },
    close: () => close(server, config.RELAY_SHUTDOWN_GRACE_MS),
  }
}

/**
 * Drops the answer to a request whose connection was closed before the answer. Koa waits for the connection of a response, which that of a client
 * that does not wait for answers has not got yet: a stream, and the file or the place of an export behind it, would stay open.
 */
const dropAnswer = (context: Koa.Context): void => {
  if (context.body instanceof Readable) context.body.destroy()
  context.respond = false
}

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

export type ConnectionLimitConfig = Pick<
  Config,
  'RELAY_HTTP_MAX_CONNECTIONS' | 'RELAY_HTTP_MAX_CONNECTIONS_PER_ADDRESS' | 'RELAY_TRUST_PROXY'
>

const retryAfterSeconds = 5

// Requests of one connection that run at the same time. A client that does not wait for answers could otherwise start as many as fit into
// a few packets, each of which holds 12 to 25 KiB until it is answered. Browsers, proxies and SAP systems wait.
const maxPipelined = 16

/**
 * Limits the connections of the HTTP server, in all and per address, and the running requests, per connection and per address. All
 * connections of a proxy have its address, so behind a proxy only the requests of each client are counted.
 */
export const createConnectionLimit = (config: ConnectionLimitConfig) => {
  const { RELAY_HTTP_MAX_CONNECTIONS: max, RELAY_HTTP_MAX_CONNECTIONS_PER_ADDRESS: maxPerAddress } = config
  const connectionsOf = new Map<string, number>()
  const requestsOf = new Map<string, number>()
  const pipelined = new WeakMap<Socket, number>()
  let open = 0

  const gauge = gaugeOf('relay_http_connections', 'Open connections of the HTTP server', () => open)
  const refused = counterOf(
    'relay_http_connections_refused_total',
    'Connections and requests that were refused, by limit: total, address, pipelined',
    ['limit'],
  )

  /** Counts one connection or request of an address. @returns a function that ends it, or undefined if there are too many */
  const enter = (perAddress: Map<string, number>, address: string): (() => void) | undefined => {
    const source = sourceOf(address)
    const count = perAddress.get(source) ?? 0
    if (count >= maxPerAddress) {
      refused.inc({ limit: 'address' })
      return undefined
    }
    perAddress.set(source, count + 1)
    return () => {
      const left = perAddress.get(source)! - 1
      if (left === 0) perAddress.delete(source)
      else perAddress.set(source, left)
    }
  }

  return {
    /** Closes connections beyond the limits. */
    attach: (server: Server): void => {
      server.maxConnections = max
      server.on('drop', () => refused.inc({ limit: 'total' }))
      server.on('connection', (socket: Socket) => {
        open += 1
        socket.once('close', () => {
          open -= 1
        })
        if (config.RELAY_TRUST_PROXY) return
        const leave = enter(connectionsOf, socket.remoteAddress ?? '')
        if (leave) socket.once('close', leave)
        else socket.destroy()
      })
    },

    /** Closes a connection that has too many requests running at the same time. @returns false if the request is not to be served */
    admit: ({ socket }: IncomingMessage, response: ServerResponse): boolean => {
      // What the closed connection has sent before is parsed to its end.
      if (socket.destroyed) return false
      const running = pipelined.get(socket) ?? 0
      if (running >= maxPipelined) {
        refused.inc({ limit: 'pipelined' })
        socket.destroy()
        return false
      }
      pipelined.set(socket, running + 1)
      response.once('close', () => pipelined.set(socket, pipelined.get(socket)! - 1))
      return true
    },

    /** Refuses requests beyond the limit of their address. */
    middleware: (async (context, next) => {
      const leave = enter(requestsOf, context.ip)
      if (leave) {
        context.res.once('close', leave)
        return next()
      }
      const requestId = newId()
      const message = 'Too many requests of your address are running. Try again shortly.'
      context.status = 503
      context.set({
        'x-relay-request-id': requestId,
        'retry-after': String(retryAfterSeconds),
        'x-errordescription': `unavailable: ${message}`,
        connection: 'close',
      })
      context.body = { error: { code: 'unavailable', message, request_id: requestId } }
      return undefined
    }) satisfies Middleware,

    metrics: [gauge, refused],
  }
}

type ConnectionLimit = ReturnType<typeof createConnectionLimit>

// First segment of the target as it was sent. A proxy may send the absolute form.
const firstSegment = /^(?:[a-z]+:\/\/[^/?]*)?\/([^/?#]*)/i

/**
 * Passes each request to the surface that is named by the first segment of its path, and every other request to the next middleware. A
 * surface does the same with what it does not serve below its segment.
 */
export const dispatch = (surfaces: Record<string, Middleware>): Middleware => {
  const bySegment = new Map(Object.entries(surfaces))
  return (context, next) => {
    const surface = bySegment.get(firstSegment.exec(context.req.url ?? '')?.[1] ?? '')
    return surface ? surface(context, next) : next()
  }
}
