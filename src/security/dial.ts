import type { LookupAddress } from 'node:dns'
import net, { type LookupFunction, type Socket } from 'node:net'
import { ForwardProxyError, proxyTimeout, proxyUnusable, type ForwardProxy } from './forward-proxy.ts'
import { closedWhileOpening, openSocket, overTls } from './sockets.ts'

/** Connection refused because its address is not allowed. */
export class BlockedAddressError extends Error {
  readonly code = 'blocked_address'

  constructor(host: string) {
    super(
      `${host} resolves to an address that destinations must not reach. To allow a private address, the operator of this relay adds its range to RELAY_ALLOWED_PRIVATE_CIDRS`,
    )
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

/** Opens a TCP connection to an address that was checked, or through a proxy. */
export type Dial = (host: string, port: number, limit: AbortSignal) => Promise<Socket>

interface DialOptions {
  lookup: LookupFunction
  proxy: ForwardProxy | undefined
  /** Ask the proxy for the address that was checked instead of the name, which could lead elsewhere where the proxy resolves it. */
  byAddress?: boolean
}

/**
 * Returns a function that opens a TCP connection to an address that a judge accepts.
 * @param judge returns the accepted ones of a host's addresses. Throws if there are none
 */
export const createDial = ({ lookup, proxy, byAddress }: DialOptions, judge: (host: string, addresses: string[]) => string[]): Dial => {
  const resolve = (host: string, limit: AbortSignal) =>
    new Promise<string[]>((done, fail) => {
      const stop = () => fail(limit.reason as Error)
      limit.addEventListener('abort', stop, { once: true })
      lookup(host, { all: true }, (error, found) => {
        limit.removeEventListener('abort', stop)
        if (error) fail(error)
        else done(addressesOf(found))
      })
    })

  return async (host, port, limit) => {
    limit.throwIfAborted()
    const accepted = judge(host, net.isIP(host) ? [host] : await resolve(host, limit))
    const direct = proxy ? proxy.directAddresses(host, accepted) : accepted
    if (proxy && direct.length === 0) return throughProxy(proxy, byAddress ? accepted[0]! : host, port, limit)

    const socket = await openSocket(host, port, direct, limit)
    try {
      // A connection that the other side has reset has no address any more.
      if (socket.remoteAddress === undefined) throw closedWhileOpening()
      judge(host, [socket.remoteAddress])
      return socket
    } catch (thrown) {
      socket.on('error', () => {}).destroy()
      throw thrown
    }
  }
}

export const throughProxy = async (proxy: ForwardProxy, host: string, port: number, limit: AbortSignal): Promise<Socket> => {
  try {
    const opened = await openSocket(proxy.host, proxy.port, undefined, limit)
    const connection = proxy.isTls ? await overTls(opened, { host: proxy.host }, limit) : opened
    await proxy.tunnel(connection, host, port, limit)
    return connection
  } catch (thrown) {
    if (limit.aborted) throw (thrown as { code?: unknown }).code === 'ETIMEDOUT' ? proxyTimeout(thrown as Error) : thrown
    throw thrown instanceof ForwardProxyError ? thrown : proxyUnusable(thrown)
  }
}
