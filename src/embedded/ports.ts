import { randomInt } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'

const loopback = '127.0.0.1'

// Below the range that the system gives to outgoing connections (from 32768 on Linux, 49152 elsewhere): one of those would take a port
// in the moment between our look and the start of the server that is to have it.
const [lowest, highest] = [20_000, 32_000]
const triesAtMost = 100

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: loopback }, () => server.close(() => resolve(true)))
  })

const findFree = async (): Promise<number> => {
  for (let tries = 0; tries < triesAtMost; tries += 1) {
    const port = randomInt(lowest, highest)
    if (await isFree(port)) return port
  }
  throw new Error(`No free port on ${loopback}`)
}

const readPort = async (file: string): Promise<number> => {
  try {
    const port = Number(await readFile(file, 'utf8'))
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : 0
  } catch {
    return 0
  }
}

/** The port this file remembers, so that addresses outlive a restart; where that is none or taken, a free one, remembered from now on. */
export const stablePort = async (file: string): Promise<number> => {
  const remembered = await readPort(file)
  const port = remembered > 0 && (await isFree(remembered)) ? remembered : await findFree()
  await writeFile(file, String(port))
  return port
}

/** Whether anything listens there. */
export const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: loopback, timeout: 1_000 })
    const end = (listening: boolean) => {
      socket.destroy()
      resolve(listening)
    }
    socket.once('connect', () => end(true))
    socket.once('timeout', () => end(false))
    socket.once('error', () => end(false))
  })
