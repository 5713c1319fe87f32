import dns from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import net, { type LookupFunction, type Socket } from 'node:net'
import tls from 'node:tls'
import { Agent, type Dispatcher } from 'undici'
import { createAddressJudge } from './address.ts'

/** The only way out of the relay: whatever opens a socket to a destination takes it from here. */
export interface OutboundGuard {
  /** A connected TCP socket. @throws BlockedAddressError, or the system's own error (ECONNREFUSED, ENOTFOUND, ETIMEDOUT, ...) */
  connect(options: { host: string; port: number; timeoutMs: number; signal?: AbortSignal }): Promise<Socket>
  /** TLS over a socket of `connect`, for protocols that change over in mid-connection. It takes the socket along when it ends. */
  secure(
    socket: Socket,
    options: { host: string; timeoutMs: number; caCertificate?: string | undefined; signal?: AbortSignal },
  ): Promise<Socket>
  /** For undici's `request`. Shared between callers, so that connections are used again: do not close it. */
  dispatcher(options: ConnectionOptions): Dispatcher
  /** For clients built on Node's own http, like the AWS SDK. Shared between callers: do not destroy them. */
  agents(options: ConnectionOptions): { http: http.Agent; https: https.Agent }
  /** Lets running requests end, then closes every connection that was kept. */
  close(): Promise<void>
}

interface ConnectionOptions {
  /** Name look-up, TCP and TLS together. */
  connectTimeoutMs: number
  /** PEM. Trusted in place of the public authorities, not beside them. */
  caCertificate?: string | undefined
}

/** Where a connection would have led is not for a destination to reach. */
export class BlockedAddressError extends Error {
  readonly code = 'blocked_address'

  constructor(host: string) {
    super(
      `${host} leads to an address that destinations may not reach. If it is a private one that is meant, the operator of this relay names its range in RELAY_ALLOWED_PRIVATE_CIDRS`,
    )
    this.name = 'BlockedAddressError'
  }
}

// Certificates of destinations differ, and each needs connections of its own; the one unused for longest gives way.
const poolsAtMost = 64

/**
 * Judges every address after the name look-up and dials exactly the one it judged, so a name that resolves differently a
 * moment later (DNS rebinding) gains nothing.
 * @param lookup the resolver, replaced by tests only
 */
export const createOutboundGuard = ({
  allowedCidrs,
  lookup = dns.lookup,
}: {
  allowedCidrs: string[]
  lookup?: LookupFunction
}): OutboundGuard => {
  const mayReach = createAddressJudge(allowedCidrs)

  const judgedLookup: LookupFunction = (host, options, done) =>
    lookup(host, { ...options, all: true }, (error, found) => {
      if (error) return done(error, [])
      const addresses = (Array.isArray(found) ? found : [{ address: found, family: net.isIP(found) }]).filter(({ address }) =>
        mayReach(address),
      )
      const [first] = addresses
      if (!first) return done(new BlockedAddressError(host), [])
      return options.all ? done(null, addresses) : done(null, first.address, first.family)
    })

  const dial = async (host: string, port: number, limit: AbortSignal): Promise<Socket> => {
    // a literal address never sees the look-up function
    if (net.isIP(host) && !mayReach(host)) throw new BlockedAddressError(host)
    limit.throwIfAborted()
    const socket = net.connect({ host, port, lookup: judgedLookup, autoSelectFamily: true, noDelay: true, keepAlive: true })
    await opened(socket, 'connect', limit)
    if (!mayReach(socket.remoteAddress ?? '')) {
      socket.destroy()
      throw new BlockedAddressError(host)
    }
    return socket
  }

  const connect: OutboundGuard['connect'] = async ({ host, port, timeoutMs, signal }) => {
    const limit = timeLimit(host, port, timeoutMs, signal)
    return dial(host, port, limit).finally(() => limit.stop())
  }

  const secure: OutboundGuard['secure'] = async (socket, { host, timeoutMs, caCertificate, signal }) => {
    const limit = timeLimit(host, socket.remotePort ?? 0, timeoutMs, signal)
    return overTls(socket, { host, caCertificate }, limit).finally(() => limit.stop())
  }

  const connectSecurely = async (
    host: string,
    port: number,
    servername: string | undefined,
    { connectTimeoutMs, caCertificate }: ConnectionOptions,
  ): Promise<Socket> => {
    const limit = timeLimit(host, port, connectTimeoutMs)
    try {
      return await overTls(await dial(host, port, limit), { host, servername, caCertificate, ALPNProtocols: ['http/1.1'] }, limit)
    } finally {
      limit.stop()
    }
  }

  const dispatchers = createPools((options) => {
    return new Agent({
      connect: ({ hostname, port, protocol, servername }, done) => {
        const host = withoutBrackets(hostname)
        const socket =
          protocol === 'https:'
            ? connectSecurely(host, Number(port || 443), servername, options)
            : connect({ host, port: Number(port || 80), timeoutMs: options.connectTimeoutMs })
        socket.then(
          (opening) => done(null, opening),
          (error: Error) => done(error, null),
        )
      },
    })
  })

  const agents = createPools((options) => {
    const pair = { http: new http.Agent({ keepAlive: true }), https: new https.Agent({ keepAlive: true }) }
    pair.http.createConnection = ({ host, port }, done) => {
      handOver(connect({ host: withoutBrackets(host ?? ''), port: Number(port ?? 80), timeoutMs: options.connectTimeoutMs }), done)
      return undefined
    }
    pair.https.createConnection = ({ host, port, servername }: https.RequestOptions, done) => {
      handOver(connectSecurely(withoutBrackets(host ?? ''), Number(port ?? 443), servername, options), done)
      return undefined
    }
    return {
      ...pair,
      close: async () => {
        for (const agent of [pair.http, pair.https]) {
          // destroy() would cut running requests short
          agent.maxFreeSockets = 0
          for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy()
        }
      },
    }
  })

  return {
    connect,
    secure,
    dispatcher: dispatchers.take,
    agents: agents.take,
    close: async () => {
      await Promise.all([dispatchers.close(), agents.close()])
    },
  }
}

const overTls = async (
  socket: Socket,
  {
    host,
    servername,
    caCertificate,
    ALPNProtocols,
  }: Pick<tls.ConnectionOptions, 'servername' | 'ALPNProtocols'> & {
    host: string
    caCertificate?: string | undefined
  },
  limit: AbortSignal,
): Promise<Socket> => {
  const secured = tls.connect({
    socket,
    host,
    ...(net.isIP(host) ? {} : { servername: servername || host }),
    ...(caCertificate && { ca: caCertificate }),
    ...(ALPNProtocols && { ALPNProtocols }),
    minVersion: 'TLSv1.2',
    // said aloud, because NODE_TLS_REJECT_UNAUTHORIZED would otherwise switch it off for everyone
    rejectUnauthorized: true,
  })
  await opened(secured, 'secureConnect', limit)
  return secured
}

const withoutBrackets = (host: string) => host.replace(/^\[|\]$/g, '')

const handOver = (socket: Promise<Socket>, done: ((error: Error | null, stream: Socket) => void) | undefined) => {
  socket.then(
    (opening) => done?.(null, opening),
    // Node's own callers look at the error first; the type wants a stream all the same
    (error: Error) => (done as ((error: Error) => void) | undefined)?.(error),
  )
}

/** One signal for the whole of connecting, which ends by the clock or by the caller. */
const timeLimit = (host: string, port: number, timeoutMs: number, signal?: AbortSignal) => {
  const controller = new AbortController()
  const late = () =>
    controller.abort(Object.assign(new Error(`no connection to ${host}:${port} within ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
  const timer = setTimeout(late, timeoutMs)
  const limit = signal ? AbortSignal.any([controller.signal, signal]) : controller.signal
  return Object.assign(limit, { stop: () => clearTimeout(timer) })
}

const opened = (socket: Socket, event: 'connect' | 'secureConnect', limit: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const settle = (act: () => void) => {
      limit.removeEventListener('abort', stop)
      socket.off(event, done).off('error', fail).off('close', closed)
      act()
    }
    const done = () => settle(resolve)
    const fail = (error: Error) => settle(() => reject(error))
    const closed = () => fail(Object.assign(new Error('the connection was closed while it was being opened'), { code: 'ECONNRESET' }))
    const stop = () => {
      fail(limit.reason as Error)
      // an error that comes after this has nobody to hear it
      socket.on('error', () => {}).destroy()
    }
    limit.addEventListener('abort', stop, { once: true })
    socket.on(event, done).on('error', fail).on('close', closed)
    if (limit.aborted) stop()
  })

const createPools = <Pool extends { close(): Promise<void> }>(create: (options: ConnectionOptions) => Pool) => {
  const pools = new Map<string, Pool>()
  return {
    take: (options: ConnectionOptions): Pool => {
      const key = `${options.connectTimeoutMs} ${options.caCertificate ?? ''}`
      const pool = pools.get(key) ?? create(options)
      // moved to the end: the first of the map is the one unused for longest
      pools.delete(key)
      pools.set(key, pool)
      const [oldest] = pools.keys()
      if (pools.size > poolsAtMost && oldest !== undefined) {
        void pools.get(oldest)?.close()
        pools.delete(oldest)
      }
      return pool
    },
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.close()))
      pools.clear()
    },
  }
}
