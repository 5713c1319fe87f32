// Sockets that are open when a caller gets them, or that cost no more than a limited time.
import net, { type LookupFunction, type Socket } from 'node:net'
import tls from 'node:tls'

/** Opens a TCP connection. @param addresses of the host. `undefined` if they are not known yet */
export const openSocket = async (host: string, port: number, addresses: string[] | undefined, limit: AbortSignal): Promise<Socket> => {
  const found = addresses?.map((address) => ({ address, family: net.isIP(address) }))
  const known: LookupFunction | undefined =
    found && ((_, { all }, done) => (all ? done(null, found) : done(null, found[0]!.address, found[0]!.family)))
  const socket = net.connect({ host, port, ...(known && { lookup: known }), autoSelectFamily: true, noDelay: true, keepAlive: true })
  await waitUntilOpen(socket, 'connect', limit)
  return socket
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
