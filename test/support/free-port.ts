import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

// a busy machine needs many times what an idle one does
const startTimeoutMs = 60_000

/** A port nobody listened on a moment ago, for servers that cannot choose one themselves. */
export const freePort = async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Waits until a server takes connections. */
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
