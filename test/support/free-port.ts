import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

// Generous, because a busy machine starts servers many times slower than an idle one.
const startTimeoutMs = 60_000

/** Returns a port that was free a moment ago, for servers that cannot choose a port themselves. */
export const freePort = async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Waits until a server accepts connections. */
export const listening = async (port: number) => {
  const deadline = Date.now() + startTimeoutMs
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch (thrown) {
      if (Date.now() > deadline) throw thrown
      await pause(25)
    } finally {
      socket.destroy()
    }
  }
}
