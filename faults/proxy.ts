import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** State of the network between a client and a server. */
type NetworkState =
  | { kind: 'up' }
  /** Bytes per second of each connection, in both directions. */
  | { kind: 'slow'; bytesPerSecond: number }
  /** Connections are reset, new ones at once. */
  | { kind: 'down' }
  /** Connections stay open, but nothing is forwarded. */
  | { kind: 'silent' }
  /**
   * Every byte of the connections that are open is lost from now on, and nothing is closed. A new connection gets through when the state is
   * `up` again, like one whose first packet is sent again: perhaps another server has taken the address.
   */
  | { kind: 'lossy' }
  /** The first bytes of an answer reset the connection. The server has received the request by then. */
  | { kind: 'resets-answers' }

export interface Proxy {
  port: number
  set(state: NetworkState): void
  /** Sends further connections to another port of this machine, and closes the existing ones. */
  redirect(port: number): void
  /** Returns the number of bytes that clients have sent since the state was last set. */
  sentBytes(): number
  stop(): Promise<void>
}

interface Connection {
  isLost: boolean
}

const sliceMs = 20

/** Starts a TCP proxy whose network state can be changed while connections are open. */
export const startProxy = async (targetPort: number): Promise<Proxy> => {
  const sockets = new Set<Socket>()
  let upstreamPort = targetPort
  let state: NetworkState = { kind: 'up' }
  let sent = 0
  let changed = Promise.withResolvers<void>()

  const open = new Set<Connection>()

  const forward = async (connection: Connection, from: Socket, to: Socket, isAnswer: boolean) => {
    const write = async (bytes: Buffer) => {
      if (connection.isLost) return
      while (state.kind === 'silent' || state.kind === 'lossy') await changed.promise
      if (!isAnswer) sent += bytes.length
      if (!to.write(bytes)) await Promise.race([once(to, 'drain'), once(to, 'close')])
    }
    try {
      for await (const chunk of from as AsyncIterable<Buffer>) {
        if (isAnswer && state.kind === 'resets-answers') to.resetAndDestroy()
        for (let offset = 0; offset < chunk.length;) {
          const length = state.kind === 'slow' ? Math.ceil((state.bytesPerSecond * sliceMs) / 1_000) : chunk.length
          await write(chunk.subarray(offset, offset + length))
          offset += length
          if (state.kind === 'slow') await pause(sliceMs)
        }
      }
      if (!connection.isLost) to.end()
    } catch {
      // One side has disconnected. Its close handler ends the other side.
    }
  }

  const closeAll = () => {
    for (const socket of sockets) socket.resetAndDestroy()
  }
  const server = createServer((client) => {
    if (state.kind === 'down') {
      client.resetAndDestroy()
      return
    }
    const upstream = connect(upstreamPort, '127.0.0.1')
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true)
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    const connection: Connection = { isLost: false }
    open.add(connection)
    client.on('close', () => {
      open.delete(connection)
      upstream.destroy()
    })
    upstream.on('close', () => connection.isLost || client.destroy())
    void forward(connection, client, upstream, false)
    void forward(connection, upstream, client, true)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    set: (next) => {
      state = next
      sent = 0
      changed.resolve()
      changed = Promise.withResolvers()
      if (next.kind === 'down') closeAll()
      if (next.kind === 'lossy') for (const connection of open) connection.isLost = true
    },
    redirect: (port) => {
      upstreamPort = port
      closeAll()
    },
    sentBytes: () => sent,
    stop: async () => {
      changed.resolve()
      closeAll()
      server.close()
      await once(server, 'close')
    },
  }
}
