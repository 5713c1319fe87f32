import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

export interface TcpProxy {
  port: number
  stop(): Promise<void>
}

/** Stands between a client and a server, and after so many bytes of the client cuts the line, or holds it and passes nothing on. */
export const startTcpProxy = async (targetPort: number, fault: { kind: 'cut' | 'stall'; afterBytes: number }): Promise<TcpProxy> => {
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
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
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
