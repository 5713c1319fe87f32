import net, { type Socket } from 'node:net'
import tls from 'node:tls'

/** Starts TLS on a socket and waits until it is established. */
export const overTls = async (
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
    // Set explicitly. Otherwise NODE_TLS_REJECT_UNAUTHORIZED=0 would disable it.
    rejectUnauthorized: true,
  })
  await waitUntilOpen(secured, 'secureConnect', limit)
  return secured
}

/** Returns a signal that is aborted after `timeoutMs` or by the caller's signal. Call `stop` to clear the timer. */
export const timeLimit = (host: string, port: number, timeoutMs: number, signal?: AbortSignal) => {
  const controller = new AbortController()
  const onTimeout = () =>
    controller.abort(Object.assign(new Error(`could not connect to ${host}:${port} within ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
  const timer = setTimeout(onTimeout, timeoutMs)
  const limit = signal ? AbortSignal.any([controller.signal, signal]) : controller.signal
  return Object.assign(limit, { stop: () => clearTimeout(timer) })
}

/** Returns the error of a connection that the other side has closed before it was of use. */
export const closedWhileOpening = () =>
  Object.assign(new Error('the connection was closed while it was being established'), { code: 'ECONNRESET' })

/** Waits until a socket is open. Destroys the socket if the limit is aborted first. */
export const waitUntilOpen = (socket: Socket, event: 'connect' | 'secureConnect', limit: AbortSignal) =>
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
