import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

export interface TcpProxy extends AsyncDisposable {
  port: number
  /** Returns `true` once a cut or stall has occurred. */
  hasFaulted(): boolean
  /** Closes every connection, and each new one until `open`. It keeps its port, which another server could take otherwise. */
  close(): void
  open(): void
  stop(): Promise<void>
}

type Fault =
  | { kind: 'cut' | 'stall'; afterBytes: number }
  /** The rates are per connection. */
  | { kind: 'slow'; bytesPerSecond: number; answerBytesPerSecond: number }

/**
 * Starts a proxy that, after so many bytes from the client, closes the connection or stops forwarding; or one that
 * forwards slowly; or one that only `close` interrupts.
 */
export const startTcpProxy = async (targetPort: number, fault: Fault = { kind: 'cut', afterBytes: Infinity }): Promise<TcpProxy> => {
  const sockets = new Set<Socket>()
  // Counts all connections together, because an upload in parts uses several.
  let forwardedBytes = 0
  let isOpen = true
  const server = createServer((client) => {
    if (!isOpen) {
      client.destroy()
      return
    }
    const upstream = connect(targetPort, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('close', () => upstream.destroy())
    // What the target has sent before it closed arrives.
    upstream.on('close', () => client.destroySoon())
    if (fault.kind === 'slow') {
      void forwardSlowly(client, upstream, fault.bytesPerSecond)
      void forwardSlowly(upstream, client, fault.answerBytesPerSecond)
      return
    }
    client.on('data', (chunk: Buffer) => {
      forwardedBytes += chunk.length
      if (forwardedBytes <= fault.afterBytes) {
        if (!upstream.write(chunk)) client.pause()
        return
      }
      if (fault.kind === 'cut') {
        client.resetAndDestroy()
        upstream.destroy()
      } else {
        client.pause()
        upstream.pause()
      }
    })
    upstream.on('drain', () => forwardedBytes <= fault.afterBytes && client.resume())
    upstream.on('data', (chunk: Buffer) => client.write(chunk))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    isOpen = false
    for (const socket of sockets) socket.destroy()
  }
  const stop = async () => {
    close()
    server.close()
    await once(server, 'close')
  }
  return {
    port: (server.address() as AddressInfo).port,
    hasFaulted: () => fault.kind !== 'slow' && forwardedBytes > fault.afterBytes,
    close,
    open: () => {
      isOpen = true
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

export interface LossyPath extends AsyncDisposable {
  port: number
  /** Loses every byte from now on, in both directions, and closes nothing. */
  lose(): void
  /** Lets new connections through. Connections that were open stay silent for ever, as if another server had taken the address. */
  heal(): void
  /** Returns the number of connections that clients have not closed. */
  openConnections(): number
  stop(): Promise<void>
}

/** Starts a proxy that can go silent, as a path does whose other end is lost, or a NAT that has forgotten the flow. */
export const startLossyPath = async (targetPort: number): Promise<LossyPath> => {
  const clients = new Set<Socket>()
  let cutters: (() => void)[] = []
  let isLost = false
  const server = createServer((client) => {
    clients.add(client)
    const upstream = connect(targetPort, '127.0.0.1')
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.on('close', () => {
      clients.delete(client)
      upstream.destroy()
    })
    client.pipe(upstream)
    upstream.pipe(client)
    const cut = () => {
      client.unpipe(upstream).resume()
      upstream.unpipe(client).resume()
    }
    cutters.push(cut)
    if (isLost) cut()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    for (const client of clients) client.destroy()
    server.close()
    await once(server, 'close')
  }
  return {
    port: (server.address() as AddressInfo).port,
    lose: () => {
      isLost = true
      for (const cut of cutters) cut()
      cutters = []
    },
    heal: () => {
      isLost = false
    },
    openConnections: () => clients.size,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

// A timer that fires late on a busy machine must not lower the rate.
const catchUpMaxMs = 250

const forwardSlowly = async (from: Socket, to: Socket, bytesPerSecond: number) => {
  let nextAt = 0
  try {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      to.write(chunk)
      nextAt = Math.max(nextAt, Date.now() - catchUpMaxMs) + (chunk.length / bytesPerSecond) * 1_000
      await pause(Math.max(nextAt - Date.now(), 0))
    }
    to.end()
  } catch {
    // One side has disconnected. Its close handler ends the other side.
  }
}
