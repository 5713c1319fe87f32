// Sockets that are open when a caller gets them, or that cost no more than a limited time.
import dns from 'node:dns'
import net, { type Socket } from 'node:net'
import tls from 'node:tls'
import { messageOf } from '../base/errors.ts'

// The time by which an address is ahead of the next one (RFC 8305, 5), in milliseconds.
const headStartMs = 250

/**
 * Opens a TCP connection to the address of a host that answers first. The addresses are tried in their order, each a moment after the one
 * before it or when that has failed, and none is given up because the next one is tried: Node ends an address after 250 ms
 * (`autoSelectFamilyAttemptTimeout`), so a slow one before one that refuses would never be reached.
 * @param addresses of the host. `undefined` if they are not known yet
 */
export const openSocket = async (host: string, port: number, addresses: string[] | undefined, limit: AbortSignal): Promise<Socket> => {
  limit.throwIfAborted()
  const found = addresses ?? (await addressesWithin(host, limit))
  const ended = new AbortController()
  const attemptLimit = AbortSignal.any([limit, ended.signal])
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<Socket>((resolve, reject) => {
      const failures: Error[] = []
      let started = 0
      const start = () => {
        clearTimeout(timer)
        const address = found[started]
        if (address === undefined || limit.aborted) return
        started += 1
        timer = setTimeout(start, headStartMs)
        connectTo(address, port, attemptLimit).then(
          (socket) => {
            // Another address may have been as fast.
            if (ended.signal.aborted) socket.on('error', () => {}).destroy()
            ended.abort()
            resolve(socket)
          },
          (thrown: unknown) => {
            failures.push(thrown as Error)
            if (limit.aborted) reject(limit.reason as Error)
            else if (failures.length < found.length) start()
            else reject(failureOf(failures))
          },
        )
      }
      start()
    })
  } finally {
    clearTimeout(timer)
    ended.abort()
  }
}

const connectTo = async (host: string, port: number, limit: AbortSignal): Promise<Socket> => {
  const socket = net.connect({ host, port, noDelay: true, keepAlive: true })
  await waitUntilOpen(socket, 'connect', limit)
  return socket
}

/** Returns the error of a host none of whose addresses has accepted a connection, in the form of Node. */
const failureOf = (failures: Error[]): Error => {
  const [first, another] = failures
  if (first && !another) return first
  const { code } = (first ?? {}) as { code?: unknown }
  return Object.assign(new AggregateError(failures, failures.map(messageOf).join('; ')), { code })
}

const addressesWithin = async (host: string, limit: AbortSignal): Promise<string[]> => {
  const found = await Promise.race([
    dns.promises.lookup(host, { all: true }),
    new Promise<never>((_, reject) => limit.addEventListener('abort', () => reject(limit.reason as Error), { once: true })),
  ])
  return found.map(({ address }) => address)
}

/** Whom a connection with TLS trusts, and as whom it is made. */
export interface Trust {
  /** PEM. The only trusted authority: it replaces the public ones. */
  caCertificate?: string | undefined
  /** PEM. Identifies the relay to a server that demands a certificate. */
  clientCertificate?: { cert: string; key: string } | undefined
}

/** Starts TLS on a socket and waits until it is established. */
export const overTls = async (
  socket: Socket,
  {
    host,
    servername,
    caCertificate,
    clientCertificate,
    ALPNProtocols,
  }: Pick<tls.ConnectionOptions, 'servername' | 'ALPNProtocols'> & { host: string } & Trust,
  limit: AbortSignal,
): Promise<Socket> => {
  const secured = tls.connect({
    socket,
    host,
    ...(net.isIP(host) ? {} : { servername: servername || host }),
    ...(caCertificate && { ca: caCertificate }),
    ...clientCertificate,
    ...(ALPNProtocols && { ALPNProtocols }),
    minVersion: 'TLSv1.2',
    // Set explicitly. Otherwise NODE_TLS_REJECT_UNAUTHORIZED=0 would disable it.
    rejectUnauthorized: true,
  })
  await waitUntilOpen(secured, 'secureConnect', limit)
  return secured
}

/** Returns a signal that is aborted after `timeoutMs`, with an error that begins with `failure`, or by the caller's signal. Call `stop` to clear the timer. */
export const timeLimit = (failure: string, timeoutMs: number, signal?: AbortSignal) => {
  const controller = new AbortController()
  const onTimeout = () => controller.abort(Object.assign(new Error(`${failure} within ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
  const timer = setTimeout(onTimeout, timeoutMs)
  const limit = signal ? AbortSignal.any([controller.signal, signal]) : controller.signal
  return Object.assign(limit, { stop: () => clearTimeout(timer) })
}

/** Returns the error of a connection that the other side has closed before it was of use. */
export const closedWhileOpening = () =>
  Object.assign(new Error('the connection was closed while it was being established'), { code: 'ECONNRESET' })

/** Waits until a socket is open. Destroys the socket if the limit is aborted first. */
const waitUntilOpen = (socket: Socket, event: 'connect' | 'secureConnect', limit: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const finish = (act: () => void) => {
      limit.removeEventListener('abort', stop)
      socket.off(event, done).off('error', fail).off('close', closed)
      act()
    }
    const done = () => finish(resolve)
    const fail = (error: Error) => finish(() => reject(error))
    const closed = () => fail(closedWhileOpening())
    const stop = () => {
      fail(limit.reason as Error)
      // A later 'error' event without a listener would crash the process.
      socket.on('error', () => {}).destroy()
    }
    limit.addEventListener('abort', stop, { once: true })
    socket.on(event, done).on('error', fail).on('close', closed)
    if (limit.aborted) stop()
  })
