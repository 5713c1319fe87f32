import type { LookupAddress } from 'node:dns'
import net, { type LookupFunction, type Socket } from 'node:net'
import { isInAnyRange, isLoopback } from './address-filter.ts'
import {
  createRouteProxy,
  ForwardProxyError,
  proxyTimeout,
  proxyUnusable,
  targetNotDirect,
  type ForwardProxy,
  type TunnelProxy,
  type TunnelTarget,
} from './forward-proxy.ts'
import { closedWhileOpening, openSocket, overTls } from './sockets.ts'

const forbidden =
  'resolves to an address that destinations must not reach. To allow a private address, the operator of this relay adds its range to ' +
  'RELAY_ALLOWED_PRIVATE_CIDRS'

const outside = 'resolves to an address outside of allowed_cidrs'
const elsewhere = 'resolves to this machine; for the proxy of proxy_url, that address is another machine'

/** Connection refused because its address is not allowed. */
export class BlockedAddressError extends Error {
  readonly code = 'blocked_address'

  constructor(host: string, problem = forbidden) {
    super(`${host} ${problem}`)
    this.name = 'BlockedAddressError'
  }
}

/** Connection refused because credentials would be sent over it unencrypted, outside of networks that the operator named. */
export class UnencryptedError extends Error {
  readonly code = 'tls_required'

  constructor(host: string) {
    super(
      `the relay sends no credentials to ${host} without TLS: unencrypted, they may be sent to loopback and private addresses of RELAY_ALLOWED_PRIVATE_CIDRS only`,
    )
    this.name = 'UnencryptedError'
  }
}

export const addressesOf = (found: string | LookupAddress[]) => (Array.isArray(found) ? found.map(({ address }) => address) : [found])

/** How one target is reached, within what the operator allows. */
export interface Route {
  /** The proxy through which the target is reached. With one of the operator, only targets that would not pass that. */
  proxyUrl?: string | undefined
  /** Ranges that must also contain the address of the target. */
  allowedCidrs?: readonly string[] | undefined
}

/** Opens a TCP connection to an address that was checked, or through a proxy. */
export type Dial = (host: string, port: number, limit: AbortSignal) => Promise<Socket>

/** Does so by a route, if there is one. */
export type RouteDial = (...target: [...Parameters<Dial>, route?: Route]) => Promise<Socket>

interface DialOptions {
  lookup: LookupFunction
  /** The operator's proxy. */
  proxy: ForwardProxy | undefined
  /** Returns the accepted ones of the addresses of a host. Throws if there are none. */
  judge: (host: string, addresses: string[]) => string[]
}

/**
 * Returns a function that opens a TCP connection to an address that a judge accepts.
 * @param byAddress asks the proxy for the address that was checked instead of the name, which could lead elsewhere where the proxy resolves it
 */
export const createDial =
  ({ lookup, proxy, judge, byAddress = false }: DialOptions & { byAddress?: boolean }): Dial =>
  async (host, port, limit) => {
    limit.throwIfAborted()
    const accepted = judge(host, await addressesFor(lookup, host, limit))
    const direct = proxy ? proxy.directAddresses(host, accepted) : accepted
    if (!proxy || direct.length > 0) return openChecked(host, port, direct, limit, (connected) => judge(host, connected))
    // Else the name, for the rules and the log of the proxy: ranges that a member has set must not hide it.
    const target = { name: host, address: byAddress ? accepted[0] : undefined, port }
    return throughProxy(proxy, () => openSocket(proxy.host, proxy.port, undefined, limit), target, limit)
  }

/**
 * Returns a function that does so by a route.
 * @param judgeProxy returns those of the addresses of the proxy of a route to which the relay connects. Throws `ForwardProxyError` if there are none
 */
export const createRouteDial = ({
  lookup,
  proxy,
  judge,
  judgeProxy,
}: DialOptions & { judgeProxy: (proxy: TunnelProxy, addresses: string[]) => string[] }): RouteDial => {
  /** Asks the proxy for an address that was checked. It could resolve the name to one that the operator forbids. */
  const throughOwn = async (own: TunnelProxy, host: string, accepted: string[], port: number, limit: AbortSignal): Promise<Socket> => {
    const found = await addressesFor(lookup, own.host, limit).catch((thrown: unknown) => {
      throw proxyFailure(thrown, own, limit)
    })
    const addresses = judgeProxy(own, found)
    const reachable = addresses.every(isLoopback) ? accepted : accepted.filter((address) => !isLoopback(address))
    // Not every proxy has IPv6.
    const address = reachable.find(net.isIPv4) ?? reachable[0]
    if (address === undefined) throw new BlockedAddressError(host, elsewhere)
    const open = () => openChecked(own.host, own.port, addresses, limit, (connected) => judgeProxy(own, connected))
    return throughProxy(own, open, { name: host, address, port }, limit)
  }

  return async (host, port, limit, { proxyUrl, allowedCidrs } = {}) => {
    const judgeTarget: typeof judge = (name, addresses) => within(allowedCidrs, name, judge(name, addresses))
    if (proxyUrl === undefined) return createDial({ lookup, proxy, judge: judgeTarget })(host, port, limit)
    limit.throwIfAborted()
    const accepted = judgeTarget(host, await addressesFor(lookup, host, limit))
    return throughOwn(createRouteProxy(proxyUrl), host, proxy ? requireDirect(proxy, host, accepted) : accepted, port, limit)
  }
}

/** Returns the addresses of a host. @throws the reason of the limit, or the error of the lookup */
const addressesFor = async (lookup: LookupFunction, host: string, limit: AbortSignal): Promise<string[]> =>
  net.isIP(host)
    ? [host]
    : new Promise<string[]>((done, fail) => {
        const stop = () => fail(limit.reason as Error)
        limit.addEventListener('abort', stop, { once: true })
        lookup(host, { all: true }, (error, found) => {
          limit.removeEventListener('abort', stop)
          if (error) fail(error)
          else done(addressesOf(found))
        })
      })

/**
 * Returns the addresses of a target that the relay would reach without the proxy of the operator. A route to any other would get around
 * the rules and the log of that proxy. @throws `ForwardProxyError` if there are none
 */
export const requireDirect = (proxy: ForwardProxy, host: string, addresses: string[]): string[] => {
  const direct = proxy.directAddresses(host, addresses)
  if (direct.length === 0) throw targetNotDirect(host)
  return direct
}

/** Returns the addresses that the ranges contain, if there are any ranges. @throws `BlockedAddressError` if they contain none */
const within = (cidrs: readonly string[] | undefined, host: string, addresses: string[]): string[] => {
  if (!cidrs) return addresses
  const found = addresses.filter((address) => isInAnyRange(cidrs, address))
  if (found.length === 0) throw new BlockedAddressError(host, outside)
  return found
}

/** Opens a TCP connection to one of these addresses. @param check throws if the address that it leads to is not allowed */
const openChecked = async (
  host: string,
  port: number,
  addresses: string[],
  limit: AbortSignal,
  check: (connected: string[]) => unknown,
): Promise<Socket> => {
  const socket = await openSocket(host, port, addresses, limit)
  try {
    // A connection that the other side has reset has no address any more.
    if (socket.remoteAddress === undefined) throw closedWhileOpening()
    check([socket.remoteAddress])
    return socket
  } catch (thrown) {
    socket.on('error', () => {}).destroy()
    throw thrown
  }
}

/** Connects to a target through a proxy. @param open opens the TCP connection to the proxy */
export const throughProxy = async (
  proxy: TunnelProxy,
  open: () => Promise<Socket>,
  target: TunnelTarget,
  limit: AbortSignal,
): Promise<Socket> => {
  try {
    const opened = await open()
    const connection = proxy.isTls ? await overTls(opened, { host: proxy.host }, limit) : opened
    await proxy.tunnel(connection, target, limit)
    return connection
  } catch (thrown) {
    throw proxyFailure(thrown, proxy, limit)
  }
}

const proxyFailure = (thrown: unknown, { words }: TunnelProxy, limit: AbortSignal): unknown => {
  if (limit.aborted) return (thrown as { code?: unknown }).code === 'ETIMEDOUT' ? proxyTimeout(thrown as Error, words) : thrown
  return thrown instanceof ForwardProxyError ? thrown : proxyUnusable(thrown, words)
}
