import { randomInt } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'

const loopback = '127.0.0.1'

// Ports below the ephemeral range (from 32768 on Linux, 49152 elsewhere). An outgoing connection cannot take such a
// port between this check and the start of the server.
const [lowestPort, highestPort] = [20_000, 32_000]
const maxTries = 100

const isPortFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: loopback }, () => server.close(() => resolve(true)))
  })

/** Finds a free port below the ephemeral range that is none of `others`, which may not be listened on yet. */
export const findFreePort = async (others: ReadonlySet<number> = new Set()): Promise<number> => {
  for (let tries = 0; tries < maxTries; tries += 1) {
    const port = randomInt(lowestPort, highestPort)
    if (!others.has(port) && (await isPortFree(port))) return port
  }
  throw new Error(`No free port found on ${loopback}`)
}

const readPort = async (file: string): Promise<number> => {
  try {
    const port = Number(await readFile(file, 'utf8'))
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : 0
  } catch {
    return 0
  }
}

/**
 * Returns the port stored in a file, so that a server keeps its address across restarts. If the file holds no port, or
 * the port is in use or one of `others`, finds a free port and stores it.
 */
export const stablePort = async (file: string, others: ReadonlySet<number> = new Set()): Promise<number> => {
  const stored = await readPort(file)
  if (stored > 0 && !others.has(stored) && (await isPortFree(stored))) return stored
  const port = await findFreePort(others)
  await writeFile(file, String(port))
  return port
}

/** Checks whether a server listens on a local port. */
export const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: loopback, timeout: 1_000 })
    const finish = (listening: boolean) => {
      socket.destroy()
      resolve(listening)
    }
    socket.once('connect', () => finish(true))
    socket.once('timeout', () => finish(false))
    socket.once('error', () => finish(false))
  })
