import http from 'node:http'
import type { Socket } from 'node:net'
import ipaddr from 'ipaddr.js'
import { UserError } from '../base/errors.ts'

/** How messages call a proxy, and the value that contains its address. */
interface ProxyWords {
  proxy: string
  value: string
}

/** What a proxy is asked to connect to. */
export interface TunnelTarget {
  /** The name in messages, which do not tell the address that it leads to. */
  name: string
  /** The proxy is asked for this in place of the name. */
  address?: string | undefined
  port: number
}

/** A proxy that is asked to connect to targets. */
export interface TunnelProxy {
  words: ProxyWords
  host: string
  port: number
  /** `true` if the connection to the proxy itself is encrypted. */
  isTls: boolean
  /** `true` if its address contains a user and a password. */
  hasLogin: boolean
  /**
   * Asks the proxy, over a new connection to it, to connect to a target. The connection then leads to the target.
   * @throws `ForwardProxyError`, or the reason of the limit
   */
  tunnel(connection: Socket, target: TunnelTarget, limit: AbortSignal): Promise<void>
}

/** The proxy of an installation. */
export interface ForwardProxy extends TunnelProxy {
  /** Returns the addresses of a host to which the relay connects itself. If there are none, the proxy connects. */
  directAddresses(host: string, addresses: string[]): string[]
}

/** Connection that a proxy did not make. Its message contains neither the address of the proxy nor its password. */
export class ForwardProxyError extends Error {
  /** `connection_failed` if the proxy has tried to reach the target. */
  readonly code: 'proxy_failed' | 'connection_failed' | 'timeout'
  /** `true` if the proxy has let the relay sign in, and has answered why there is no connection. */
  readonly isAnswer: boolean

  constructor(code: ForwardProxyError['code'], message: string, { cause, isAnswer = false }: { cause?: unknown; isAnswer?: boolean } = {}) {
    super(message, { cause })
    this.name = 'ForwardProxyError'
    this.code = code
    this.isAnswer = isAnswer
  }
}

const operatorWords: ProxyWords = { proxy: 'the proxy of RELAY_OUTBOUND_PROXY', value: 'the variable' }
const routeWords: ProxyWords = { proxy: 'the proxy of proxy_url', value: 'its address' }

/** Returns the error for a failure before the proxy has answered. Without the message of the cause, which names its address. */
export const proxyUnusable = (thrown: unknown, { proxy }: ProxyWords): ForwardProxyError => {
  const { code = 'unknown' } = thrown as { code?: unknown }
  const isWrongProtocol = String(code).startsWith('HPE_')
  const problem = isWrongProtocol
    ? 'does not answer as an HTTP proxy'
    : code === 'ECONNRESET'
      ? 'closed the connection without an answer'
      : 'cannot be reached'
  return new ForwardProxyError('proxy_failed', `${proxy} ${problem} (${String(code)})`, { cause: thrown })
}

/** Returns the error for a connection through the proxy that took too long. */
export const proxyTimeout = (reason: Error, { proxy }: ProxyWords): ForwardProxyError =>
  new ForwardProxyError('timeout', `${reason.message} through ${proxy}`, { cause: reason })

const routeFailure = (problem: string) => new ForwardProxyError('proxy_failed', `${routeWords.proxy} ${problem}`)

/** Returns the error for a proxy of a route whose addresses are not allowed. */
export const proxyBlocked = (): ForwardProxyError =>
  routeFailure(
    'is at an address that targets must not have. To allow a private address, the operator of this relay adds its range to ' +
      'RELAY_ALLOWED_PRIVATE_CIDRS',
  )

/** Returns the error for a proxy of a route that would get its user and password unencrypted. */
export const proxyUnencrypted = (): ForwardProxyError =>
  routeFailure(
    'would get its user and password without TLS: use https://. With http://, they are sent to loopback and private addresses of ' +
      'RELAY_ALLOWED_PRIVATE_CIDRS only',
  )

/** Returns the error for a proxy of a route that the relay could reach through the proxy of the operator only. */
export const proxyNotDirect = (): ForwardProxyError =>
  routeFailure(
    `must be one that the relay reaches directly, because ${operatorWords.proxy} must not be bypassed. To allow it, the operator of this relay ` +
      'adds its name to RELAY_OUTBOUND_NO_PROXY',
  )

/** Returns the error for a target that the relay reaches through the proxy of the operator. */
export const targetNotDirect = (host: string): ForwardProxyError =>
  routeFailure(
    `is only for targets that the relay would reach directly without it, because ${operatorWords.proxy} must not be bypassed. To allow it, the ` +
      `operator of this relay adds ${host} to RELAY_OUTBOUND_NO_PROXY`,
  )

/**
 * Creates the proxy of an installation.
 * @param url scheme, host and port, with the user and the password in their place
 * @param noProxy names and address ranges that are connected to directly
 * @throws `UserError` that names the invalid variable
 */
export const createForwardProxy = (url: string, noProxy: string[]): ForwardProxy => {
  for (const entry of noProxy) {
    if (isRange(entry) || namePattern.test(entry)) continue
    throw new UserError(`RELAY_OUTBOUND_NO_PROXY: ${entry} is neither a name nor an address range. Examples: corp.example, 10.1.0.0/16`)
  }
  const names = noProxy.filter((entry) => !isRange(entry)).map((name) => name.toLowerCase().replace(/^\*?\.|\.$/g, ''))
  const ranges = noProxy.filter(isRange).map((range) => ipaddr.parseCIDR(rangeOf(range)))
  const isInRange = (text: string) => {
    const address = ipaddr.parse(text)
    return ranges.some(([network, bits]) => network.kind() === address.kind() && address.match(network, bits))
  }

  return {
    ...createProxy(url, operatorWords),
    directAddresses: (host, addresses) => {
      const asked = host.toLowerCase().replace(/\.$/, '')
      return names.some((name) => asked === name || asked.endsWith(`.${name}`)) ? addresses : addresses.filter(isInRange)
    },
  }
}

/** Creates the proxy of a route. @param url like that of an installation */
export const createRouteProxy = (url: string): TunnelProxy => createProxy(url, routeWords)

const createProxy = (url: string, words: ProxyWords): TunnelProxy => {
  const { protocol, hostname, port } = new URL(url)
  const isTls = protocol === 'https:'
  const login = decodedLogin(url)
  return {
    words,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: Number(port || (isTls ? 443 : 80)),
    isTls,
    hasLogin: login !== undefined,
    tunnel: async (connection, { name, address = name, port: targetPort }, limit) => {
      const response = await requestTunnel(connection, authorityOf(address, targetPort), { login, words }, limit)
      if (response.statusCode! < 300) return
      connection.destroy()
      throw tunnelRefused(response, authorityOf(name, targetPort), { login, words })
    },
  }
}

const authorityOf = (host: string, port: number) => `${host.includes(':') ? `[${host}]` : host}:${port}`

const namePattern = /^(\*?\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?$/i

/** Returns user and password, as they are sent. */
const decodedLogin = (url: string): string | undefined => {
  const { username, password } = new URL(url)
  if (username === '' && password === '') return undefined
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  } catch (thrown) {
    throw new UserError('RELAY_OUTBOUND_PROXY: write %25 for a % in the user or the password', { cause: thrown })
  }
}

/** Returns `true` for an address or a range of addresses, `false` for a name. */
const isRange = (entry: string) => ipaddr.isValidCIDR(rangeOf(entry))

const rangeOf = (entry: string) => (entry.includes('/') ? entry : `${entry}/${entry.includes(':') ? 128 : 32}`)

interface Asking {
  login: string | undefined
  words: ProxyWords
}

const requestTunnel = (connection: Socket, authority: string, { login, words }: Asking, limit: AbortSignal) =>
  new Promise<http.IncomingMessage>((resolve, reject) => {
    const request = http.request({
      method: 'CONNECT',
      path: authority,
      headers: {
        host: authority,
        ...(login !== undefined && { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` }),
      },
      createConnection: () => connection,
    })
    const finish = (act: () => void) => {
      limit.removeEventListener('abort', stop)
      act()
    }
    const stop = () => {
      request.destroy()
      finish(() => reject(limit.reason as Error))
    }
    limit.addEventListener('abort', stop, { once: true })
    // Called for every status. Where the server speaks first, as with SMTP and SSH, its first bytes may have arrived with the answer.
    request.on('connect', (response, _, firstBytes) => {
      if (firstBytes.length > 0) connection.unshift(firstBytes)
      finish(() => resolve(response))
    })
    request.on('error', (error) => finish(() => reject(proxyUnusable(error, words))))
    request.end()
    if (limit.aborted) stop()
  })

const tunnelRefused = (
  { statusCode = 0, headers }: http.IncomingMessage,
  authority: string,
  { login, words: { proxy, value } }: Asking,
): ForwardProxyError => {
  // Tinyproxy 1.11 answers 401 to a wrong password.
  if (statusCode === 407 || statusCode === 401) {
    const offered = headers['proxy-authenticate']
    if (offered !== undefined && !/\bbasic\b/i.test(offered)) {
      return new ForwardProxyError(
        'proxy_failed',
        `${proxy} offers no sign-in with user and password (Basic), the only one that the relay knows`,
      )
    }
    const problem =
      login === undefined ? `demands a user and a password, and ${value} has none` : `refuses the user and password of ${value}`
    return new ForwardProxyError('proxy_failed', `${proxy} ${problem} (${statusCode})`)
  }
  const isAnswer = true
  if (statusCode >= 500) {
    return new ForwardProxyError('connection_failed', `${proxy} could not connect to ${authority} (${statusCode})`, { isAnswer })
  }
  return new ForwardProxyError('proxy_failed', `${proxy} does not allow connections to ${authority} (${statusCode})`, { isAnswer })
}
