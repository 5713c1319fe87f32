import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

export interface TcpProxy {
  port: number
  stop(): Promise<void>
}

type Fault =
  | { kind: 'cut' | 'stall'; afterBytes: number }
  /** Each connection by itself. */
  | { kind: 'slow'; bytesPerSecond: number; answerBytesPerSecond: number }

/** Stands between a client and a server, and after so many bytes of the client cuts the line, or holds it and passes nothing on; or is slow. */
export const startTcpProxy = async (targetPort: number, fault: Fault): Promise<TcpProxy> => {
  const sockets = new Set<Socket>()
  // of all connections together: an upload in parts uses several
  let passed = 0
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
      void drip(client, upstream, fault.bytesPerSecond)
      void drip(upstream, client, fault.answerBytesPerSecond)
      return
    }
    client.on('data', (chunk: Buffer) => {
      passed += chunk.length
      if (passed <= fault.afterBytes) {
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
    upstream.on('drain', () => passed <= fault.afterBytes && client.resume())
    upstream.on('data', (chunk: Buffer) => client.write(chunk))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

const pieceMs = 4

const drip = async (from: Socket, to: Socket, bytesPerSecond: number) => {
  const pieceBytes = Math.ceil((bytesPerSecond * pieceMs) / 1_000)
  try {
    for await (const chunk of from as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length; at += pieceBytes) {
        to.write(chunk.subarray(at, at + pieceBytes))
        await pause(pieceMs)
      }
    }
    to.end()
  } catch {
    // one side has gone, and takes the other along
  }
}
