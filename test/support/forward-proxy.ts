import type { lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { RequestError, Server } from 'proxy-chain'

export interface ForwardProxy {
  /** Address without user and password. */
  url: string
  /** Address with the user and the password that the proxy demands. */
  urlWithLogin: string
  password: string
  /** The targets that clients have asked for with the right password, in order, as `host:port`. */
  targets: string[]
  /** Returns the number of connections since the start. */
  connections(): number
  stop(): Promise<void>
}

const user = 'relay'
// Characters that a URL contains only encoded.
const password = 'canary/proxy:100%@'

const here = { address: '127.0.0.1', family: 4 }
const lookupHere = ((_host, options, done) =>
  'all' in options && options.all ? done(null, [here]) : done(null, here.address, here.family)) as LookupFunction as typeof lookup

/** Starts an HTTP proxy that demands a password, and resolves every name to this machine but those that never exist. @param tls encrypts the connections to the proxy */
export const startForwardProxy = async (tls?: { key: string; cert: string }): Promise<ForwardProxy> => {
  const targets: string[] = []
  let connections = 0
  const server = new Server({
    port: 0,
    host: '127.0.0.1',
    ...(tls ? { serverType: 'https' as const, httpsOptions: tls } : { serverType: 'http' as const }),
    prepareRequestFunction: (request) => {
      if (request.username !== user || request.password !== password) return { requestAuthentication: true }
      if (request.hostname.endsWith('.invalid')) throw new RequestError('There is no such host', 502)
      targets.push(`${request.hostname}:${request.port}`)
      return { dnsLookup: lookupHere }
    },
  })
  server.server.on('connection', () => {
    connections += 1
  })
  await server.listen()
  const scheme = tls ? 'https' : 'http'
  return {
    url: `${scheme}://127.0.0.1:${server.port}`,
    urlWithLogin: `${scheme}://${user}:${encodeURIComponent(password)}@127.0.0.1:${server.port}`,
    password,
    targets,
    connections: () => connections,
    stop: () => server.close(true),
  }
}
