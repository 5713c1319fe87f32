import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Middleware } from 'koa'
import { Counter, Gauge, type Metric } from 'prom-client'
import { newId } from '../base/ids.ts'
import type { Config } from '../config/config.ts'
import { sourceOf } from '../security/source-address.ts'

export type ConnectionLimitConfig = Pick<
  Config,
  'RELAY_HTTP_MAX_CONNECTIONS' | 'RELAY_HTTP_MAX_CONNECTIONS_PER_ADDRESS' | 'RELAY_TRUST_PROXY'
>

export interface ConnectionLimit {
  /** Closes connections beyond the limits. */
  attach(server: Server): void
  /** Refuses requests beyond the limit of their address, if a proxy makes all connections. */
  middleware: Middleware
  metrics: Metric[]
}

const retryAfterSeconds = 5

/**
 * Limits the connections of the HTTP server, in all and per address. All connections of a proxy have its address, so behind a proxy the
 * limit per address counts the running requests of each client instead.
 */
export const createConnectionLimit = (config: ConnectionLimitConfig): ConnectionLimit => {
  const { RELAY_HTTP_MAX_CONNECTIONS: max, RELAY_HTTP_MAX_CONNECTIONS_PER_ADDRESS: maxPerAddress } = config
  const perAddress = new Map<string, number>()
  let open = 0

  const gauge = new Gauge({
    name: 'relay_http_connections',
    help: 'Open connections of the HTTP server',
    registers: [],
    collect() {
      this.set(open)
    },
  })
  const refused = new Counter({
    name: 'relay_http_connections_refused_total',
    help: 'Connections (behind a proxy: also requests) that were refused, by limit: total, address',
    labelNames: ['limit'],
    registers: [],
  })

  /** Counts one connection or request of an address. @returns a function that ends it, or undefined if there are too many */
  const enter = (address: string): (() => void) | undefined => {
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
    attach: (server) => {
      server.maxConnections = max
      server.on('drop', () => refused.inc({ limit: 'total' }))
      server.on('connection', (socket: Socket) => {
        open += 1
        socket.once('close', () => {
          open -= 1
        })
        if (config.RELAY_TRUST_PROXY) return
        const leave = enter(socket.remoteAddress ?? '')
        if (leave) socket.once('close', leave)
        else socket.destroy()
      })
    },

    middleware: async (context, next) => {
      if (!config.RELAY_TRUST_PROXY) return next()
      const leave = enter(context.ip)
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
    },

    metrics: [gauge, refused],
  }
}
