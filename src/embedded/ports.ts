import { readFile, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'

const loopback = '127.0.0.1'

const listenOnce = (port: number): Promise<number | undefined> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen({ port, host: loopback }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : undefined))
    })
  })

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
  const port = (await listenOnce(await readPort(file))) ?? (await listenOnce(0))
  if (port === undefined) throw new Error(`No free port on ${loopback}`)
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
