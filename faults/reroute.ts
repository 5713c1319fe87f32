// Loaded into every process of the relay before its own code. Leads connections to the cloud services that cannot be run here to their
// contract doubles, and lets names of this test resolve, or fail to, as a file says. Everything else is left as it is.
import dns from 'node:dns'
import { existsSync } from 'node:fs'
import net, { type NetConnectOpts, type Socket } from 'node:net'

export interface Routes {
  /** Names of cloud services. They resolve to this machine. */
  cloudHosts: string[]
  /** Port of this machine that connections to its port 443 lead to. The relay connects to addresses, so they tell no names. */
  cloudPort?: number
  /** Root of the doubles of Microsoft's services, which have an address of their own per cloud. */
  microsoft?: { root: string; scope: string }
  /** The module of the relay that holds the addresses of Microsoft's services, as a URL. */
  microsoftModule: string
  /** While this file exists, names that end with `.test` cannot be resolved. Otherwise they resolve to 127.0.0.1. */
  dnsOutageFile: string
}

const text = process.env['FAULTS_ROUTES']
if (text !== undefined) {
  const { cloudHosts, cloudPort, microsoft, dnsOutageFile, microsoftModule } = JSON.parse(text) as Routes

  const realLookup = dns.lookup as (...lookup: unknown[]) => void
  const lookup = (host: string, options: dns.LookupOptions, done: (error: Error | null, found?: unknown, family?: number) => void) => {
    const isOwn = cloudHosts.includes(host)
    if (!isOwn && !host.endsWith('.test')) return realLookup(host, options, done)
    if (!isOwn && existsSync(dnsOutageFile))
      return process.nextTick(
        done,
        Object.assign(new Error(`getaddrinfo EAI_AGAIN ${host}`), { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }),
      )
    if (options.all) return process.nextTick(done, null, [{ address: '127.0.0.1', family: 4 }])
    return process.nextTick(done, null, '127.0.0.1', 4)
  }
  Object.assign(dns, { lookup })

  const realConnect = net.connect as (...connect: unknown[]) => Socket
  const connect = (options: NetConnectOpts, ...rest: unknown[]): Socket => {
    const isCloud = cloudPort !== undefined && 'port' in options && options.port === 443 && options.host === '127.0.0.1'
    return realConnect(isCloud ? { ...options, port: cloudPort } : options, ...rest)
  }
  Object.assign(net, { connect })

  if (microsoft) {
    const { microsoftClouds } = (await import(microsoftModule)) as { microsoftClouds: Record<string, object> }
    microsoftClouds['global'] = { authorityHost: microsoft.root, graphRoot: microsoft.root, scope: microsoft.scope }
  }
}
