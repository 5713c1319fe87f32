import dns from 'node:dns'
import http from 'node:http'
import https from 'node:https'
import net, { type LookupFunction, type Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import { messageOf } from '../base/errors.ts'
import { createTtlCache } from '../base/ttl-cache.ts'
import { createAddressFilter } from './address-filter.ts'
import { acceptAnyHead } from './answer-head.ts'
import {
  addressesOf,
  BlockedAddressError,
  createDial,
  createRouteDial,
  requireDirect,
  throughProxy,
  UnencryptedError,
  type Route,
  type RouteDial,
} from './dial.ts'
import {
  createForwardProxy,
  createRouteProxy,
  ForwardProxyError,
  proxyBlocked,
  proxyNotDirect,
  proxyUnencrypted,
  type TunnelProxy,
} from './forward-proxy.ts'
import { HttpDispatcher } from './http-dispatcher.ts'
import { openSocket, overTls, timeLimit, type Trust } from './sockets.ts'

interface ConnectRequest {
  host: string
  port: number
  timeoutMs: number
  signal?: AbortSignal
}

/** Opens outgoing connections to destinations, and blocks those to addresses that are not allowed. */
export interface Outbound {
  /**
   * Opens a TCP connection.
   * @throws `BlockedAddressError`, or a system error (ECONNREFUSED, ENOTFOUND, ETIMEDOUT, ...)
   */
  connect(request: ConnectRequest): Promise<Socket>
  /**
   * Starts TLS on a socket from `connect`, for protocols with STARTTLS. Closing the TLS socket closes the TCP socket.
   */
  secure(
    socket: Socket,
    options: { host: string; timeoutMs: number; caCertificate?: string | undefined; signal?: AbortSignal },
  ): Promise<Socket>
  /** Returns a dispatcher for undici's `request`. Callers share it to reuse connections, so do not close it. */
  dispatcher(options: ConnectionOptions): Dispatcher
  /**
   * Returns agents for clients that use Node's http module, such as the AWS SDK. Callers share them, so do not destroy
   * them.
   */
  agents(options: ConnectionOptions): { http: http.Agent; https: https.Agent }
}

export interface OutboundGuard extends Outbound {
  dispatcher(options: RoutedOptions): Dispatcher
  /**
   * Guard for attempts that would send credentials without encryption: it opens connections without TLS only to loopback and to private
   * addresses of RELAY_ALLOWED_PRIVATE_CIDRS.
   */
  unencryptedPrivate: Outbound
  /** Returns true if a host has such an address. False if the name cannot be resolved within the timeout. */
  isAllowedPrivate(host: string, timeoutMs: number): Promise<boolean>
  /**
   * Says why the relay would not use the proxy of a route.
   * @param target the name or the address of the host that would be reached through it
   * @returns undefined if it would. A name that cannot be resolved within the timeout is no reason
   */
  refusalOfProxy(url: string, target: string, timeoutMs: number): Promise<string | undefined>
  /** Closes all connections after the running requests have ended. */
  close(): Promise<void>
}

interface ConnectionOptions extends Trust {
  /** Covers name resolution, TCP and TLS. */
  connectTimeoutMs: number
}

interface RoutedOptions extends ConnectionOptions {
  /** How the target is reached, if the settings of the installation are not enough. */
  route?: Route | undefined
}

// Destinations with different CA certificates cannot share connections. The least recently used pool is closed to make room.
const maxPools = 64

export interface OutboundConfig {
  RELAY_ALLOWED_PRIVATE_CIDRS: string[]
  RELAY_OUTBOUND_PROXY?: string | undefined
  RELAY_OUTBOUND_NO_PROXY: string[]
}

/** Creates an outbound guard with the settings of the installation. */
export const openOutboundGuard = (config: OutboundConfig): OutboundGuard =>
  createOutboundGuard({
    allowedCidrs: config.RELAY_ALLOWED_PRIVATE_CIDRS,
    proxyUrl: config.RELAY_OUTBOUND_PROXY,
    noProxy: config.RELAY_OUTBOUND_NO_PROXY,
  })

/**
 * Creates an outbound guard. The guard checks every address after name resolution and connects to exactly that address.
 * A name that resolves to another address a moment later (DNS rebinding) is therefore not a way around the check. The proxy of a route is
 * also asked for exactly that address. The proxy of the operator is asked for the name after the address was checked: it then resolves the
 * name itself, and must also refuse private addresses.
 * @param proxyUrl the proxy through which targets are reached, unless `noProxy` names them
 * @param lookup resolver, replaced only by tests
 */
export const createOutboundGuard = ({
  allowedCidrs,
  proxyUrl,
  noProxy = [],
  lookup = dns.lookup,
}: {
  allowedCidrs: string[]
  proxyUrl?: string | undefined
  noProxy?: string[]
  lookup?: LookupFunction
}): OutboundGuard => {
  const { isAllowed, isAllowedPrivate } = createAddressFilter(allowedCidrs)
  const proxy = proxyUrl === undefined ? undefined : createForwardProxy(proxyUrl, noProxy)
  const allow = (host: string, addresses: string[]) => {
    const allowed = addresses.filter(isAllowed)
    if (allowed.length === 0) throw new BlockedAddressError(host)
    return allowed
  }
  const allowPrivate = (host: string, addresses: string[]) => {
    const isPrivate = allow(host, addresses).filter(isAllowedPrivate)
    if (isPrivate.length === 0) throw new UnencryptedError(host)
    return isPrivate
  }
  const judgeProxy = ({ host, isTls, hasLogin }: TunnelProxy, addresses: string[]) => {
    const allowed = addresses.filter(isAllowed)
    if (allowed.length === 0) throw proxyBlocked()
    const safe = hasLogin && !isTls ? allowed.filter(isAllowedPrivate) : allowed
    if (safe.length === 0) throw proxyUnencrypted()
    const direct = proxy ? proxy.directAddresses(host, safe) : safe
    if (direct.length === 0) throw proxyNotDirect()
    return direct
  }
  const dialAllowed = createRouteDial({ lookup, proxy, judge: allow, judgeProxy })
  const dialPrivate = createDial({ lookup, proxy, judge: allowPrivate, byAddress: true })
  const anywhere = createOutbound(dialAllowed, dialAllowed)
  const unencryptedPrivate = createOutbound(dialPrivate, dialAllowed)

  return {
    ...anywhere.outbound,
    unencryptedPrivate: unencryptedPrivate.outbound,
    isAllowedPrivate: async (host, timeoutMs) => (await resolveHost(lookup, host, timeoutMs)).some(isAllowedPrivate),
    refusalOfProxy: async (url, target, timeoutMs) => {
      const asked = createRouteProxy(url)
      const [ofProxy, ofTarget] = await Promise.all([asked.host, target].map((host) => resolveHost(lookup, host, timeoutMs)))
      const accepted = ofTarget!.filter(isAllowed)
      try {
        if (ofProxy!.length > 0) judgeProxy(asked, ofProxy!)
        if (proxy && accepted.length > 0) requireDirect(proxy, target, accepted)
        return undefined
      } catch (thrown) {
        return messageOf(thrown)
      }
    },
    close: async () => {
      await Promise.all([anywhere.close(), unencryptedPrivate.close()])
    },
  }
}

/** Returns the addresses of a host, none if its name cannot be resolved in time. */
const resolveHost = async (lookup: LookupFunction, host: string, timeoutMs: number): Promise<string[]> =>
  net.isIP(host) ? [host] : resolveName(lookup, host, timeoutMs)

const resolveName = (lookup: LookupFunction, host: string, timeoutMs: number) =>
  new Promise<string[]>((resolve) => {
    const timer = setTimeout(() => resolve([]), timeoutMs)
    lookup(host, { all: true }, (error, found) => {
      clearTimeout(timer)
      resolve(error ? [] : addressesOf(found))
    })
  })

// Never exists (RFC 2606), so nothing is connected.
const nobody = 'relay.invalid'

/** Checks that a proxy answers and accepts the user and the password of its URL. @throws `ForwardProxyError` if not */
export const checkForwardProxy = async (proxyUrl: string, timeoutMs: number): Promise<void> => {
  const limit = timeLimit(`could not connect to ${nobody}:443`, timeoutMs)
  try {
    const proxy = createForwardProxy(proxyUrl, [])
    const socket = await throughProxy(proxy, () => openSocket(proxy.host, proxy.port, undefined, limit), { name: nobody, port: 443 }, limit)
    socket.on('error', () => {}).destroy()
  } catch (thrown) {
    if (!(thrown instanceof ForwardProxyError && thrown.isAnswer)) throw thrown
  } finally {
    limit.stop()
  }
}

/** Creates the ways to connect, with pools of their own. @param dialTls opens the TCP connections that TLS starts on at once */
const createOutbound = (
  dialPlain: RouteDial,
  dialTls: RouteDial,
): { outbound: Outbound & Pick<OutboundGuard, 'dispatcher'>; close(): Promise<void> } => {
  const connect = async ({ host, port, timeoutMs, signal }: ConnectRequest, route?: Route) => {
    const limit = timeLimit(`could not connect to ${host}:${port}`, timeoutMs, signal)
    return dialPlain(host, port, limit, route).finally(() => limit.stop())
  }

  const secure: Outbound['secure'] = async (socket, { host, timeoutMs, caCertificate, signal }) => {
    const limit = timeLimit(`could not start TLS with ${host}`, timeoutMs, signal)
    return overTls(socket, { host, caCertificate }, limit).finally(() => limit.stop())
  }

  const connectSecurely = async (
    host: string,
    port: number,
    servername: string | undefined,
    { connectTimeoutMs, route, ...trust }: RoutedOptions,
  ): Promise<Socket> => {
    const limit = timeLimit(`could not connect to ${host}:${port}`, connectTimeoutMs)
    try {
      return await overTls(await dialTls(host, port, limit, route), { host, servername, ...trust, ALPNProtocols: ['http/1.1'] }, limit)
    } finally {
      limit.stop()
    }
  }

  const createAgents = ({ route, ...options }: RoutedOptions, agentOptions: http.AgentOptions = {}) => {
    const pair = {
      http: tolerant(new http.Agent({ keepAlive: true, ...agentOptions })),
      https: tolerant(new https.Agent({ keepAlive: true, ...agentOptions })),
    }
    pair.http.createConnection = ({ host, port }, done) => {
      const { connectTimeoutMs: timeoutMs } = options
      invokeCallback(connect({ host: withoutBrackets(host ?? ''), port: Number(port ?? 80), timeoutMs }, route), done)
      return undefined
    }
    pair.https.createConnection = ({ host, port, servername }: https.RequestOptions, done) => {
      invokeCallback(connectSecurely(withoutBrackets(host ?? ''), Number(port ?? 443), servername, { ...options, route }), done)
      return undefined
    }
    return {
      ...pair,
      close: async () => {
        for (const agent of [pair.http, pair.https]) {
          // agent.destroy() would also abort running requests.
          agent.maxFreeSockets = 0
          for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy()
        }
      },
    }
  }
  const agents = createPools((options) => createAgents(options))
  const dispatchers = createPools((options) => new HttpDispatcher(createAgents(options, { timeout: idleConnectionMs })))

  return {
    outbound: { connect, secure, dispatcher: dispatchers.take, agents: agents.take },
    close: async () => {
      await Promise.all([dispatchers.close(), agents.close()])
    },
  }
}

// Servers close idle connections. A request that is sent in the same moment costs an attempt.
const idleConnectionMs = 4_000

/** Makes the requests of an agent accept heads of answers that break the rules. Node calls `addRequest` for each of them. */
const tolerant = <Agent extends http.Agent>(agent: Agent): Agent => {
  const { addRequest } = agent as unknown as { addRequest(request: http.ClientRequest, ...rest: unknown[]): void }
  return Object.assign(agent, {
    addRequest: (request: http.ClientRequest, ...rest: unknown[]) => {
      acceptAnyHead(request)
      addRequest.call(agent, request, ...rest)
    },
  })
}

const withoutBrackets = (host: string) => host.replace(/^\[|\]$/g, '')

const invokeCallback = (connecting: Promise<Socket>, done: ((error: Error | null, stream: Socket) => void) | undefined) => {
  connecting.then(
    (socket) => done?.(null, socket),
    // The type requires a stream, but Node's callers check the error first.
    (error: Error) => (done as ((error: Error) => void) | undefined)?.(error),
  )
}

const createPools = <Pool extends { close(): Promise<void> }>(create: (options: RoutedOptions) => Pool) => {
  const pools = createTtlCache<Pool>({ maxEntries: maxPools, onEvict: (pool) => void pool.close() })
  return {
    take: (options: RoutedOptions): Pool => {
      const { connectTimeoutMs, caCertificate, clientCertificate, route } = options
      // A connection with a client certificate is that client and is not shared. A connection through a proxy was permitted by that proxy.
      const key = JSON.stringify([connectTimeoutMs, caCertificate, clientCertificate, route])
      const known = pools.get(key)
      if (known) return known
      const pool = create(options)
      pools.set(key, pool)
      return pool
    },
    close: async () => {
      await Promise.all(pools.drain().map((pool) => pool.close()))
    },
  }
}
