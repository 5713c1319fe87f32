import { startTemporalDevServer, type TemporalDevServer } from '../../src/dev/temporal-dev-server.ts'
import { configOf } from '../dev/support.ts'
import { createFolder } from './folder.ts'

/**
 * Starts a dev server of Temporal that a test can stop and start again, at the same address and with the same files.
 * @param onStart is called after each start
 */
export const startOwnTemporal = async (onStart: (address: string) => Promise<void> = async () => {}) => {
  const folder = await createFolder()
  const startServer = async () => {
    const server = await startTemporalDevServer({ dataDir: folder.path, config: configOf(), say: () => {} })
    await onStart(server.address)
    return server
  }
  let server: TemporalDevServer | undefined = await startServer()
  const { address } = server
  const stop = async () => {
    await server?.stop()
    server = undefined
  }
  return {
    address,
    dataDir: folder.path,
    stop,
    start: async () => {
      server = await startServer()
    },
    [Symbol.asyncDispose]: async () => {
      await stop()
      await folder[Symbol.asyncDispose]()
    },
  }
}
