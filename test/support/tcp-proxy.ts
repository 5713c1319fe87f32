import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

export interface TcpProxy {
  port: number
  /** Returns `true` once a cut or stall has occurred. */
  hasFaulted(): boolean
  stop(): Promise<void>
}

type Fault =
  | { kind: 'cut' | 'stall'; afterBytes: number }
  /** The rates are per connection. */
  | { kind: 'slow'; bytesPerSecond: number; answerBytesPerSecond: number }

/**
 * Starts a proxy that, after so many bytes from the client, closes the connection or stops forwarding; or one that
 * forwards slowly.
 * @param port 0 for any
 */
export const startTcpProxy = async (targetPort: number, fault: Fault, port = 0): Promise<TcpProxy> => {
  const sockets = new Set<Socket>()
  // Counts all connections together, because an upload in parts uses several.
  let forwardedBytes = 0
  const server = createServer((client) => {
    const upstream = connect(targetPort, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
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
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    hasFaulted: () => fault.kind !== 'slow' && forwardedBytes > fault.afterBytes,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Starts a proxy that can be closed, as if the server behind it had gone, and opened again at the same port. */
export const startGate = async (targetPort: number) => {
  const forward = (port?: number) => startTcpProxy(targetPort, { kind: 'cut', afterBytes: Infinity }, port)
  let proxy: TcpProxy | undefined = await forward()
  const { port } = proxy
  return {
    port,
    close: async () => {
      await proxy?.stop()
      proxy = undefined
    },
    open: async () => {
      proxy ??= await forward(port)
    },
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
